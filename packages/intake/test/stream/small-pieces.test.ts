/** Streams of small pieces, as from senders of chunks of 200 bytes. */
import { setImmediate as iteration } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Turns } from '../../src/http/turns.ts';
import { lineOf, takeStreams } from '../support/taken-streams.ts';

const LINE_SIZE_BYTES = 200;
const LINES_A_PIECE = 20;
const PIECES_A_STREAM = 16;
/** By the clock of the test. */
const LINE_MS = 0.01;
const TURN_MS = 2;
const AT_ONCE_SIZE_BYTES = 16_384;
const piece = Buffer.from(lineOf(LINE_SIZE_BYTES).repeat(LINES_A_PIECE));

/** Takes streams. @returns lines of each iteration of the event loop that had some. */
async function linesOfIterations(streamCount: number): Promise<number[]> {
  let lineCount = 0;
  const turns = new Turns(() => lineCount * LINE_MS);
  const streams = Array.from({ length: streamCount }, () =>
    Array.from({ length: PIECES_A_STREAM }, () => piece),
  );
  let isTaken = false;
  const taking = takeStreams(turns, streams, () => lineCount++).finally(() => (isTaken = true));
  const counts: number[] = [];
  while (!isTaken) {
    const before = lineCount;
    await iteration();
    if (lineCount > before) counts.push(lineCount - before);
  }
  await taking;
  return counts;
}

test.each([1, 40])(
  '%i streams take the time of a turn in an iteration of the event loop, and a few lines besides',
  async (streamCount) => {
    const counts = await linesOfIterations(streamCount);
    const lineCount = counts.reduce((sum, count) => sum + count, 0);
    expect(lineCount).toBe(streamCount * PIECES_A_STREAM * LINES_A_PIECE);
    // A turn that began in the last iteration may end in this one.
    const bound = AT_ONCE_SIZE_BYTES / LINE_SIZE_BYTES + (2 * TURN_MS) / LINE_MS;
    expect(Math.max(...counts)).toBeLessThanOrEqual(bound);
  },
);

test('small pieces of a stream share a turn', async () => {
  const counts = await linesOfIterations(1);
  // With a turn for each piece these would be more than twelve.
  expect(counts.length).toBeLessThan(8);
});
