/** Received streams, taken by a process that a test controls. */
import { setImmediate as iteration } from 'node:timers/promises';
import { expect } from 'vitest';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { streamCalls } from '../../src/calls/calls.ts';
import { mayRepeatKey } from '../../src/calls/repeated-key.ts';
import type { Turns } from '../../src/http/turns.ts';
import { CommitSlots } from '../../src/stream/commit-slots.ts';
import { takeStream, type StreamPort } from '../../src/stream/take-stream.ts';
import { createBatcher } from './batcher-under-test.ts';
import { capacityOfOne } from './capacity-of-one.ts';

const REQUEST = {
  call: streamCalls.pipelines,
  workspace: { environmentId: 1, phoneIdentifies: false },
  isStrict: false,
  mayRepeatKey,
  id: undefined,
  firstLine: 1,
  trace: undefined,
};

const PORT: StreamPort = {
  acknowledge: () => undefined,
  writable: () => Promise.resolve(),
  isStopping: () => false,
  isComplete: () => true,
  isCut: () => false,
  hasEndedEarly: () => false,
  isAuthorized: () => true,
  stopReading: () => undefined,
};

/** A line of a stream, with its end; at least 80 bytes. */
export function lineOf(sizeBytes: number): string {
  const line = JSON.stringify({ type: 'track', userId: 'ann', event: 'e', properties: { a: '' } });
  return `${line.replace('""', `"${'x'.repeat(sizeBytes - line.length - 1)}"`)}\n`;
}

/** The pieces of an array have come. */
export type Pieces = readonly Uint8Array[] | AsyncIterable<Uint8Array>;

/**
 * Takes all streams to their ends, each in its pieces.
 *
 * @param onLine - called when a line is read.
 * @returns the operations of each commit.
 */
export async function takeStreams(
  turns: Turns,
  streams: readonly Pieces[],
  onLine: () => void = () => undefined,
): Promise<number[]> {
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
    now: () => {
      onLine();
      return 1;
    },
    monotonicNow: () => 0,
    newId: () => 'id',
    // The pace of a stream is not under test: its clock stands still.
    pause: () => Promise.reject(new Error('a stream of few lines does not wait')),
  };
  const outcomes = await Promise.all(
    streams.map((pieces) => takeStream(deps, REQUEST, arrived(pieces), PORT)),
  );
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['read-to-end']));
  return counts;
}

async function* arrived(pieces: Pieces): AsyncGenerator<Uint8Array, void, undefined> {
  await iteration();
  yield* pieces;
}
