/** Pieces of a file → the chunks of its stored form (`database/src/imports/import-chunks.ts`). */

const CHUNK_SIZE_BYTES = 1_048_576;
/** The reader of the chunks checks as often whether the file is still wanted. */
const CHUNK_WAIT_MS_MAX = 2_000;

/**
 * Pieces of any size → pieces of about a megabyte, or of the bytes of two seconds, which may be empty. To end it does
 * not wait for a piece: its caller ends the source of the pieces.
 */
export async function* inChunks(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const iterator = pieces[Symbol.asyncIterator]();
  let next = iterator.next();
  let pause = startPause(CHUNK_WAIT_MS_MAX);
  try {
    let collected: Buffer[] = [];
    let sizeBytes = 0;
    for (;;) {
      const come = await Promise.race([next, pause.over]);
      if (come?.done) break;
      if (come !== undefined) {
        collected.push(come.value);
        sizeBytes += come.value.length;
        next = iterator.next();
        if (sizeBytes < CHUNK_SIZE_BYTES) continue;
      }
      yield Buffer.concat(collected);
      collected = [];
      sizeBytes = 0;
      pause.end();
      pause = startPause(CHUNK_WAIT_MS_MAX);
    }
    if (sizeBytes > 0) yield Buffer.concat(collected);
  } finally {
    pause.end();
    next.catch(() => undefined);
    iterator.return?.().catch(() => undefined);
  }
}

function startPause(durationMs: number): { readonly over: Promise<undefined>; end(): void } {
  const { promise: over, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), durationMs);
  return { over, end: () => clearTimeout(timer) };
}
