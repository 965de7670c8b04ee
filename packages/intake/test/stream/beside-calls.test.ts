/** Forty streams beside single calls: the streams' operations in a call's flush, and in the one before it. */
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { Turns } from '../../src/http/turns.ts';
import { begin, MEBIBYTE, stateWith } from '../support/simulated-callers.ts';
import { lineOf, takeStreams } from '../support/taken-streams.ts';

interface Flushes {
  readonly operationCountMax: number;
  readonly operationCount: number;
}

/** Streams whose lines have come, in one piece each. */
async function flushesOfStreams(
  areCallsComing: boolean,
  streamCount: number,
  lineCount: number,
  lineSizeBytes: number,
): Promise<Flushes> {
  let callCount = 0;
  // The clock stands still, so that a call is always one of the last ten milliseconds.
  const turns = new Turns(() => 0);
  turns.yieldTo(() => (areCallsComing ? ++callCount : 0));
  const bytes = Buffer.from(lineOf(lineSizeBytes).repeat(lineCount));
  const counts = await takeStreams(
    turns,
    Array.from({ length: streamCount }, () => [bytes]),
  );
  const operationCount = counts.reduce((sum, count) => sum + count, 0);
  return { operationCountMax: Math.max(...counts), operationCount };
}

test('forty streams commit 250 operations at a time beside single calls, 1,000 without, and commit every operation', async () => {
  const operationCount = 40 * 1_200;
  expect(await flushesOfStreams(false, 40, 1_200, 80)).toEqual({
    operationCountMax: 1_000,
    operationCount,
  });
  expect(await flushesOfStreams(true, 40, 1_200, 80)).toEqual({
    operationCountMax: 250,
    operationCount,
  });
});

test('a group of long lines has 128 KB beside single calls, 512 KB without', async () => {
  const alone = await flushesOfStreams(false, 1, 600, 2_048);
  expect(alone).toEqual({ operationCountMax: 257, operationCount: 600 });
  const besideCalls = await flushesOfStreams(true, 1, 600, 2_048);
  expect(besideCalls).toEqual({ operationCountMax: 65, operationCount: 600 });
});

// Compressed calls wait for a turn and were not counted. Their flush carried four times as much.
test.each([
  ['plain', '', (text: string) => Buffer.from(text)],
  ['compressed', 'gzip', (text: string) => gzipSync(text)],
])('a %s call makes the groups of forty streams small', async (_, encoding, bytesOf) => {
  // The clock stands still, so that the call is one of the last ten milliseconds.
  const turns = new Turns(() => 0);
  const state = { ...stateWith(MEBIBYTE), turns };
  turns.yieldTo(() => state.receivedCount - state.heldCount);
  await new Promise<void>((taken) => {
    state.receivedCount++;
    const { buffer } = new Uint8Array(bytesOf('{"batch":[]}'));
    begin(state, encoding, () => taken()).receive(buffer, true);
  });
  const bytes = Buffer.from(lineOf(80).repeat(1_200));
  const counts = await takeStreams(turns, Array(40).fill([bytes]));
  expect(Math.max(...counts)).toBe(250);
});
