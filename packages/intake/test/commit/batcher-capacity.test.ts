/** Sizes of a commit batch, a flush and the memory before them. */
import type { WrittenCommitBatch } from '@sluice/platform/queue/commit-batch-writer';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { expect, test } from 'vitest';
import type { CommittedTo } from '../../src/commit/batch-committer.ts';
import { createBatcher, createBroker, event, eventIds } from '../support/batcher-under-test.ts';
import { capacityOfOne } from '../support/capacity-of-one.ts';
import { operationsIn } from '../support/operations-in.ts';

test('a commit batch holds at most 1,000 operations, and keeps their order across commit batches', async () => {
  const committed: ShardCommitBatch[] = [];
  const areAtomic: boolean[] = [];
  const batcher = createBatcher({
    commit: (commitBatches, isAtomic) => {
      committed.push(...commitBatches);
      areAtomic.push(isAtomic);
      return Promise.resolve('spill');
    },
  });
  batcher.add(
    Array.from({ length: 2_500 }, (_, n) => event('a', String(n))),
    10,
    () => undefined,
  );
  await batcher.drain();
  expect(committed.map((commitBatch) => operationsIn([commitBatch]).length)).toEqual([
    1_000, 1_000, 500,
  ]);
  expect(eventIds(committed)).toEqual(Array.from({ length: 2_500 }, (_, n) => String(n)));
  expect(new Set(committed.map(({ envelope: commitBatch }) => commitBatch.id)).size).toBe(3);
  // The operations of one call are committed together, also if all of them are on one shard.
  expect(areAtomic).toEqual([true]);
});

test('calls that are more than a flush may hold go in the next one, each whole and in order', async () => {
  const broker = createBroker();
  const batcher = createBatcher({ commit: broker.commit, pending: capacityOfOne(100_000_000) });
  const megabytes = (count: number) => count * 1_048_576;
  let arrival = broker.arrival();
  batcher.add([event('a', '0')], megabytes(3), () => undefined);
  batcher.add([event('a', '1')], megabytes(1), () => undefined);
  batcher.add([event('a', '2'), event('b', '3')], megabytes(5), () => undefined);
  batcher.add([event('a', '4')], 1, () => undefined);
  await arrival;
  for (const flush of [0, 1]) {
    arrival = broker.arrival();
    broker.flushes[flush]?.confirm();
    await arrival;
  }
  broker.flushes[2]?.confirm();
  await batcher.drain();
  expect(
    broker.flushes.map(({ envelopes: commitBatches }) => eventIds(commitBatches).toSorted()),
  ).toEqual([['0', '1'], ['2', '3'], ['4']]);
  expect(batcher.pendingSizeBytes).toBe(0);
});

test('more than the pending limit is refused at once, and capacity comes back with the confirmation', async () => {
  const broker = createBroker();
  const batcher = createBatcher({ commit: broker.commit, pending: capacityOfOne(100) });
  const arrival = broker.arrival();
  expect(batcher.add([event('a', '1')], 80, () => undefined)).toBe(true);
  expect(batcher.add([event('a', '2')], 30, () => expect.unreachable())).toBe(false);
  await arrival;
  broker.flushes[0]?.confirm();
  await batcher.drain();
  expect(batcher.pendingSizeBytes).toBe(0);
  const second = broker.arrival();
  expect(batcher.add([event('a', '3')], 100, () => undefined)).toBe(true);
  await second;
  broker.flushes[1]?.confirm();
  await batcher.drain();
});

test('a commit batch in the broker frees its buffer for reuse; one in the disk buffer alone is never overwritten', async () => {
  const broker = createBroker();
  const batcher = createBatcher({ commit: broker.commit });
  const flushOf = async (eventId: string, committedTo: CommittedTo) => {
    const arrival = broker.arrival();
    batcher.add([event('a', eventId)], 10, () => undefined);
    await arrival;
    const [{ envelope: commitBatch } = expect.unreachable()] =
      broker.flushes.at(-1)?.envelopes ?? [];
    broker.flushes.at(-1)?.confirm(committedTo);
    await batcher.drain();
    return (commitBatch as WrittenCommitBatch).bytes;
  };
  const buffered = await flushOf('spilled', 'spill');
  const first = await flushOf('first', 'broker');
  const second = await flushOf('second', 'broker');
  await flushOf('third', 'broker');
  expect(second.buffer).toBe(first.buffer);
  expect(first.buffer).not.toBe(buffered.buffer);
  expect(buffered.toString()).toContain('"eventId":"spilled"');
});

test('of two workspaces one leaves the last share of the pending bytes to the other, also while that waits', async () => {
  const broker = createBroker();
  const pending = new SharedCapacity({
    capacity: 100,
    sharePercent: 25,
    isAlone: () => false,
    monotonicNow: () => 0,
  });
  const batcher = createBatcher({ commit: broker.commit, pending });
  const add = (environmentId: number, sizeBytes: number) =>
    batcher.add([{ ...event('a', '1'), environmentId }], sizeBytes, () => undefined);
  const arrival = broker.arrival();
  expect(add(1, 70)).toBe(true);
  expect(add(1, 10)).toBe(false);
  expect(add(2, 20)).toBe(true);
  await arrival;
  expect(add(2, 10)).toBe(false);
  expect([pending.heldBy(1), pending.heldBy(2)]).toEqual([70, 20]);
  broker.flushes[0]?.confirm();
  await batcher.drain();
  expect(pending.totalSize).toBe(0);
});

test('a call for which the disk has no capacity is refused, and holds no memory', async () => {
  const asked: [number, number, number][] = [];
  const batcher = createBatcher({
    hasDiskCapacity: (...question) => {
      asked.push(question);
      return question[0] !== 1;
    },
  });
  const add = (environmentId: number) =>
    batcher.add([{ ...event('a', '1'), environmentId }], 10, () => undefined);
  expect(add(2)).toBe(true);
  expect(add(1)).toBe(false);
  expect(add(2)).toBe(true);
  expect(asked).toEqual([
    [2, 10, 10],
    [1, 10, 20],
    [2, 20, 20],
  ]);
  await batcher.drain();
  expect(batcher.pendingSizeBytes).toBe(0);
});
