/**
 * Two workers that both hold one shard of divided batches.
 *
 * One was stopped, and has a batch in memory that the other one has divided, applied or ended.
 */
import { beginParts } from '@sluice/database/events/commit-batch-parts';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { track } from '@sluice/domain/testing/sample-operations';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { processCommitBatch } from '../../../../src/events/process-commit-batch.ts';
import { createApartWorker } from './apart-worker.ts';
import { inEnvironment } from '../../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../../support/shards-world.ts';

let world: ShardsWorld;
let one: number;
let other: number;
beforeAll(async () => {
  world = await createShardsWorld('redis');
});
afterAll(() => world.close());
beforeEach(() => {
  one = world.newEnvironment();
  other = world.newEnvironment();
});

const createWorker = (behind?: readonly CommitBatch[]) => createApartWorker(world, behind);
const operations = (name: string): Operation[] =>
  [one, other].flatMap((environmentId) => inEnvironment(environmentId, track('id:a', name)));
const newBatch = (name: string): CommitBatch => ({
  id: world.newId(),
  operations: operations(name),
});
const names = async () => [await world.eventNames(one), await world.eventNames(other)];
const DONE = { outcome: 'done' };

test('a batch that another worker has divided is not applied as a whole', async () => {
  const batch = newBatch('seen');
  await beginParts(world.database, [batch.id]);
  await expect(processCommitBatch(world.deps, batch)).rejects.toThrow(/workspace by workspace/);
  expect(await names()).toEqual([[], []]);
  expect(await createWorker().process(batch)).toMatchObject(DONE);
  expect(await names()).toEqual([['seen'], ['seen']]);
  // Its end is known: it is applied, as by a worker that never divides.
  expect(await processCommitBatch(world.deps, batch)).toEqual({ outcome: 'already-applied' });
  expect(await createWorker().process(batch)).toMatchObject(DONE);
  expect(await names()).toEqual([['seen'], ['seen']]);
});

test('a batch that was applied as a whole is not applied in parts', async () => {
  const batch = newBatch('seen');
  await processCommitBatch(world.deps, batch);
  const worker = createWorker();
  const divided = newBatch('divided');
  await beginParts(world.database, [divided.id]);
  expect(await worker.process(divided)).toMatchObject(DONE);
  // It goes on workspace by workspace.
  expect(await worker.process(batch)).toMatchObject(DONE);
  expect(await names()).toEqual([
    ['seen', 'divided'],
    ['seen', 'divided'],
  ]);
});

test('the parts of a divided batch are applied once by two workers at once', async () => {
  const batches = Array.from({ length: 20 }, (_, index) => newBatch(`${index}`));
  await beginParts(
    world.database,
    batches.map(({ id }) => id),
  );
  const [first, ...behind] = batches as [CommitBatch, ...CommitBatch[]];
  const workers = [createWorker(behind), createWorker(behind), createWorker(behind)];
  expect(await Promise.all(workers.map((worker) => worker.process(first)))).toEqual([
    DONE,
    DONE,
    DONE,
  ]);
  const expected = batches.map((_, index) => `${index}`);
  for (const each of await names()) expect(new Set(each)).toEqual(new Set(expected));
  expect((await names()).map(({ length }) => length)).toEqual([20, 20]);
  for (const environmentId of [one, other])
    expect(await world.countOf('ingestion_issues', environmentId)).toBe(0);
});

test('a worker that has lost its shard applies no batch behind the one that another has in progress', async () => {
  const [head, behind, divided] = ['head', 'behind', 'divided'].map(newBatch) as [
    CommitBatch,
    CommitBatch,
    CommitBatch,
  ];
  await beginParts(world.database, [head.id, divided.id]);
  const queue: CommitBatch[] = [];
  const stale = createWorker(queue);
  // It goes on workspace by workspace.
  expect(await stale.process(divided)).toMatchObject(DONE);
  expect(await createWorker().process(head)).toMatchObject(DONE);
  // Another one has the batch after `head`, so this one does not read it.
  queue.push(behind);
  expect(await stale.process(head)).toMatchObject(DONE);
  expect(new Set((await names())[0])).toEqual(new Set(['divided', 'head']));
});
