/**
 * Batches that are read ahead in a shard: only if it is behind, only within the capacity, and never at the cost of work
 * in progress.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../src/process/logger.ts';
import { ShardBehind } from '../../src/consumers/queue-behind.ts';

// A deadline also waits for two turns of the event loop, which are real.
beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }),
);
afterEach(() => void vi.useRealTimers());

const commitBatchOf = (id: string, operationCount: number): CommitBatch => ({
  id,
  operations: Array.from(
    { length: operationCount },
    () => ({}) as CommitBatch['operations'][number],
  ),
});
const IN_PROGRESS = commitBatchOf('in progress', 100);

/** A shard in which these wait; `asked` are the numbers that were asked for. */
function shardWith(waiting: readonly CommitBatch[]) {
  const asked: number[] = [];
  const removed: string[] = [];
  const broker = {
    list: (count: number): Promise<readonly CommitBatch[]> => {
      asked.push(count);
      return Promise.resolve(waiting.slice(0, count));
    },
    remove: (ids: readonly string[]): Promise<unknown> => Promise.resolve(removed.push(...ids)),
  };
  const behind = new ShardBehind({
    waiting: {
      list: (count) => broker.list(count),
      remove: (ids) => broker.remove(ids),
    },
    now: Date.now,
    logger: createLogger('test', 'silent'),
  });
  return { behind, broker, asked, removed };
}

test('a shard that keeps up is not asked', async () => {
  const { behind, asked } = shardWith([commitBatchOf('a', 1)]);
  expect(await behind.read(IN_PROGRESS)).toEqual([]);
  behind.end();
  vi.advanceTimersByTime(51);
  expect(await behind.read(IN_PROGRESS)).toEqual([]);
  expect(asked).toEqual([]);
});

test('a shard that is behind reads batches up to its capacity, in order, and more at a time while all are applied', async () => {
  const waiting = Array.from({ length: 200 }, (_, place) => commitBatchOf(`e${place}`, 10));
  const { behind, asked } = shardWith(waiting);
  const counts: number[] = [];
  for (let turn = 0; turn < 6; turn++) {
    behind.end();
    const read = await behind.read(IN_PROGRESS);
    expect(read).toEqual(waiting.slice(0, read.length));
    counts.push(read.length);
  }
  // 900 operations of capacity are 90 commit batches.
  expect(asked).toEqual([4, 8, 16, 32, 64, 128]);
  expect(counts).toEqual([4, 8, 16, 32, 64, 90]);
});

test('a batch that is too large ends the read, even if a smaller one waits behind it', async () => {
  const { behind } = shardWith([
    commitBatchOf('a', 1),
    commitBatchOf('b', 900),
    commitBatchOf('c', 1),
  ]);
  behind.end();
  expect((await behind.read(IN_PROGRESS)).map(({ id }) => id)).toEqual(['a']);
});

test('if the batch in progress waits again, the read is empty, because the batch would follow itself', async () => {
  const { behind, asked, removed } = shardWith([IN_PROGRESS, commitBatchOf('a', 1)]);
  behind.end();
  expect(await behind.read(IN_PROGRESS)).toEqual([]);
  await behind.remove(1);
  expect(asked).toEqual([4]);
  expect(removed).toEqual([]);
});

test('only applied batches are removed', async () => {
  const { behind, removed } = shardWith(['a', 'b', 'c'].map((id) => commitBatchOf(id, 1)));
  behind.end();
  await behind.read(IN_PROGRESS);
  await behind.remove(2);
  expect(removed).toEqual(['a', 'b']);
});

test('a broker that refuses or hangs leaves the one in progress to go by itself', async () => {
  const { behind, broker } = shardWith([commitBatchOf('a', 1)]);
  behind.end();
  broker.list = () => Promise.reject(new Error('away'));
  expect(await behind.read(IN_PROGRESS)).toEqual([]);
  broker.list = () => new Promise(() => undefined);
  behind.end();
  const read = behind.read(IN_PROGRESS);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await read).toEqual([]);

  broker.list = () => Promise.resolve([commitBatchOf('a', 1)]);
  broker.remove = () => new Promise(() => undefined);
  behind.end();
  await behind.read(IN_PROGRESS);
  const removing = behind.remove(1);
  await vi.advanceTimersByTimeAsync(1_000);
  await removing;
});
