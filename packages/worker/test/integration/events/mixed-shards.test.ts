/**
 * Any order of shards ends as one call after another.
 *
 * Random calls on both brokers; two processes apply the batches of each shard in their order, and shards in any order.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, merge, metric, remove, track } from '@sluice/domain/testing/sample-operations';
import { svcId } from '@sluice/domain/values/svc-id';
import type { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { someOperations, withSvcIds } from '../support/random-operations.ts';
import { createShardsWorld, shardOfBatch, type ShardsWorld } from '../support/shards-world.ts';

describe.each(['redis', 'postgres'] as const)('on %s', (broker) => {
  let world: ShardsWorld;
  beforeAll(async () => {
    world = await createShardsWorld(broker);
  });
  afterAll(() => world.close());

  test('any order of shards in any process ends in the same state as one call after another', async () => {
    const names = ['id:a', 'id:b', 'id:c', 'email:a@x.y', 'email:b@x.y'] as const;
    const name = fc.constantFrom(...names);
    const email = fc.constantFrom('a@x.y', 'b@x.y');
    const operation = fc.oneof(
      fc.tuple(name, fc.nat(9)).map(([who, plan]) => identify(who, { plan })),
      fc
        .tuple(fc.constantFrom('id:a', 'id:b', 'id:c'), email)
        .map(([who, given]) => identify(who, { email: given })),
      name.map((who) => remove(who)),
      fc.tuple(name, name).map(([primary, secondary]) => merge(primary, secondary)),
      fc.tuple(name, fc.nat(9)).map(([who, number]) => track(who, `event ${number}`)),
    );
    const call = fc.array(operation, { minLength: 1, maxLength: 4 });
    const calls = fc.array(call, { minLength: 2, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(calls, fc.infiniteStream(fc.nat()), async (some, choices) => {
        const inOrder = world.newEnvironment();
        for (const operations of some)
          await world.process(renewed(inEnvironment(inOrder, ...operations)));
        const mixed = world.newEnvironment();
        const added = await world.add(some.map((each) => renewed(inEnvironment(mixed, ...each))));
        await applyMixed(added, choices);
        expect(await world.stateOf(mixed)).toEqual(await world.stateOf(inOrder));
      }),
      { numRuns: 30 },
    );
  }, 300_000);

  test('calls of every kind end in the same state, in any order of shards', async () => {
    // Of two events with one id, either may count; a report by an address is in the tests above.
    const isOrdered = (each: Operation): boolean =>
      each.type !== 'metric.report' && !(each.type === 'event.track' && each.name === 'again');
    const call = someOperations
      .map((operations) => operations.filter(isOrdered))
      .filter((operations) => operations.length > 0);
    const calls = fc.array(call, { minLength: 2, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(calls, fc.infiniteStream(fc.nat()), async (some, choices) => {
        const inOrder = await workspaceOfTwo(world);
        for (const operations of some) await world.process(inOrder.own(operations));
        const mixed = await workspaceOfTwo(world);
        await applyMixed(await world.add(some.map(mixed.own)), choices);
        expect(await peopleIn(world, mixed.environmentId)).toEqual(
          await peopleIn(world, inOrder.environmentId),
        );
      }),
      { numRuns: 60 },
    );
  }, 600_000);

  /** Two processes; each shard's batches in their order, but shards in any. */
  async function applyMixed(
    added: readonly CommitBatch[],
    choices: Iterator<number>,
  ): Promise<void> {
    const processes = [world.newPending(), world.newPending()];
    const queues = [...Map.groupBy(added, shardOfBatch).values()];
    while (queues.length > 0) {
      const choice = choices.next().value as number;
      const queue = queues[choice % queues.length] as CommitBatch[];
      const batch = queue.shift() as CommitBatch;
      if (queue.length === 0) queues.splice(queues.indexOf(queue), 1);
      await world.processToEnd(batch, processes[choice % 2] as PendingBatches);
    }
  }
});

/** People 1 and 2, whom operations name by svc_id too; the first one has got a message. */
async function workspaceOfTwo(world: ShardsWorld) {
  const environmentId = world.newEnvironment();
  const recipient = 'a@x';
  await world.process(
    inEnvironment(
      environmentId,
      identify('id:1', { email: recipient }),
      identify('id:2'),
      metric('delivery', 'opened', { recipient }),
    ),
  );
  const { rows } = await sql<{ personId: string }>`
    select person_id as "personId" from people where environment_id = ${environmentId} order by id`.execute(
    world.database,
  );
  const [first = '', second = ''] = rows.map(({ personId }) => svcId(Number(personId)));
  const own = (operations: readonly Operation[]): Operation[] =>
    inEnvironment(environmentId, ...withSvcIds(operations, [first, second]));
  return { environmentId, own };
}

/** People by their names, with all that is theirs, and the names that are blocked together. */
async function peopleIn({ database }: ShardsWorld, environmentId: number): Promise<string[]> {
  const { rows } = await sql<object>`
    select p.id, p.email, p.phone, p.attributes, p.unsubscribed, p.attributes_at, owners.names,
           (select jsonb_object_agg(d.token, d.attributes) from devices d
             where d.environment_id = ${environmentId} and d.person_id = owners.person_id) as devices,
           (select jsonb_object_agg(o.object_id, r.attributes) from relationships r
              join objects o using (environment_id, object_number)
             where r.environment_id = ${environmentId} and r.person_id = owners.person_id) as related,
           (select jsonb_agg(e.event_id order by e.event_id) from events e
             where e.environment_id = ${environmentId} and e.person_id = owners.person_id and e.kind = 'event'
               and p.person_id is not null) as events
      from (
        select person_id, jsonb_agg(kind || ':' || value || ':' || suppressed order by kind, value) as names
          from person_identifiers where environment_id = ${environmentId} and person_id is not null group by person_id
        union all
        select person_id, null from people p
         where environment_id = ${environmentId} and not exists (
           select from person_identifiers i where i.environment_id = ${environmentId} and i.person_id = p.person_id)
      ) as owners
      left join people p on p.environment_id = ${environmentId} and p.person_id = owners.person_id`.execute(
    database,
  );
  return rows.map((row) => JSON.stringify(row)).toSorted();
}

/** Event ids are unique in a workspace alone, but the two runs must not share operations. */
const renewed = (operations: readonly Operation[]): Operation[] =>
  operations.map((operation) => ({ ...operation }));
