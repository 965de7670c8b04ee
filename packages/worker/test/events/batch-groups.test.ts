/**
 * Groups of shards' batches in one transaction. They contain batches that come while others are under way, without ones
 * that would block their neighbours.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { track } from '@sluice/domain/testing/sample-operations';
import type { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ProcessOutcome } from '../../src/events/batch-transaction.ts';
import { BatchGroups, type ShardBatches } from '../../src/events/group-batches.ts';

const ALONE: ProcessOutcome = { outcome: 'already-applied' };
const TOGETHER: ProcessOutcome = { outcome: 'waiting' };
const pending = {} as PendingBatches;

let transactions: {
  readonly ids: string[];
  end(canApply?: boolean): void;
  fail(): void;
}[];
let alone: string[];
let groups: BatchGroups;

const idsOf = (shards: readonly ShardBatches[]) =>
  shards.flatMap(({ batches }) => batches.map(({ id }) => id));
const shardOf = (id: string, operationCount = 1): ShardBatches => {
  const operations = Array.from({ length: operationCount }, () => track('id:p', 'seen'));
  const batch: CommitBatch = { id, operations };
  return { batches: [batch], pending };
};
const settle = async (): Promise<void> => {
  await vi.advanceTimersByTimeAsync(1);
};

beforeEach(() => {
  vi.useFakeTimers();
  transactions = [];
  alone = [];
  groups = new BatchGroups({
    applyTogether: (shards) =>
      new Promise((resolve, reject) =>
        transactions.push({
          ids: idsOf(shards),
          end: (canApply = true) => resolve(canApply ? shards.map(() => TOGETHER) : undefined),
          fail: () => reject(new Error('refused')),
        }),
      ),
    async applyAlone(shard) {
      alone.push(...idsOf([shard]));
      return ALONE;
    },
  });
});
afterEach(() => void vi.useRealTimers());

test('a lone batch starts at once, and the batches that come during its transaction form the next one', async () => {
  const first = groups.process(shardOf('a'));
  await settle();
  for (const id of ['b', 'c', 'd']) void groups.process(shardOf(id));
  await settle();
  expect(transactions.map(({ ids }) => ids)).toEqual([['a']]);
  transactions[0]?.end();
  expect(await first).toBe(TOGETHER);
  await settle();
  expect(transactions.map(({ ids }) => ids)).toEqual([['a'], ['b', 'c', 'd']]);
});

test('a second transaction begins beside the first once it has many operations, and never a third', async () => {
  void groups.process(shardOf('a'));
  await settle();
  void groups.process(shardOf('b', 63));
  await settle();
  expect(transactions.map(({ ids }) => ids)).toEqual([['a']]);
  void groups.process(shardOf('c'));
  await settle();
  for (const id of ['d', 'e', 'f']) void groups.process(shardOf(id, 60));
  await settle();
  expect(transactions.map(({ ids }) => ids)).toEqual([['a'], ['b', 'c']]);
});

test('a large batch goes by itself, and no transaction takes more than its bound', async () => {
  expect(await groups.process(shardOf('large', 65))).toBe(ALONE);
  for (let index = 0; index < 6; index++) void groups.process(shardOf(`s${index}`, 60));
  await settle();
  expect(alone).toEqual(['large']);
  expect(transactions.map(({ ids }) => ids)).toEqual([
    ['s0', 's1', 's2', 's3'],
    ['s4', 's5'],
  ]);
});

test.each([
  [
    'cannot be applied together',
    (transaction: (typeof transactions)[number]) => transaction.end(false),
  ],
  ['fail together', (transaction: (typeof transactions)[number]) => transaction.fail()],
])('batches that %s are applied one by one, each with its own ending', async (_, end) => {
  const outcomes = Promise.all([groups.process(shardOf('a')), groups.process(shardOf('b'))]);
  await settle();
  for (const transaction of transactions) end(transaction);
  expect(await outcomes).toEqual([ALONE, ALONE]);
  expect(alone).toEqual(['a', 'b']);
});

test('a transaction that hangs holds up the next ones for a moment only', async () => {
  void groups.process(shardOf('a'));
  await settle();
  void groups.process(shardOf('b'));
  await vi.advanceTimersByTimeAsync(90);
  expect(transactions).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(20);
  expect(transactions.at(-1)?.ids).toEqual(['b']);
  // The one that hangs counts no more when it ends.
  for (const transaction of transactions) transaction.end();
  await settle();
  for (const id of ['c', 'd', 'e']) {
    void groups.process(shardOf(id));
    await settle();
  }
  expect(transactions.slice(2).map(({ ids }) => ids)).toEqual([['c']]);
});
