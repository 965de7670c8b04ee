/** Envelopes against a real Postgres: what is exactly once, what waits for what, what is isolated. */
import type { Database } from '@sluice/database/connection';
import { isDatabaseAway } from '@sluice/database/database-away';
import { makeEventPartitions } from '@sluice/database/events';
import { NumberStock } from '@sluice/database/numbers';
import { createTestDatabase } from '@sluice/database/testing';
import type { Operation } from '@sluice/domain/operation';
import {
  identify,
  identifyObject,
  merge,
  metric,
  NOW_MS,
  relate,
  remove,
  suppress,
  track,
  unsuppress,
} from '@sluice/domain/testing';
import { createIdGenerator } from '@sluice/platform/new-id';
import { sql, type KyselyPlugin } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import { processEnvelope, type ProcessEnvelopeDeps } from '../../src/process-envelope.ts';

let database: Database;
let deps: ProcessEnvelopeDeps;
const newId = createIdGenerator(Date.now);

beforeAll(async () => {
  ({ database } = await createTestDatabase());
  deps = { database, numbers: new NumberStock(), newId, now: () => NOW_MS };
});

let lastEnvironment = 100;
/** Tests share one database, each in workspaces of its own. */
const newEnvironment = (): number => ++lastEnvironment;
const inEnvironment = (environmentId: number, ...operations: Operation[]): Operation[] =>
  operations.map((operation) => ({ ...operation, environmentId }));
const process = (operations: Operation[], by: ProcessEnvelopeDeps = deps) =>
  processEnvelope(by, { id: newId(), operations });

async function rowsOf(
  table: string,
  environmentId: number,
  columns = '*',
): Promise<Record<string, unknown>[]> {
  const { rows } = await sql<Record<string, unknown>>`
    select ${sql.raw(columns)} from ${sql.table(table)} where environment_id = ${environmentId}`.execute(
    database,
  );
  return rows;
}
const countOf = async (table: string, environmentId: number): Promise<number> =>
  (await rowsOf(table, environmentId, '1')).length;
const eventNames = async (environmentId: number): Promise<unknown[]> =>
  (await rowsOf('events', environmentId, `name`))
    .map((row) => row['name'])
    .filter((name) => name !== null);

describe('exactly once', () => {
  it('has one effect when an envelope is run twice, one after the other or both at once', async () => {
    const environmentId = newEnvironment();
    const envelope = {
      id: newId(),
      operations: inEnvironment(
        environmentId,
        identify('id:1', { unsubscribed: true }),
        track('id:1', 'a'),
      ),
    };
    const both = await Promise.all([
      processEnvelope(deps, envelope),
      processEnvelope(deps, envelope),
    ]);
    expect(both.map((result) => result.outcome).toSorted()).toEqual(['already-applied', 'applied']);
    expect(await processEnvelope(deps, envelope)).toEqual({ outcome: 'already-applied' });
    expect(await eventNames(environmentId)).toEqual(['a']);
    expect(await countOf('people', environmentId)).toBe(1);
  });

  it('applies an envelope whose first run was cut at any statement, whole and once', async () => {
    const environmentId = newEnvironment();
    const operations = inEnvironment(
      environmentId,
      identify('id:1', { plan: 'pro' }, { anonymousId: 'z' }),
      track('id:1', 'a'),
      relate('id:1', 'acme'),
      track('svc_id:a3ffffff', 'nobody'),
    );
    const envelope = { id: newId(), operations };
    let cutAfter = 0;
    for (let isApplied = false; !isApplied; cutAfter++) {
      const cutting = database.withPlugin(cuttingConnection(cutAfter));
      try {
        isApplied =
          (await processEnvelope({ ...deps, database: cutting }, envelope)).outcome === 'applied';
      } catch (error) {
        expect(isDatabaseAway(error)).toBe(true);
        expect(await countOf('people', environmentId)).toBe(0);
        expect(await countOf('event_ids', environmentId)).toBe(0);
        expect(await countOf('ingestion_issues', environmentId)).toBe(0);
      }
    }
    expect(cutAfter).toBeGreaterThan(8);
    expect(await eventNames(environmentId)).toEqual(['a']);
    expect(await countOf('people', environmentId)).toBe(1);
    expect(await countOf('relationships', environmentId)).toBe(1);
  });

  it('counts an event id once: in one envelope, in others, at the same time, from both APIs', async () => {
    const environmentId = newEnvironment();
    const event = (name: string) => track('id:1', name, { eventId: 'same' });
    await process(inEnvironment(environmentId, event('a'), event('b')));
    // A Pipelines messageId and a Track id are one kind of thing by now; the person may differ.
    await process(inEnvironment(environmentId, track('email:c@x', 'c', { eventId: 'same' })));
    expect(await eventNames(environmentId)).toEqual(['a']);
    const rows = await rowsOf('ingestion_issues', environmentId, 'code, count, field, source');
    expect(rows).toEqual([
      { code: 'duplicate_event', count: '2', field: 'id', source: 'event.track' },
    ]);

    const atOnce = Array.from({ length: 8 }, (_, index) =>
      inEnvironment(environmentId, track('id:1', `d${index}`, { eventId: 'at once' })),
    );
    await Promise.all(atOnce.map((operations) => process(operations)));
    expect(
      (await eventNames(environmentId)).filter((name) => String(name).startsWith('d')),
    ).toHaveLength(1);

    const elsewhere = newEnvironment();
    await process(inEnvironment(elsewhere, event('a')));
    expect(await eventNames(elsewhere)).toEqual(['a']);
  });
});

describe('two shards and one person', () => {
  it('loses no update when a person is written by id and by email at the same time', async () => {
    const environmentId = newEnvironment();
    await process(inEnvironment(environmentId, identify('id:1', { email: 'a@x' })));
    const rounds = 40;
    const write = async (who: string, prefix: string) => {
      for (let round = 0; round < rounds; round++) {
        await process(
          inEnvironment(
            environmentId,
            identify(who, { [`${prefix}${round}`]: round }),
            track(who, 'seen'),
          ),
        );
      }
    };
    await Promise.all([
      write('id:1', 'byId'),
      write('email:A@x', 'byEmail'),
      write('id:1', 'byIdAgain'),
    ]);
    const [person] = await rowsOf('people', environmentId);
    expect(Object.keys(person?.['attributes'] as object)).toHaveLength(3 * rounds);
    expect(await eventNames(environmentId)).toHaveLength(3 * rounds);
  });

  it('makes one person of those that two shards meet first at the same time', async () => {
    const environmentId = newEnvironment();
    for (let round = 0; round < 30; round++) {
      const [id, email] = [`id:${round}`, `email:p${round}@x`];
      await Promise.all([
        process(inEnvironment(environmentId, identify(id, { email: `p${round}@x`, a: 1 }))),
        process(inEnvironment(environmentId, identify(email, { id: String(round), b: 1 }))),
        process(inEnvironment(environmentId, track(email, 'seen'))),
      ]);
    }
    const people = await rowsOf('people', environmentId, 'id, email, attributes');
    expect(people).toHaveLength(30);
    for (const person of people) expect(person['attributes']).toEqual({ a: 1, b: 1 });
    expect(await countOf('person_identifiers', environmentId)).toBe(60);
  });

  it('ends whatever is written, merged, deleted, suppressed and freed at the same time, and agrees with itself', async () => {
    const environmentId = newEnvironment();
    const ids = ['1', '2', '3', '4'];
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const who = () => (random(2) === 0 ? `id:${ids[random(4)]}` : `email:p${ids[random(4)]}@x`);
    const anyOperation = (): Operation => {
      const choices: (() => Operation)[] = [
        () =>
          identify(
            who(),
            { email: `p${ids[random(4)]}@x`, n: random(100) },
            { anonymousId: `z${random(3)}` },
          ),
        () => identify(who(), { id: ids[random(4)] as string }),
        () => track(who(), 'seen'),
        () => track(`anonymous_id:z${random(3)}`, 'seen'),
        () => relate(who(), `object-${random(3)}`),
        () => identifyObject(`object-${random(3)}`, { n: random(10) }),
        () => merge(who(), who()),
        () => remove(who()),
        () => suppress(who()),
        () => unsuppress(who()),
        () => metric(`d${random(3)}`, 'opened', { recipient: `p${ids[random(4)]}@x` }),
      ];
      return (choices[random(choices.length)] as () => Operation)();
    };
    const work = async () => {
      for (let round = 0; round < 40; round++) {
        await process(
          inEnvironment(environmentId, ...Array.from({ length: 1 + random(6) }, anyOperation)),
        );
      }
    };
    await Promise.all([work(), work(), work()]);

    const people = await rowsOf('people', environmentId);
    const identifiers = await rowsOf('person_identifiers', environmentId);
    const present = new Set(people.map((row) => row['person_id']));
    for (const row of identifiers.filter(
      (identifier) => identifier['suppressed'] === false && identifier['person_id'] !== null,
    )) {
      expect(present).toContain(row['person_id']);
    }
    for (const row of identifiers.filter((identifier) => identifier['suppressed'] === true))
      expect(present).not.toContain(row['person_id']);
    const owned = (kind: string) =>
      identifiers
        .filter((row) => row['kind'] === kind && row['suppressed'] === false)
        .map((row) => `${String(row['person_id'])} ${String(row['value'])}`)
        .toSorted();
    for (const kind of ['id', 'email']) {
      const shown = people
        .filter((row) => row[kind] !== null)
        .map((row) => `${String(row['person_id'])} ${String(row[kind])}`);
      expect(owned(kind)).toEqual(shown.toSorted());
    }
    for (const table of ['relationships', 'devices']) {
      for (const row of await rowsOf(table, environmentId))
        expect(present).toContain(row['person_id']);
    }
    // An anonymous event waits only while its anonymous id is nobody's.
    const waiting = (await rowsOf('events', environmentId)).filter(
      (row) => row['person_id'] === null && row['anonymous_id'] !== null,
    );
    for (const row of waiting) {
      const owner = identifiers.find(
        (identifier) =>
          identifier['kind'] === 'anonymous_id' && identifier['value'] === row['anonymous_id'],
      );
      expect(owner).toMatchObject({ person_id: null });
    }
  });
});

describe('anonymous events', () => {
  it("become the person's when both happen at the same time on different shards", async () => {
    const environmentId = newEnvironment();
    for (let round = 0; round < 30; round++) {
      await Promise.all([
        process(inEnvironment(environmentId, track(`anonymous_id:z${round}`, 'seen'))),
        process(
          inEnvironment(environmentId, identify(`id:${round}`, {}, { anonymousId: `z${round}` })),
        ),
      ]);
    }
    const events = await rowsOf('events', environmentId, 'name, person_id, processed_at');
    const seen = events.filter((row) => row['name'] === 'seen');
    expect(seen).toHaveLength(30);
    for (const row of seen) {
      expect(row['person_id']).not.toBeNull();
      expect(row['processed_at']).not.toBeNull();
    }
  });
});

describe('the number of statements', () => {
  it('is the same for one operation of each kind and for a thousand', async () => {
    const environmentId = newEnvironment();
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
    await process(operationsOf(1, 0));
    await deps.numbers.reserve(database, 10_000);
    const one = await countStatements(operationsOf(1, 1_000));
    const thousand = await countStatements(operationsOf(200, 2_000));
    expect(thousand).toBe(one);
    // Again: the same people, now known.
    const oneKnown = await countStatements(operationsOf(1, 1_000));
    expect(await countStatements(operationsOf(200, 2_000))).toBe(oneKnown);
  });

  it('is four for events of people who are known, besides begin and commit', async () => {
    const environmentId = newEnvironment();
    const events = (count: number) =>
      inEnvironment(
        environmentId,
        ...Array.from({ length: count }, (_, index) => track(`id:${index % 100}`, 'seen')),
      );
    await process(events(100));
    expect(await countStatements(events(1))).toBe(4);
    expect(await countStatements(events(1_000))).toBe(4);
  });
});

describe('what Postgres refuses', () => {
  it('is recorded and leaves its neighbours alone, in their order', async () => {
    const environmentId = newEnvironment();
    // Parsers replace this; whatever else comes through must not stop a shard either.
    const poison = track('id:1', 'poison', { data: { text: 'a\0b' } });
    const wide = track('id:1', 'wide', {
      eventId: 'w'
        .repeat(10_000)
        .replaceAll(/w/g, () => String.fromCharCode(33 + Math.random() * 90)),
    });
    const late = track('id:1', 'late', { occurredAtMs: 9e18 });
    const operations = inEnvironment(
      environmentId,
      ...Array.from({ length: 20 }, (_, index) => identify('id:1', { last: index })),
      poison,
      ...Array.from({ length: 20 }, (_, index) => track('id:1', `event ${index}`)),
      wide,
      late,
      identify('id:1', { after: true }),
    );
    expect(await process(operations)).toMatchObject({ outcome: 'applied', counts: { refused: 3 } });
    expect(await eventNames(environmentId)).toHaveLength(20);
    expect(await rowsOf('people', environmentId, 'attributes')).toEqual([
      { attributes: { last: 19, after: true } },
    ]);
    const [issue] = await rowsOf(
      'ingestion_issues',
      environmentId,
      'code, source, count, message, sample',
    );
    expect(issue).toMatchObject({ code: 'invalid', source: 'event.track', count: '3' });
    expect(issue?.['sample']).toContain('"event.track"');
  });

  it('is recorded alone too', async () => {
    const environmentId = newEnvironment();
    const operations = inEnvironment(environmentId, track('id:1\0', 'poison'));
    expect(await process(operations)).toMatchObject({
      outcome: 'applied',
      counts: { refused: 1, events: 0 },
    });
    expect(await countOf('people', environmentId)).toBe(0);
    expect(await countOf('ingestion_issues', environmentId)).toBe(1);
  });
});

describe('the issues log', () => {
  it('counts by day, code, field and source, with the latest message, also for no workspace', async () => {
    const record = (
      field: string,
      message: string,
      receivedAtMs: number,
      count = 1,
    ): Operation => ({
      type: 'issue.record',
      environmentId: 0,
      receivedAtMs,
      source: 'pipelines.batch',
      count,
      issue: { code: 'required', field, message, sample: `sample of ${message}` },
    });
    await process([
      record('batch.3.event', 'first', NOW_MS),
      record('batch.14.event', 'second', NOW_MS + 1, 5),
      record('event', 'other', NOW_MS),
    ]);
    await process([record('batch.0.event', 'third', NOW_MS + 2)]);
    const rows = await rowsOf(
      'ingestion_issues',
      0,
      `field, count, message, sample, to_char(day, 'YYYY-MM-DD') as day, first_at, last_at`,
    );
    expect(rows.find((row) => row['field'] === 'batch.*.event')).toEqual({
      field: 'batch.*.event',
      count: '7',
      message: 'third',
      sample: 'sample of third',
      day: '2026-01-31',
      first_at: new Date(NOW_MS),
      last_at: new Date(NOW_MS + 2),
    });
    expect(rows).toHaveLength(2);
  });
});

describe('reporting', () => {
  it('logs a delivery for each enabled webhook that chose the event, and names its lane once', async () => {
    const environmentId = newEnvironment();
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
        select webhook_id as id from made`.execute(database);
      webhookIds.push(rows[0]?.id ?? 0);
    }
    const result = await process(
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
    expect(await countOf('delivery_log', environmentId)).toBe(3);
  });
});

describe('partitions of events', () => {
  it('are made ahead once, and an event of any time has a place', async () => {
    expect(await makeEventPartitions(database, 6)).toBeGreaterThan(0);
    expect(await makeEventPartitions(database, 6)).toBe(0);
    const environmentId = newEnvironment();
    await process(
      inEnvironment(
        environmentId,
        { ...track('id:1', 'ancient'), receivedAtMs: 0 },
        { ...track('id:1', 'far'), receivedAtMs: Date.UTC(2200, 0) },
      ),
    );
    expect(await eventNames(environmentId)).toHaveLength(2);
  });
});

async function countStatements(operations: Operation[]): Promise<number> {
  let count = 0;
  const counting = database.withPlugin({
    transformQuery: ({ node }) => {
      count++;
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  });
  await process(operations, { ...deps, database: counting });
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
          database,
        );
      }
      return result;
    },
  };
}
