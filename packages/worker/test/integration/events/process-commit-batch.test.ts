/** One commit batch against a real Postgres: exactly once, in few statements, and its deliveries. */
import { isDatabaseAway } from '@sluice/database/connection/database-away';
import { isDistributed } from '@sluice/database/connection/tenant-statements';
import { makeEventPartitions } from '@sluice/database/events/events';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, relate, track } from '@sluice/domain/testing/sample-operations';
import { sql, type KyselyPlugin } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';

let world: CommitBatchWorld;

beforeAll(async () => {
  world = await createCommitBatchWorld();
});

/** Three, each with one event of the same person: `event-a`, `event-b` and `event-c`. */
function namedCommitBatches(
  environmentId: number,
): readonly [CommitBatch, CommitBatch, CommitBatch] {
  const commitBatchOf = (name: string): CommitBatch => ({
    id: world.newId(),
    operations: inEnvironment(environmentId, track('id:1', name, { eventId: `event-${name}` })),
  });
  return [commitBatchOf('a'), commitBatchOf('b'), commitBatchOf('c')];
}

describe('exactly once', () => {
  it('has one effect when a commit batch is run twice, one after the other or both at once', async () => {
    const environmentId = world.newEnvironment();
    const commitBatch = {
      id: world.newId(),
      operations: inEnvironment(
        environmentId,
        identify('id:1', { unsubscribed: true }),
        track('id:1', 'a'),
      ),
    };
    const both = await Promise.all([
      processCommitBatch(world.deps, commitBatch),
      processCommitBatch(world.deps, commitBatch),
    ]);
    expect(both.map((result) => result.outcome).toSorted()).toEqual(['already-applied', 'applied']);
    expect(await processCommitBatch(world.deps, commitBatch)).toEqual({
      outcome: 'already-applied',
    });
    expect(await world.eventNames(environmentId)).toEqual(['a']);
    expect(await world.countOf('people', environmentId)).toBe(1);
  });

  it('applies waiting batches behind it with it, each once and under its own number', async () => {
    const environmentId = world.newEnvironment();
    const [first, second, third] = namedCommitBatches(environmentId);
    await processCommitBatch(world.deps, second);
    const results = await Promise.all([
      processCommitBatch(world.deps, first, [second, third]),
      processCommitBatch(world.deps, first, [second]),
    ]);
    expect(results.map(({ outcome }) => outcome).toSorted()).toContain('applied');
    await processCommitBatch(world.deps, third);
    const { rows } = await sql<{ eventId: string; envelopeId: string }>`
      select event_id as "eventId", envelope_id as "envelopeId" from event_ids join envelopes using (envelope_number)
       where environment_id = ${environmentId} order by event_id`.execute(world.database);
    expect(rows).toEqual([
      { eventId: 'event-a', envelopeId: first.id },
      { eventId: 'event-b', envelopeId: second.id },
      { eventId: 'event-c', envelopeId: third.id },
    ]);
    expect(await world.eventNames(environmentId)).toHaveLength(3);
  });

  it('leaves the batches behind it alone if it is applied already, so they follow one in progress elsewhere', async () => {
    const environmentId = world.newEnvironment();
    const [first, inProgressElsewhere, third] = namedCommitBatches(environmentId);
    await processCommitBatch(world.deps, first);
    expect(await processCommitBatch(world.deps, first, [third])).toEqual({
      outcome: 'already-applied',
    });
    await processCommitBatch(world.deps, inProgressElsewhere, [third]);
    const { rows } = await sql<{ eventId: string }>`
      select event_id as "eventId" from event_ids
       where environment_id = ${environmentId} order by envelope_number`.execute(world.database);
    expect(rows.map(({ eventId }) => eventId)).toEqual(['event-a', 'event-b', 'event-c']);
  });

  it('goes by itself if one behind it cannot be applied', async () => {
    const environmentId = world.newEnvironment();
    const good = {
      id: world.newId(),
      operations: inEnvironment(environmentId, track('id:1', 'a')),
    };
    const newer = {
      type: 'of.a.newer.version',
      environmentId,
      receivedAtMs: 0,
    } as unknown as Operation;
    const bad = { id: world.newId(), operations: [newer] };
    expect(await processCommitBatch(world.deps, good, [bad])).toMatchObject({
      outcome: 'applied',
      envelopes: 1,
    });
    expect(await world.eventNames(environmentId)).toEqual(['a']);
    await expect(processCommitBatch(world.deps, bad)).rejects.toThrow('of.a.newer.version');
  });

  it('applies a commit batch whose first run was cut at any statement, whole and once', async () => {
    const environmentId = world.newEnvironment();
    const operations = inEnvironment(
      environmentId,
      identify('id:1', { plan: 'pro' }, { anonymousId: 'z' }),
      track('id:1', 'a'),
      relate('id:1', 'acme'),
      track('svc_id:a3ffffff', 'nobody'),
    );
    const commitBatch = { id: world.newId(), operations };
    let cutAfter = 0;
    for (let isApplied = false; !isApplied; cutAfter++) {
      const cutting = world.database.withPlugin(cuttingConnection(cutAfter));
      try {
        isApplied =
          (await processCommitBatch({ ...world.deps, database: cutting }, commitBatch)).outcome ===
          'applied';
      } catch (error) {
        expect(isDatabaseAway(error)).toBe(true);
        expect(await world.countOf('people', environmentId)).toBe(0);
        expect(await world.countOf('event_ids', environmentId)).toBe(0);
        expect(await world.countOf('ingestion_issues', environmentId)).toBe(0);
      }
    }
    expect(cutAfter).toBeGreaterThan(8);
    expect(await world.eventNames(environmentId)).toEqual(['a']);
    expect(await world.countOf('people', environmentId)).toBe(1);
    expect(await world.countOf('relationships', environmentId)).toBe(1);
  });

  it('counts an event id once: in one commit batch, in others, at the same time, from both APIs', async () => {
    const environmentId = world.newEnvironment();
    const event = (name: string) => track('id:1', name, { eventId: 'same' });
    await world.process(inEnvironment(environmentId, event('a'), event('b')));
    // A Pipelines messageId and a Track id are one kind of thing by now; the person may differ.
    await world.process(inEnvironment(environmentId, track('email:c@x', 'c', { eventId: 'same' })));
    expect(await world.eventNames(environmentId)).toEqual(['a']);
    const rows = await world.rowsOf(
      'ingestion_issues',
      environmentId,
      'code, count, field, source',
    );
    expect(rows).toEqual([
      { code: 'duplicate_event', count: '2', field: 'id', source: 'event.track' },
    ]);

    const atOnce = Array.from({ length: 8 }, (_, index) =>
      inEnvironment(environmentId, track('id:1', `d${index}`, { eventId: 'at once' })),
    );
    await Promise.all(atOnce.map((operations) => world.process(operations)));
    expect(
      (await world.eventNames(environmentId)).filter((name) => String(name).startsWith('d')),
    ).toHaveLength(1);

    const elsewhere = world.newEnvironment();
    await world.process(inEnvironment(elsewhere, event('a')));
    expect(await world.eventNames(elsewhere)).toEqual(['a']);
  });
});

describe('the number of statements', () => {
  it('is the same for one operation of each kind and for a thousand', async () => {
    const environmentId = world.newEnvironment();
    const mixed = (index: number): Operation[] => [
      identify(`id:${index}`, { email: `p${index}@x`, plan: 'pro', unsubscribed: index % 2 === 0 }),
      track(`id:${index}`, 'seen'),
      track(`anonymous_id:z${index}`, 'seen'),
      relate(`id:${index}`, `object-${index}`),
      track('svc_id:a3fffffff', 'nobody'),
    ];
    const operationsOf = (count: number, from: number) =>
      inEnvironment(
        environmentId,
        ...Array.from({ length: count }, (_, index) => mixed(from + index)).flat(),
      );
    await world.process(operationsOf(1, 0));
    await world.deps.numbers.reserve(world.database, 10_000);
    const one = await countStatements(operationsOf(1, 1_000));
    const thousand = await countStatements(operationsOf(200, 2_000));
    expect(thousand).toBe(one);
    // Again: the same people, now known.
    const oneKnown = await countStatements(operationsOf(1, 1_000));
    expect(await countStatements(operationsOf(200, 2_000))).toBe(oneKnown);
  });

  it('is four for events of people who are known, besides begin and commit', async () => {
    const environmentId = world.newEnvironment();
    const events = (count: number) =>
      inEnvironment(
        environmentId,
        ...Array.from({ length: count }, (_, index) => track(`id:${index % 100}`, 'seen')),
      );
    await world.process(events(100));
    // An earlier test repeated an id, so ids are looked up; on Citus by a statement of its own.
    const count = (await isDistributed(world.database)) ? 5 : 4;
    expect(await countStatements(events(1))).toBe(count);
    expect(await countStatements(events(1_000))).toBe(count);
  });
});

describe('reporting', () => {
  it('logs a delivery for each enabled webhook that chose the event, and names its lane once', async () => {
    const environmentId = world.newEnvironment();
    const webhookIds: number[] = [];
    for (const events of [
      ['customer_unsubscribed', 'customer_subscribed'],
      ['customer_subscribed'],
      ['email_opened'],
    ]) {
      const { rows } = await sql<{ id: number }>`
        with made as (
          insert into webhooks (environment_id, name, endpoint, events, signing_key)
          values (${environmentId}, 'w', 'http://127.0.0.1:9/', ${events}, 'key') returning environment_id, webhook_id
        ), lane as (insert into lanes (environment_id, webhook_id) select * from made)
        select webhook_id as id from made`.execute(world.database);
      webhookIds.push(rows[0]?.id ?? 0);
    }
    const result = await world.process(
      inEnvironment(
        environmentId,
        identify('id:1', { unsubscribed: true }),
        identify('id:1', { unsubscribed: false }),
        identify('id:2', { plan: 'pro' }),
      ),
    );
    expect(result).toMatchObject({ outcome: 'applied', counts: { reports: 2 } });
    expect(result.outcome === 'applied' && result.lanes.map((lane) => lane.webhookId)).toEqual(
      expect.arrayContaining(webhookIds.slice(0, 2)),
    );
    expect(result).toMatchObject({ lanes: { length: 2 } });
    expect(await world.countOf('delivery_log', environmentId)).toBe(3);
  });
});

describe('partitions of events', () => {
  it('are made ahead once, and an event of any time has a place', async () => {
    expect(await makeEventPartitions(world.database, 6)).toBeGreaterThan(0);
    expect(await makeEventPartitions(world.database, 6)).toBe(0);
    const environmentId = world.newEnvironment();
    await world.process(
      inEnvironment(
        environmentId,
        { ...track('id:1', 'ancient'), receivedAtMs: 0 },
        { ...track('id:1', 'far'), receivedAtMs: Date.UTC(2200, 0) },
      ),
    );
    expect(await world.eventNames(environmentId)).toHaveLength(2);
  });
});

async function countStatements(operations: Operation[]): Promise<number> {
  let count = 0;
  const counting = world.database.withPlugin({
    transformQuery: ({ node }) => {
      count++;
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  });
  await world.process(operations, { ...world.deps, database: counting });
  return count;
}

/** Ends the connection, as a crash of either side does, once so many statements were run in it. */
function cuttingConnection(statementCount: number): KyselyPlugin {
  let left = statementCount;
  return {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (left-- === 0) {
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()`.execute(
          world.database,
        );
      }
      return result;
    },
  };
}
