/**
 * Two workers that both hold one shard.
 *
 * That happens in the second after somebody has emptied Redis, and its limit of one at a time with it. Each takes a
 * commit batch and reads the same others behind it.
 */
import { track } from '@sluice/domain/testing/sample-operations';
import { expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';
import { createCommitBatchWorld, inEnvironment } from '../support/commit-batch-world.ts';

const WORKERS = 4;
const COMMIT_BATCHES = 60;
const READ_BEHIND = 6;

test('workers of one shard apply every commit batch once, also if several of them read it', async () => {
  const world = await createCommitBatchWorld();
  const environmentId = world.newEnvironment();
  const commitBatches = Array.from({ length: COMMIT_BATCHES }, (_, index) => ({
    id: world.newId(),
    operations: inEnvironment(
      environmentId,
      ...['ann', 'ben', `only ${index}`].map((id) => track(`id:${id}`, `${id} ${index}`)),
    ),
  }));
  let taken = 0;
  const applied: number[] = [];
  const work = async (): Promise<void> => {
    const deps = { ...world.deps, takenIds: new TakenIdWatch() };
    for (let place = taken++; place < COMMIT_BATCHES; place = taken++) {
      const [first, ...behind] = commitBatches.slice(place, place + 1 + READ_BEHIND);
      if (!first) return;
      const result = await processCommitBatch(deps, first, behind);
      if (result.outcome === 'applied') applied.push(result.operations);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  const names = commitBatches.flatMap(({ operations }) =>
    operations.flatMap((each) => (each.type === 'event.track' ? each.name : [])),
  );
  const stored = await world.eventNames(environmentId);
  expect(stored).toHaveLength(names.length);
  expect(new Set(stored)).toEqual(new Set(names));
  expect(applied.reduce((sum, count) => sum + count, 0)).toBe(names.length);
  // An operation that ran twice would be recorded as an event that came again.
  expect(await world.countOf('ingestion_issues', environmentId)).toBe(0);
});
