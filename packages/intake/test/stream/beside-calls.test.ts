/** Forty streams beside single calls: the streams' operations in a call's flush, and in the one before it. */
import { setImmediate as iteration } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { streamCalls } from '../../src/calls/calls.ts';
import { mayRepeatKey } from '../../src/calls/repeated-key.ts';
import { CommitSlots } from '../../src/stream/commit-slots.ts';
import { takeStream, type StreamPort } from '../../src/stream/take-stream.ts';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { Turns } from '../../src/http/turns.ts';
import { createBatcher } from '../support/batcher-under-test.ts';
import { capacityOfOne } from '../support/capacity-of-one.ts';

interface Flushes {
  readonly operationCountMax: number;
  readonly operationCount: number;
}

/** Streams whose lines have come, in one piece each; a line has at least 80 bytes. */
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
  const counts: number[] = [];
  let countBefore = 0;
  const batcher = createBatcher({
    pending: capacityOfOne(64 * 1_048_576),
    async commit() {
      counts.push(batcher.operationCount - countBefore);
      countBefore = batcher.operationCount;
      await iteration();
      return 'broker';
    },
  });
  const deps = {
    batcher,
    turns,
    commitSlots: new CommitSlots(turns),
    waitingSlots: new CommitSlots(turns),
    keys: new KeyRing(),
    recordUnauthorized: () => undefined,
    retryAfterSeconds: () => 1,
    rateLimiter: undefined,
    now: () => 1,
    monotonicNow: () => 0,
    newId: () => 'id',
    // The pace of a stream is not under test: its clock stands still too.
    pause: () => Promise.reject(new Error('a stream of few lines does not wait')),
  };
  const request = {
    call: streamCalls.pipelines,
    workspace: { environmentId: 1, phoneIdentifies: false },
    isStrict: false,
    mayRepeatKey,
    id: undefined,
    firstLine: 1,
    trace: undefined,
  };
  const port: StreamPort = {
    acknowledge: () => undefined,
    writable: () => Promise.resolve(),
    isStopping: () => false,
    isComplete: () => true,
    isCut: () => false,
    isAuthorized: () => true,
    stopReading: () => undefined,
  };
  const line = JSON.stringify({ type: 'track', userId: 'ann', event: 'e', properties: { a: '' } });
  const filled = line.replace('""', `"${'x'.repeat(lineSizeBytes - line.length - 1)}"`);
  const bytes = Buffer.from(`${filled}\n`.repeat(lineCount));
  const outcomes = await Promise.all(
    Array.from({ length: streamCount }, () => takeStream(deps, request, onePiece(bytes), port)),
  );
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['read-to-end']));
  return { operationCountMax: Math.max(...counts), operationCount: batcher.operationCount };
}

async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  await iteration();
  yield bytes;
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
