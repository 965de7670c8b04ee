/** Parts of batches that are logged and reach their queue late. */
import { beginParts } from '@sluice/database/events/commit-batch-parts';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, merge, track } from '@sluice/domain/testing/sample-operations';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TenantPending } from '../../../../src/events/apart/tenant-pending.ts';
import { partOf } from '../../../../src/events/apart/tenant-parts.ts';
import { processCommitBatch } from '../../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../../support/shards-world.ts';

let world: ShardsWorld;
beforeAll(async () => {
  world = await createShardsWorld('redis');
});
afterAll(() => world.close());

test('a part that is queued after it was waited for comes before the later calls about its person', async () => {
  const environmentId = world.newEnvironment();
  await world.process(
    inEnvironment(environmentId, identify('id:s', { email: 's@x.y' }), identify('id:p')),
  );
  const add = (...calls: Operation[]) =>
    world.add(calls.map((call) => inEnvironment(environmentId, call)));
  const [first, second] = (await add(
    track('email:s@x.y', 'bought'),
    identify('id:s', { step: 1 }),
  )) as [CommitBatch, CommitBatch];
  await world.takeFromQueues([first]);

  const deps = { ...world.deps, waitMsMax: 0, unqueuedMsMax: 0 };
  const parts = new TenantPending(world.database, world.newPending(), () => undefined);
  const apply = async (batch: CommitBatch): Promise<void> => {
    await beginParts(world.database, [batch.id]);
    const part = partOf(batch, environmentId);
    await parts.learn(part, environmentId);
    const view = parts.of(environmentId);
    while ((await processCommitBatch(deps, part, [], view)).outcome === 'waiting');
  };
  await apply(second);
  expect(await world.eventNames(environmentId)).toEqual([]);
  await world.addAgain([first]);
  const [merged] = (await add(merge('id:p', 'id:s'))) as [CommitBatch];
  await apply(merged);
  // Behind the merge the email would name a new person.
  const bought = JSON.stringify({ name: 'bought', id: 'p', email: 's@x.y' });
  expect(await world.stateOf(environmentId)).toMatchObject({ events: [bought] });
});
