/** Time for which batches that are in no queue are waited for. */
import { expect, test } from 'vitest';
import { PendingBatches } from '../../src/consumers/pending-batches.ts';
import type { PendingBatch } from '../../src/consumers/pending-index.ts';
import { batch, memoryLog } from '../support/memory-log.ts';

async function openPending() {
  const clock = { nowMs: 0 };
  const nothingQueued = async (asked: readonly unknown[]) => asked.map(() => undefined);
  const log = memoryLog([batch(1, 0, [7]), batch(2, 1, [7])]);
  const pending = new PendingBatches(log, nothingQueued, () => clock.nowMs);
  const one = (await pending.find('b1')) as PendingBatch;
  const other = (await pending.find('b2')) as PendingBatch;
  const lookAfter = async (durationMs: number, asked: PendingBatch) => {
    clock.nowMs += durationMs;
    await pending.readToApply([asked]);
  };
  return { pending, one, other, lookAfter };
}

test('a batch is overdue once the broker has answered about its shard for so long', async () => {
  const { pending, one, lookAfter } = await openPending();
  await lookAfter(0, one);
  for (let count = 0; count < 10; count++) await lookAfter(20, one);
  expect(pending.isOverdue(one, 201)).toBe(false);
  expect(pending.isOverdue(one, 200)).toBe(true);
});

test('time in which the broker hung, or was not asked, counts for 100 ms', async () => {
  const { pending, one, lookAfter } = await openPending();
  await lookAfter(0, one);
  await lookAfter(60_000, one);
  expect(pending.isOverdue(one, 101)).toBe(false);
  expect(pending.isOverdue(one, 100)).toBe(true);
});

test('answers about one shard do not count for another', async () => {
  const { pending, one, other, lookAfter } = await openPending();
  await lookAfter(0, one);
  for (let count = 0; count < 10; count++) await lookAfter(50, one);
  await lookAfter(0, other);
  expect(pending.isOverdue(one, 500)).toBe(true);
  expect(pending.isOverdue(other, 1)).toBe(false);
});
