/** Streams of small pieces, as from senders of chunks of 200 bytes. */
import { setImmediate as iteration } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Turns } from '../../src/http/turns.ts';
import { lineOf, takeStreams, type Pieces } from '../support/taken-streams.ts';

const LINE_SIZE_BYTES = 200;
const LINES_A_PIECE = 20;
const PIECES_A_STREAM = 16;
/** By the clock of the test. */
const LINE_MS = 0.01;
const TURN_MS = 2;
const AT_ONCE_SIZE_BYTES = 16_384;
const piece = Buffer.from(lineOf(LINE_SIZE_BYTES).repeat(LINES_A_PIECE));

const streamsOf = (count: number): Pieces[] =>
  Array.from({ length: count }, () => Array.from({ length: PIECES_A_STREAM }, () => piece));

/** Takes streams. @returns lines of each iteration of the event loop that had some. */
async function linesOfIterations(streams: readonly Pieces[], lineMs = LINE_MS): Promise<number[]> {
  let lineCount = 0;
  const turns = new Turns(() => lineCount * lineMs);
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
    const counts = await linesOfIterations(streamsOf(streamCount));
    const lineCount = counts.reduce((sum, count) => sum + count, 0);
    expect(lineCount).toBe(streamCount * PIECES_A_STREAM * LINES_A_PIECE);
    // A turn that began in the last iteration may end in this one.
    const bound = AT_ONCE_SIZE_BYTES / LINE_SIZE_BYTES + (2 * TURN_MS) / LINE_MS;
    expect(Math.max(...counts)).toBeLessThanOrEqual(bound);
  },
);

test('100 lines of 60 KB whose last bytes come at once have a turn each', async () => {
  const line = Buffer.from(lineOf(60_000));
  let begunCount = 0;
  let comeAll = (): void => undefined;
  const allBegun = new Promise<void>((resolve) => (comeAll = resolve));
  const pieces = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    yield line.subarray(0, -1);
    if (++begunCount === 100) comeAll();
    await allBegun;
    yield line.subarray(-1);
  };
  const counts = await linesOfIterations(Array.from({ length: 100 }, pieces), TURN_MS);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(100);
  expect(Math.max(...counts)).toBeLessThanOrEqual(2);
});

test('small pieces of a stream share a turn', async () => {
  const counts = await linesOfIterations(streamsOf(1));
  // With a turn for each piece these would be more than twelve.
  expect(counts.length).toBeLessThan(8);
});
