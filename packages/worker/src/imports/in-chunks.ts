/** The pieces of a file as they come → the chunks in which it is stored (`database/src/imports/import-chunks.ts`). */

const CHUNK_SIZE_BYTES = 1_048_576;
const CHUNK_WAIT_MS_MAX = 5_000;

/** Pieces of any size → pieces of about a megabyte, or of what came in some seconds. */
export async function* inChunks(
  pieces: AsyncIterable<Buffer>,
  monotonicNow: () => number,
): AsyncGenerator<Buffer, void, undefined> {
  let collected: Buffer[] = [];
  let sizeBytes = 0;
  let keptAtMs = monotonicNow();
  for await (const piece of pieces) {
    collected.push(piece);
    sizeBytes += piece.length;
    if (sizeBytes < CHUNK_SIZE_BYTES && monotonicNow() - keptAtMs < CHUNK_WAIT_MS_MAX) continue;
    yield Buffer.concat(collected);
    keptAtMs = monotonicNow();
    collected = [];
    sizeBytes = 0;
  }
  if (sizeBytes > 0) yield Buffer.concat(collected);
}
