/**
 * Pieces of a file → the chunks of its stored form (`import-chunks.ts`). It waits with a timer: the bytes of a slow
 * sender would lie in memory, almost a megabyte for each.
 */

const CHUNK_SIZE_BYTES = 1_048_576;

/**
 * Pieces of any size → pieces of about a megabyte, or of the bytes of `waitMs`, which may be empty. To end it does not
 * wait for a piece: its caller ends the source of the pieces.
 */
export async function* inChunks(
  pieces: AsyncIterable<Buffer>,
  waitMs: number,
): AsyncGenerator<Buffer, void> {
  const iterator = pieces[Symbol.asyncIterator]();
  const ask = (): Promise<IteratorResult<Buffer>> => {
    const asked = iterator.next();
    // It may fail while a chunk is stored. The failure is thrown after that, and would end the process until then.
    asked.catch(() => undefined);
    return asked;
  };
  let next = ask();
  let pause = startPause(waitMs);
  try {
    let collected: Buffer[] = [];
    let sizeBytes = 0;
    for (;;) {
      const come = await Promise.race([next, pause.over]);
      if (come?.done) break;
      if (come !== undefined) {
        collected.push(come.value);
        sizeBytes += come.value.length;
        next = ask();
        if (sizeBytes < CHUNK_SIZE_BYTES) continue;
      }
      yield Buffer.concat(collected);
      collected = [];
      sizeBytes = 0;
      pause.end();
      pause = startPause(waitMs);
    }
    if (sizeBytes > 0) yield Buffer.concat(collected);
  } finally {
    pause.end();
    iterator.return?.().catch(() => undefined);
  }
}

function startPause(durationMs: number): { readonly over: Promise<undefined>; end(): void } {
  const { promise: over, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), durationMs);
  return { over, end: () => clearTimeout(timer) };
}
