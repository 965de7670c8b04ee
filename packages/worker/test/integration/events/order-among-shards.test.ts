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
  relate,
  remove,
  track,
} from '@sluice/domain/testing/sample-operations';
import { svcObjectId } from '@sluice/domain/values/svc-id';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { waitUntilApplied } from '../../../src/events/applied-watch.ts';
import { findEarlierBatches } from '../../../src/events/earlier-batches.ts';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../support/shards-world.ts';

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
    expect((await looking).batches).toEqual([applied]);
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

  test.each<[string, (objectNumber: number) => Operation]>([
    ['type and id', () => deleteObject('acme')],
    [
      'its svc object id',
      (objectNumber) =>
        ({
          ...deleteObject('acme'),
          object: { svcObjectId: svcObjectId(objectNumber) },
        }) as Operation,
    ],
  ])(
    'an object, named by %s, is deleted after the identification of a visitor who was related to it',
    async (_, deletionOf) => {
      const environmentId = world.newEnvironment();
      await world.process(
        inEnvironment(environmentId, identifyObject('acme'), relate('anonymous_id:v', 'acme')),
      );
      const rows = await world.rowsOf('objects', environmentId, 'object_number');
      const deletion = deletionOf(Number(rows[0]?.['object_number']));
      const [identification, removal] = await world.add([
        inEnvironment(environmentId, identify('id:a', {}, { anonymousId: 'v' })),
        inEnvironment(environmentId, deletion),
      ]);
      const pending = world.newPending();
      for (const batch of [removal, identification])
        await world.processToEnd(batch as CommitBatch, pending);
      const kinds = await world.rowsOf('events', environmentId, 'kind');
      expect(kinds.map(({ kind }) => kind)).toContain('add_relationship');
      expect(await world.countOf('relationships', environmentId)).toBe(0);
    },
  );

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
    expect(await findEarlierBatches(world.database, pending, held, undefined, false)).toMatchObject(
      { batches: [] },
    );
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
    const earlier = async (reports: boolean): Promise<readonly PendingBatch[]> =>
      (await findEarlierBatches(world.database, pending, held, undefined, reports)).batches;
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

  test('the look at earlier batches finds the identifiers of people who are merged, and not of others', async () => {
    const environmentId = world.newEnvironment();
    await world.process(
      inEnvironment(
        environmentId,
        identify('id:a', { email: 'a@x.y' }),
        identify('id:b', { email: 'b@x.y' }),
        identify('id:c', { email: 'c@x.y' }),
      ),
    );
    const calls = [identify('id:a', { plan: 'pro' }), identify('id:c', { plan: 'pro' })];
    const merging = inEnvironment(environmentId, ...calls, merge('id:a', 'id:b'));
    const batches = await world.add([inEnvironment(environmentId, identify('id:d')), merging]);
    const pending = world.newPending();
    const batch = (await pending.find((batches[1] as CommitBatch).id)) as PendingBatch;
    const { released = [] } = await findEarlierBatches(
      world.database,
      pending,
      [{ batch, operations: merging }],
      undefined,
      false,
    );
    expect(released.map(({ kind, value }) => `${kind}:${value}`).toSorted()).toEqual([
      'email:a@x.y',
      'email:b@x.y',
      'id:a',
      'id:b',
    ]);
    for (const each of batches) await world.processToEnd(each, pending);
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
});
