/**
 * Batches of several shards in one transaction, on both brokers: whole or not at all, in the order of the log, without
 * harm to each other.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { identify, track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { isContained } from '../../../src/events/apply-in-transaction.ts';
import { applyGroup } from '../../../src/events/group-batches.ts';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, shardOfBatch, type ShardsWorld } from '../support/shards-world.ts';

describe.each(['redis', 'postgres'] as const)('on %s', (broker) => {
  let world: ShardsWorld;
  let environmentId: number;
  beforeAll(async () => {
    world = await createShardsWorld(broker);
  });
  afterAll(() => world.close());
  beforeEach(() => {
    environmentId = world.newEnvironment();
  });

  const addEvents = (people: readonly string[]): Promise<CommitBatch[]> =>
    world.add(people.map((id) => inEnvironment(environmentId, track(`id:${id}`, `of ${id}`))));
  const applyAll = (batches: readonly CommitBatch[], pending = world.newPending()) =>
    applyGroup(
      world.deps,
      batches.map((batch) => ({ batches: [batch], pending })),
    );
  const transactionsOf = async (): Promise<number> => {
    const { rows } = await sql<{ count: number }>`
      select count(distinct xmin::text)::int as count from events
       where environment_id = ${environmentId}`.execute(world.database);
    return rows[0]?.count ?? 0;
  };

  test('batches of unrelated shards are one transaction, and the log forgets them', async () => {
    const batches = await addEvents(['a', 'b', 'c', 'd', 'e']);
    expect(new Set(batches.map(shardOfBatch)).size).toBeGreaterThan(1);
    const pending = world.newPending();
    const outcomes = await applyAll(batches.toReversed(), pending);
    expect(outcomes?.map((each) => each.outcome === 'applied' && each.operations)).toEqual([
      1, 1, 1, 1, 1,
    ]);
    expect(await world.eventNames(environmentId)).toHaveLength(5);
    expect(await transactionsOf()).toBe(1);
    await vi.waitFor(async () => {
      const left = world.newPending();
      for (const { id } of batches) expect(await left.find(id)).toBeUndefined();
    }, 30_000);
  });

  test('batches about one person are applied in the order of the log, also if they came in another order', async () => {
    const batches = await world.add(
      [1, 2, 3].flatMap((value) => [
        inEnvironment(environmentId, identify('id:p', { email: 'p@x.y', value })),
        inEnvironment(environmentId, identify('email:p@x.y', { other: value })),
      ]),
    );
    expect(await applyAll(batches.toReversed())).toHaveLength(6);
    const [person] = await world.rowsOf('people', environmentId);
    expect(person?.['attributes']).toMatchObject({ value: 3, other: 3 });
  });

  test('if an earlier batch outside the group names the same person, the group is not applied', async () => {
    const [earlier, later] = (await world.add([
      inEnvironment(environmentId, identify('id:p', { email: 'p@x.y', value: 1 })),
      inEnvironment(environmentId, identify('email:p@x.y', { value: 2 })),
    ])) as [CommitBatch, CommitBatch];
    const others = await addEvents(['a', 'b']);
    const pending = world.newPending();
    expect(await applyAll([later, ...others], pending)).toBeUndefined();
    expect(await world.eventNames(environmentId)).toEqual([]);
    expect(await applyAll([earlier, later, ...others], pending)).toHaveLength(4);
    expect((await world.rowsOf('people', environmentId))[0]?.['attributes']).toMatchObject({
      value: 2,
    });
  });

  test('one that was applied before, and one that Postgres refuses, leave the others to be applied by themselves', async () => {
    const [done, poisoned, whole] = (await world.add([
      inEnvironment(environmentId, track('id:a', 'done')),
      inEnvironment(environmentId, {
        ...track('id:b', 'poisoned'),
        occurredAtMs: 'never' as never,
      }),
      inEnvironment(environmentId, track('id:c', 'whole')),
    ])) as [CommitBatch, CommitBatch, CommitBatch];
    // By another worker, which has died before the log forgot it.
    await processCommitBatch(world.deps, done);
    await expect(applyAll([done, whole])).rejects.toThrow('applied before');
    await expect(applyAll([poisoned, whole])).rejects.toSatisfy(isContained);
    expect(await world.eventNames(environmentId)).toEqual(['done']);
    const pending = world.newPending();
    for (const batch of [done, poisoned, whole]) await world.processToEnd(batch, pending);
    expect(await world.eventNames(environmentId)).toEqual(['done', 'whole']);
  });
});
