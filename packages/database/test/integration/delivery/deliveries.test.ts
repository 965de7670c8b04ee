import type { ReportingEvent, ReportingEventType } from '@sluice/domain/delivery/reporting-event';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { appendDeliveries } from '../../../src/delivery/deliveries.ts';
import { listDeliveries } from '../../../src/delivery/delivery-reads.ts';
import { findLane } from '../../../src/delivery/lanes.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { createTestDatabase, type TestDatabase } from '../../../src/testing/testing.ts';
import { updateWebhook, type WebhookSettings } from '../../../src/webhooks/webhooks.ts';

let testDatabase: TestDatabase;
let database: Database;
let nextEnvironmentId = 1;
let environmentId: number;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = testDatabase.database;
});

beforeEach(async () => {
  environmentId = await makeEnvironment();
});

async function makeEnvironment(): Promise<number> {
  const id = nextEnvironmentId++;
  await insertTestWorkspace(database, id);
  return id;
}

async function makeWebhook(
  settings: Partial<WebhookSettings> = {},
  environment = environmentId,
): Promise<number> {
  return (await insertTestWebhook(database, environment, settings)).webhookId;
}

const TAKING = { leaseMs: 60_000, holderProcessId: 1, nowMs: Date.now(), countMax: 10 };

let eventCount = 0;
function reportOf(changes: Partial<ReportingEvent> = {}): ReportingEvent {
  return {
    environmentId,
    eventId: `event-${++eventCount}`,
    eventType: 'customer_subscribed',
    objectType: 'customer',
    metric: 'subscribed',
    occurredAtMs: 1_700_000_000_000,
    data: { customer_id: '1' },
    ...changes,
  };
}

interface LogRow {
  readonly sequence: number;
  readonly event_id: string;
  readonly body: string;
}

async function readLog(webhookId: number, environment = environmentId): Promise<LogRow[]> {
  const { rows } = await sql<LogRow>`
    select sequence::int, event_id, body from delivery_log
     where environment_id = ${environment} and webhook_id = ${webhookId} order by sequence`.execute(
    database,
  );
  return rows;
}

describe('an event', () => {
  test('is logged for each enabled webhook of its workspace that chose its type, and for no other', async () => {
    const both = await makeWebhook({ events: ['customer_unsubscribed', 'customer_subscribed'] });
    const one = await makeWebhook({ events: ['customer_unsubscribed'] });
    const disabled = await makeWebhook({ disabled: true });
    const elsewhere = await makeEnvironment();
    const neighbour = await makeWebhook({}, elsewhere);

    const subscribed = reportOf();
    const unsubscribed = reportOf({ eventType: 'customer_unsubscribed', metric: 'unsubscribed' });
    const lanes = await appendDeliveries(database, [subscribed, unsubscribed]);

    expect((await readLog(both)).map((row) => [row.sequence, row.event_id])).toEqual([
      [1, subscribed.eventId],
      [2, unsubscribed.eventId],
    ]);
    expect((await readLog(one)).map((row) => row.event_id)).toEqual([unsubscribed.eventId]);
    expect(await readLog(disabled)).toEqual([]);
    expect(await readLog(neighbour, elsewhere)).toEqual([]);
    expect(lanes.toSorted((a, b) => a.webhookId - b.webhookId)).toEqual([
      { environmentId, webhookId: both, lastSequence: 2 },
      { environmentId, webhookId: one, lastSequence: 1 },
    ]);
  });

  test('has its content only for webhooks that want it', async () => {
    const plain = await makeWebhook();
    const full = await makeWebhook({ withContent: true });
    await appendDeliveries(database, [reportOf({ content: { content: 'Hello' } }), reportOf()]);
    const dataOf = async (webhookId: number) =>
      (await readLog(webhookId)).map((row) => (JSON.parse(row.body) as { data: unknown }).data);
    expect(await dataOf(plain)).toEqual([{ customer_id: '1' }, { customer_id: '1' }]);
    expect(await dataOf(full)).toEqual([
      { customer_id: '1', content: 'Hello' },
      { customer_id: '1' },
    ]);
  });

  test('is kept with any text that JSON can hold', async () => {
    const webhookId = await makeWebhook();
    const data = {
      'quo"te': 'back\\slash {brace}, NULL \u0000 \ud800 ümlaut 🎉',
      list: ['{}', 'null', ''],
    };
    await appendDeliveries(database, [reportOf({ data })]);
    const [row] = await readLog(webhookId);
    expect((JSON.parse(row?.body ?? '') as { data: unknown }).data).toEqual(data);
  });

  test('of a workspace without webhooks makes no delivery', async () => {
    expect(await appendDeliveries(database, [])).toEqual([]);
    expect(await appendDeliveries(database, [reportOf({ environmentId: 999_999 })])).toEqual([]);
  });
});

test('bodies that are long together are sent in parts, and logged in order for each webhook', async () => {
  const plain = await makeWebhook();
  const full = await makeWebhook({ withContent: true });
  const content = { content: 'x'.repeat(300_000) };
  const events = Array.from({ length: 200 }, () => reportOf({ content }));
  let lanes: unknown[] = [];
  const sent = await statementsSentBy(async () => {
    lanes = await database
      .transaction()
      .execute((transaction) => appendDeliveries(transaction, events, TAKING));
  });

  const longest = Math.max(...sent.map(({ values }) => values.map(String).join('').length));
  expect(longest).toBeLessThan(20_000_000);
  for (const webhookId of [plain, full])
    expect((await readLog(webhookId)).map((row) => [row.sequence, row.event_id])).toEqual(
      events.map((event, index) => [index + 1, event.eventId]),
    );
  expect(lanes).toMatchObject([
    { webhookId: plain, lastSequence: 200 },
    { webhookId: full, lastSequence: 200 },
  ]);
});

test('events from the disabled time of a webhook are not logged for it', async () => {
  const webhookId = await makeWebhook();
  const [before, meanwhile, after] = [reportOf(), reportOf(), reportOf()];
  await appendDeliveries(database, [before]);
  await updateWebhook(database, environmentId, webhookId, { disabled: true }, Date.now());
  await appendDeliveries(database, [meanwhile]);
  const enabled = await updateWebhook(
    database,
    environmentId,
    webhookId,
    { disabled: false },
    Date.now(),
  );
  expect(enabled).toMatchObject({ mustWake: true, webhook: { disabled: false } });
  await appendDeliveries(database, [after]);
  expect((await readLog(webhookId)).map((row) => row.event_id)).toEqual([
    before.eventId,
    after.eventId,
  ]);
});

test('a lane that waits for a probe is not to be woken by new events', async () => {
  const webhookId = await makeWebhook();
  await appendDeliveries(database, [reportOf()]);
  await sql`
    update lanes set state = 'failing', next_probe_at = now() + interval '1 hour'
     where environment_id = ${environmentId} and webhook_id = ${webhookId}`.execute(database);
  expect(await appendDeliveries(database, [reportOf()])).toEqual([]);
  expect(await findLane(database, { environmentId, webhookId })).toMatchObject({
    lastSequence: 2,
    cursor: 0,
  });
});

test('the number of statements does not grow with the number of events and webhooks', async () => {
  for (let count = 0; count < 20; count++) await makeWebhook();
  let statements = 0;
  const pool = new pg.Pool({ connectionString: testDatabase.url, max: 1 });
  const counting: Database = new Kysely({
    dialect: new PostgresDialect({ pool }),
    log: (event) => void (event.level === 'query' && statements++),
  });
  try {
    const lanes = await appendDeliveries(
      counting,
      Array.from({ length: 500 }, () => reportOf()),
    );
    expect(lanes).toHaveLength(20);
    expect(statements).toBe(1);
  } finally {
    await counting.destroy();
  }
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from delivery_log where environment_id = ${environmentId}`.execute(
    database,
  );
  expect(rows).toEqual([{ count: 10_000 }]);
});

test('commit batches at the same time leave no gap, keep their own order, and never wait for each other in a circle', async () => {
  const elsewhere = await makeEnvironment();
  const types: readonly ReportingEventType[] = [
    'customer_subscribed',
    'customer_unsubscribed',
    'email_opened',
  ];
  const webhooks = [
    { environment: environmentId, webhookId: await makeWebhook({ events: [...types] }) },
    { environment: environmentId, webhookId: await makeWebhook({ events: ['email_opened'] }) },
    { environment: elsewhere, webhookId: await makeWebhook({ events: [...types] }, elsewhere) },
  ];
  const committed = new Set<string>();

  const commitBatch = async (writer: number, round: number): Promise<void> => {
    const reports = Array.from({ length: 9 }, (_, index) =>
      reportOf({
        environmentId: (writer + index) % 2 === 0 ? environmentId : elsewhere,
        eventType: types[(writer + round + index) % 3] as ReportingEventType,
        eventId: `${writer}-${round}-${index}`,
      }),
    );
    const isUndone = (writer + round) % 5 === 0;
    const transaction = database.transaction().execute(async (open) => {
      await appendDeliveries(open, reports);
      if (isUndone) throw new Error('undone');
    });
    if (isUndone) await expect(transaction).rejects.toThrow('undone');
    else {
      await transaction;
      for (const report of reports) committed.add(report.eventId);
    }
  };
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let round = 0; round < 15; round++) await commitBatch(writer, round);
    }),
  );

  const seen = new Set<string>();
  for (const { environment, webhookId } of webhooks) {
    const log = await readLog(webhookId, environment);
    expect(log.map((row) => row.sequence)).toEqual(log.map((_, index) => index + 1));
    expect(await findLane(database, { environmentId: environment, webhookId })).toMatchObject({
      lastSequence: log.length,
    });
    const places = new Map<string, number[]>();
    for (const { event_id: eventId } of log) {
      seen.add(eventId);
      const [writer, round, index] = eventId.split('-').map(Number) as [number, number, number];
      const own = places.get(`${writer}`) ?? [];
      own.push(round * 100 + index);
      places.set(`${writer}`, own);
    }
    for (const own of places.values()) expect(own).toEqual(own.toSorted((a, b) => a - b));
  }
  expect(seen).toEqual(committed);
});

test('deliveries are listed newest first, page by page, of this webhook only', async () => {
  const webhookId = await makeWebhook();
  await makeWebhook();
  await appendDeliveries(
    database,
    Array.from({ length: 5 }, () => reportOf()),
  );
  const lane = { environmentId, webhookId };
  const first = await listDeliveries(database, lane, 3);
  expect(first.map((delivery) => delivery.sequence)).toEqual([5, 4, 3]);
  expect(first[0]).toMatchObject({
    state: 'pending',
    attempts: 0,
    eventType: 'customer_subscribed',
  });
  expect((await listDeliveries(database, lane, 3, 3)).map((delivery) => delivery.sequence)).toEqual(
    [2, 1],
  );
  expect(await listDeliveries(database, { environmentId: 999_999, webhookId }, 3)).toEqual([]);
});
