/** Memory of calls that wait to be admitted: all of it is within the pending bytes. */
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { expect, test } from 'vitest';
import { Admission } from '../../src/commit/admission.ts';
import { createBatcher, createBroker, event } from '../support/batcher-under-test.ts';

const MEBIBYTE = 1_048_576;
const FLOOD = 1;
const OTHER = 2;
const PENDING_SIZE_BYTES_MAX = 2 * MEBIBYTE;
const CALL_SIZE_BYTES = 120;

test('small calls of many people, over many shards, hold no more memory than may be pending', async () => {
  const pending = new SharedCapacity({
    capacity: PENDING_SIZE_BYTES_MAX,
    sharePercent: 25,
    isAlone: () => false,
    monotonicNow: () => 0,
  });
  const admission = new Admission({
    isAlone: () => false,
    listQueued: () => Promise.resolve(new Set<string>()),
    readHeads: () => Promise.resolve([]),
    wake: () => undefined,
    onCapacity: () => undefined,
    monotonicNow: () => 0,
    turnNow: () => 0,
  });
  const broker = createBroker();
  const batcher = createBatcher({ admission, pending, commit: broker.commit, shardCount: 64 });
  let answeredCount = 0;
  const send = (environmentId: number, number: number): boolean =>
    batcher.add(
      [{ ...event(`p${number}`, String(number)), environmentId }],
      CALL_SIZE_BYTES,
      () => answeredCount++,
    );
  send(OTHER, 0);
  const before = process.memoryUsage().arrayBuffers;
  let takenCount = 0;
  while (send(FLOOD, takenCount)) takenCount++;
  const heldSizeBytes = process.memoryUsage().arrayBuffers - before;
  expect(batcher.lineOperationCount).toBeGreaterThan(200);
  // Beside the flush that goes next.
  expect(heldSizeBytes).toBeLessThan(PENDING_SIZE_BYTES_MAX + 64 * 32_768);
  // The last share is for the other one, as of all that is pending.
  expect(send(OTHER, 1)).toBe(true);

  const drained = batcher.drain();
  for (let flush = 0; answeredCount < takenCount + 2; flush++) {
    while (broker.flushes[flush] === undefined) await new Promise((next) => setImmediate(next));
    broker.flushes[flush]?.confirm();
    await new Promise((next) => setImmediate(next));
  }
  await drained;
  expect(pending.totalSize).toBe(0);
});
