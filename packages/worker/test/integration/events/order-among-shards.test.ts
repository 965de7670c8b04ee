/**
 * Calls about one person take effect in the order of their addition.
 *
 * That holds for any identifiers that they name, and for any shard that is processed first. On both brokers; batches
 * are processed by hand, in an order that each test chooses.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  deleteObject,
  identify,
  identifyObject,
  merge,
  metric,
  relate,
  remove,
  track,
} from '@sluice/domain/testing/sample-operations';
import { svcId, svcObjectId } from '@sluice/domain/values/svc-id';
import type { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { waitUntilApplied } from '../../../src/events/applied-watch.ts';
import { findEarlierBatches } from '../../../src/events/earlier-batches.ts';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { someOperations, withSvcIds } from '../support/random-operations.ts';
import { createShardsWorld, shardOfBatch, type ShardsWorld } from '../support/shards-world.ts';

describe.each(['redis', 'postgres'] as const)('on %s', (broker) => {
  let world: ShardsWorld;
  beforeAll(async () => {
    world = await createShardsWorld(broker);
  });
  afterAll(() => world.close());

  test('an event by email that was added before a merge by id is moved by the merge', async () => {
    const environmentId = world.newEnvironment();
    await world.process(
      inEnvironment(environmentId, identify('id:s', { email: 's@x.y' }), identify('id:p')),
    );
    const [event, merged] = (await world.add([
      inEnvironment(environmentId, track('email:s@x.y', 'bought')),
      inEnvironment(environmentId, merge('id:p', 'id:s')),
    ])) as [CommitBatch, CommitBatch];
    const pending = world.newPending();
    expect(await processCommitBatch(world.deps, merged, [], pending)).toMatchObject({
      outcome: 'applied',
    });
    expect(await world.stateOf(environmentId)).toMatchObject({
      events: [JSON.stringify({ name: 'bought', id: 'p', email: 's@x.y' })],
    });
    expect(await processCommitBatch(world.deps, event, [], pending)).toEqual({
      outcome: 'already-applied',
    });
  });

  test('a deletion by email that was added after an update by id leaves no person', async () => {
    const environmentId = world.newEnvironment();
    await world.process(inEnvironment(environmentId, identify('id:a', { email: 'a@x.y' })));
    const [update, removal] = await world.add([
      inEnvironment(environmentId, identify('id:a', { plan: 'pro' })),
      inEnvironment(environmentId, remove('email:a@x.y')),
    ]);
    const pending = world.newPending();
    await world.processToEnd(removal as CommitBatch, pending);
    await world.processToEnd(update as CommitBatch, pending);
    expect(await world.countOf('people', environmentId)).toBe(0);
  });

  // The anonymous id looks like an email, so the alias names it as one, in small letters.
  test('an alias identifies a visitor whose anonymous id is an email with capitals, in order', async () => {
    const environmentId = world.newEnvironment();
    const [trait, alias] = (await world.add([
      inEnvironment(environmentId, identify('anonymous_id:V@X.y', { plan: 'pro' })),
      inEnvironment(environmentId, { ...merge('id:p', 'email:V@X.y'), isAlias: true } as Operation),
    ])) as [CommitBatch, CommitBatch];
    const pending = world.newPending();
    await world.processToEnd(alias, pending);
    await world.processToEnd(trait, pending);
    expect(
      await world.rowsOf('people', environmentId, `id, attributes ->> 'plan' as plan`),
    ).toEqual([{ id: 'p', plan: 'pro' }]);
  });

  // Its person has another name by then, under which a call between them may be waiting.
  test('a batch that is applied while the names of people are looked up is looked at again', async () => {
    const environmentId = world.newEnvironment();
    await world.process(inEnvironment(environmentId, identify('id:a')));
    const [given, between, removal] = (await world.add([
      inEnvironment(environmentId, identify('id:a', { email: 'a@x.y' })),
      inEnvironment(environmentId, track('email:a@x.y', 'bought')),
      inEnvironment(environmentId, remove('id:a')),
    ])) as [CommitBatch, CommitBatch, CommitBatch];
    const pending = world.newPending();
    const [applied, held] = await Promise.all(
      [given, removal].map(async ({ id }) => (await pending.find(id)) as PendingBatch),
    );
    const operations = inEnvironment(environmentId, remove('id:a'));
    const looking = findEarlierBatches(
      world.database,
      pending,
      [{ batch: held as PendingBatch, operations }],
      undefined,
      false,
    );
    pending.forget([applied as PendingBatch]);
    expect(await looking).toEqual([applied]);
    for (const batch of [given, between, removal]) await world.processToEnd(batch, pending);
    expect(await world.countOf('people', environmentId)).toBe(0);
  });

  test('a call of more items than one transaction takes of others is applied whole, in the order of its items', async () => {
    const environmentId = world.newEnvironment();
    await world.process(inEnvironment(environmentId, identify('id:a', { email: 'a@x.y' })));
    const names = Array.from({ length: 2_400 }, (_, n) => `n${n}`);
    const instant = { occurredAtMs: 1_769_860_000_000 };
    const parts = await world.add([
      inEnvironment(
        environmentId,
        ...names.map((name, n) => track(n % 7 === 3 ? 'email:a@x.y' : 'id:a', name, instant)),
      ),
    ]);
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) await world.processToEnd(part, world.newPending());
    const { rows: listed } = await sql<{ name: string }>`
      select name from events where environment_id = ${environmentId} and name is not null order by received_at`.execute(
      world.database,
    );
    expect(listed.map(({ name }) => name)).toEqual(names);
  });

  test('the names in the oldest waiting batch bring along the batches between', async () => {
    const environmentId = world.newEnvironment();
    const [made, removal, other] = await world.add([
      inEnvironment(environmentId, identify('id:a', { email: 'a@x.y' })),
      inEnvironment(environmentId, remove('id:a')),
      inEnvironment(environmentId, identify('id:b', { email: 'a@x.y' })),
    ]);
    const pending = world.newPending();
    for (const batch of [other, removal, made])
      await world.processToEnd(batch as CommitBatch, pending);
    expect(await world.rowsOf('people', environmentId, 'id, email')).toEqual([
      { id: 'b', email: 'a@x.y' },
    ]);
  });

  test('an object is one object, whether it is named by type and id or by its svc object id', async () => {
    const environmentId = world.newEnvironment();
    await world.process(
      inEnvironment(environmentId, identifyObject('acme', { first: true }), relate('id:p', 'acme')),
    );
    const rows = await world.rowsOf('objects', environmentId, 'object_number');
    const bySvcId = { svcObjectId: svcObjectId(Number(rows[0]?.['object_number'])) };
    const entries = [{ object: bySvcId, attributes: { role: 'owner' } }];
    const [removal, update, related] = await world.add([
      inEnvironment(environmentId, {
        ...deleteObject('acme'),
        object: bySvcId,
      } as Operation),
      inEnvironment(environmentId, identifyObject('acme', { second: true })),
      inEnvironment(environmentId, { ...relate('id:q', 'acme'), entries } as Operation),
    ]);
    const pending = world.newPending();
    for (const batch of [related, update, removal])
      await world.processToEnd(batch as CommitBatch, pending);
    expect(await world.rowsOf('objects', environmentId, 'attributes')).toEqual([
      { attributes: { second: true } },
    ]);
    expect(await world.countOf('relationships', environmentId)).toBe(0);
  });

  test('a batch waits by the clock, however often others are applied meanwhile', async () => {
    const environmentId = world.newEnvironment();
    const [batch] = await world.add([inEnvironment(environmentId, identify('id:a'))]);
    const pending = world.newPending();
    const found = (await pending.find((batch as CommitBatch).id)) as PendingBatch;
    // As if this process applied others all the time.
    vi.spyOn(pending, 'changed').mockImplementation(() => new Promise(setImmediate));
    const startedAtMs = performance.now();
    expect(await waitUntilApplied(world.database, pending, [found], 300)).toBe(0);
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(300);
  });

  test('a batch that was applied before waits for no batch, with any names in its part of the log', async () => {
    const environmentId = world.newEnvironment();
    const calls = [
      identify('anonymous_id:v1', { plan: 'pro' }),
      identify('anonymous_id:v2', { plan: 'pro' }),
      track('id:a', 'bought'),
    ].map((call) => inEnvironment(environmentId, call));
    const batches = await world.add(calls);
    const pending = world.newPending();
    const [, applied, event] = await Promise.all(
      batches.map(async ({ id }) => (await pending.find(id)) as PendingBatch),
    );
    const held = [
      { batch: applied as PendingBatch, operations: [] },
      { batch: event as PendingBatch, operations: calls[2] as Operation[] },
    ];
    expect(await findEarlierBatches(world.database, pending, held, undefined, false)).toEqual([]);
    for (const batch of batches) await world.processToEnd(batch, pending);
  });

  test('events of one person wait for a change of the person, and for each other if they are reported', async () => {
    const environmentId = world.newEnvironment();
    await world.process(inEnvironment(environmentId, identify('id:a', { email: 'a@x.y' })));
    const calls = [track('email:a@x.y', 'first'), track('id:a', 'second')];
    const batches = await world.add(calls.map((call) => inEnvironment(environmentId, call)));
    const pending = world.newPending();
    const [first, second] = await Promise.all(
      batches.map(async ({ id }) => (await pending.find(id)) as PendingBatch),
    );
    const held = [
      {
        batch: second as PendingBatch,
        operations: inEnvironment(environmentId, calls[1] as Operation),
      },
    ];
    const earlier = (reports: boolean): Promise<PendingBatch[]> =>
      findEarlierBatches(world.database, pending, held, undefined, reports);
    expect(await earlier(false)).toEqual([]);
    expect(await earlier(true)).toEqual([first]);
    const [removal, third] = await world.add([
      inEnvironment(environmentId, remove('email:a@x.y')),
      inEnvironment(environmentId, track('id:a', 'third')),
    ]);
    for (const batch of [third, ...batches, removal])
      await world.processToEnd(batch as CommitBatch, pending);
    expect(await world.stateOf(environmentId)).toMatchObject({
      events: [
        JSON.stringify({ name: 'first', id: null, email: null }),
        JSON.stringify({ name: 'second', id: null, email: null }),
        JSON.stringify({ name: 'third', id: 'a', email: null }),
      ],
    });
  });

  test('a batch about another person is not applied early', async () => {
    const environmentId = world.newEnvironment();
    const [other, own] = await world.add([
      inEnvironment(environmentId, identify('id:one')),
      inEnvironment(environmentId, identify('id:two')),
    ]);
    const pending = world.newPending();
    await world.processToEnd(own as CommitBatch, pending);
    expect(await world.rowsOf('people', environmentId, 'id')).toEqual([{ id: 'two' }]);
    await world.processToEnd(other as CommitBatch, pending);
    expect(await world.countOf('people', environmentId)).toBe(2);
  });

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
