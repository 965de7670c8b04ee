/**
 * Incoming events in the delivery log: the ones that a webhook asks for, once each, in the transaction that applies
 * them. The domain decides which calls are reported (`domain/test/reports/incoming-events.test.ts`).
 */
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { updateWebhook, type NewWebhook } from '@sluice/database/webhooks/webhooks';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  addDevice,
  identify,
  metric,
  NOW_MS,
  publish,
  relate,
  remove,
  suppress,
  track,
} from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';
import { ImportsWorld } from '../support/imports-world.ts';

let world: CommitBatchWorld;
let environmentId: number;
beforeAll(async () => {
  world = await createCommitBatchWorld();
});
beforeEach(async () => {
  environmentId = world.newEnvironment();
  await insertTestWorkspace(world.database, environmentId);
});

const INCOMING = ['event', 'page', 'screen', 'identify', 'group', 'delete'];

const webhook = async (settings: Partial<NewWebhook>): Promise<number> =>
  (await insertTestWebhook(world.database, environmentId, settings)).webhookId;

const process = (...operations: Operation[]) =>
  world.process(inEnvironment(environmentId, ...operations));

interface Logged {
  readonly type: string;
  readonly personId: number | null;
  readonly body: {
    readonly event_id: string;
    readonly object_type: string;
    readonly metric: string;
    readonly timestamp: number;
    readonly data: Record<string, unknown>;
  };
}

/** Logged deliveries of a webhook, in order. */
async function logged(webhookId: number, inside = environmentId): Promise<Logged[]> {
  const { rows } = await sql<Omit<Logged, 'body'> & { body: string }>`
    select event_type as type, person_id::float8 as "personId", body from delivery_log
     where environment_id = ${inside} and webhook_id = ${webhookId} order by sequence`.execute(
    world.database,
  );
  return rows.map((row) => ({ ...row, body: JSON.parse(row.body) as Logged['body'] }));
}

const names = async (webhookId: number): Promise<string[]> =>
  (await logged(webhookId)).map(({ body }) => body.metric);

/** How many statements it takes to process a commit batch. */
async function countStatements(...operations: Operation[]): Promise<number> {
  let count = 0;
  const database = world.database.withPlugin({
    transformQuery: ({ node }) => {
      count++;
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  });
  const batch = { id: world.newId(), operations: inEnvironment(environmentId, ...operations) };
  await processCommitBatch({ ...world.deps, database }, batch);
  return count;
}

test('a tracked event reaches each webhook that asks for it in the format of the specification, and no other', async () => {
  const plain = await webhook({ events: ['event'] });
  const whole = await webhook({ events: ['*'], withPersonAttributes: true });
  const others = await webhook({ events: ['page', 'customer_subscribed'], withContent: true });
  await process(identify('id:ada', { email: 'ada@x.example', plan: 'pro' }));
  await process(
    track('id:ada', 'order_placed', {
      eventId: 'order-1',
      data: { total: 5 },
      occurredAtMs: NOW_MS - 61_500,
      source: 'pipelines.track',
    }),
  );
  const who = { id: 'ada', email: 'ada@x.example', svc_id: expect.stringMatching(/^a3/) };
  const body = {
    event_id: 'order-1',
    object_type: 'event',
    metric: 'order_placed',
    timestamp: Math.floor((NOW_MS - 61_500) / 1000),
    data: {
      customer_id: 'ada',
      email_address: 'ada@x.example',
      identifiers: who,
      name: 'order_placed',
      properties: { total: 5 },
      source: 'pipelines.track',
    },
  };
  const [only] = await logged(plain);
  expect(only).toEqual({ type: 'event', personId: expect.any(Number), body });
  expect((await logged(whole)).at(-1)?.body).toEqual({
    ...body,
    data: { ...body.data, person_attributes: { plan: 'pro' } },
  });
  expect(await logged(others)).toEqual([]);
});

test('every type that comes in is logged for a webhook that lists it', async () => {
  const webhookId = await webhook({ events: INCOMING });
  await process(
    track('id:1', 'order_placed'),
    track('id:1', 'Home', { kind: 'page' }),
    track('id:1', 'Cart', { kind: 'screen' }),
    identify('id:1', { plan: 'pro' }),
    relate('id:1', 'acme'),
    addDevice('id:1', 'token'),
    remove('id:1'),
  );
  expect((await logged(webhookId)).map(({ type, body }) => `${type} ${body.metric}`)).toEqual([
    'event order_placed',
    'page Home',
    'screen Cart',
    'identify identify',
    'group add_relationships',
    'delete delete',
  ]);
});

test('names and filters are looked at before anything is logged, also beside reporting events', async () => {
  const webhookId = await webhook({
    events: ['event', 'email_sent', 'email_opened'],
    eventNames: ['order_placed'],
    attributeFilters: [{ field: 'metric', operator: 'in', values: ['order_placed', 'opened'] }],
  });
  const large = await webhook({
    events: ['event'],
    attributeFilters: [{ field: 'data.properties.total', operator: 'gt', values: ['10'] }],
  });
  await process(
    track('id:1', 'order_placed', { data: { total: 11 } }),
    metric('m1', 'sent'),
    track('id:1', 'opened'),
    metric('m1', 'opened'),
    track('id:1', 'order_placed', { data: { total: 9 } }),
  );
  expect(await names(webhookId)).toEqual(['order_placed', 'opened', 'order_placed']);
  expect(await names(large)).toEqual(['order_placed']);
});

test('an event id is reported once: in one commit batch, in a later one, and of a batch that runs again', async () => {
  const webhookId = await webhook({ events: ['event'] });
  const same = (name: string) => track('id:1', name, { eventId: 'same' });
  const batch = {
    id: world.newId(),
    operations: inEnvironment(environmentId, same('a'), same('b')),
  };
  await processCommitBatch(world.deps, batch);
  await processCommitBatch(world.deps, batch);
  await process(same('c'), track('id:1', 'd'));
  expect(await names(webhookId)).toEqual(['a', 'd']);
});

test('a commit batch that is cut at any statement logs no event, and then each event once', async () => {
  const webhookId = await webhook({ events: ['*'] });
  const operations = inEnvironment(
    environmentId,
    track('anonymous_id:v', 'seen'),
    identify('id:1', { unsubscribed: true }, { anonymousId: 'v' }),
    track('id:1', 'bought'),
  );
  const batch = { id: world.newId(), operations };
  let cutAfter = 0;
  for (let isApplied = false; !isApplied; cutAfter++) {
    let left = cutAfter;
    const database = world.database.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: ({ result }) => {
        if (left-- === 0) throw new Error('cut');
        return Promise.resolve(result);
      },
    });
    try {
      await processCommitBatch({ ...world.deps, database }, batch);
      isApplied = true;
    } catch (error) {
      expect((error as Error).message).toBe('cut');
      expect(await logged(webhookId)).toEqual([]);
    }
  }
  expect(cutAfter).toBeGreaterThan(8);
  expect(await names(webhookId)).toEqual(['seen', 'unsubscribed', 'identify', 'bought']);
});

test("one person's events and reporting events stand in the order of the calls, each about that person", async () => {
  const webhookId = await webhook({ events: ['*'] });
  await process(identify('id:1', { unsubscribed: false }));
  await process(
    track('id:1', 'a'),
    identify('id:1', { unsubscribed: true }),
    track('id:1', 'b'),
    metric('m', 'sent', { recipient: 'nobody@x.example' }),
  );
  await process(track('id:1', 'c'));
  const rows = await logged(webhookId);
  expect(rows.map(({ body }) => body.metric)).toEqual([
    'subscribed',
    'identify',
    'a',
    'unsubscribed',
    'identify',
    'b',
    'sent',
    'c',
  ]);
  const people = new Set(rows.filter(({ body }) => body.metric !== 'sent').map((r) => r.personId));
  expect([...people]).toEqual([expect.any(Number)]);
});

test('an anonymous event is reported with its anonymous id when it comes, and not again when it is somebody’s', async () => {
  const webhookId = await webhook({ events: ['event'] });
  await process(track('anonymous_id:v', 'seen'));
  await process(identify('id:1', {}, { anonymousId: 'v' }));
  await process(track('anonymous_id:v', 'bought'));
  const rows = await logged(webhookId);
  expect(rows.map(({ body }) => [body.metric, body.data])).toEqual([
    [
      'seen',
      expect.objectContaining({ anonymous_id: 'v', identifiers: { id: null, email: null } }),
    ],
    ['bought', expect.objectContaining({ anonymous_id: 'v', customer_id: '1' })],
  ]);
  expect(rows.map(({ personId }) => personId)).toEqual([null, expect.any(Number)]);
});

test('events of a suppressed person are not reported, and late events only if they are asked for', async () => {
  const webhookId = await webhook({ events: ['event', 'identify'] });
  const late = await webhook({ events: ['event'], withLate: true });
  await process(suppress('id:1'), suppress('email:b@x.example'));
  await process(
    track('id:1', 'a'),
    identify('id:1', { plan: 'pro' }),
    track('email:b@x.example', 'a'),
    track('id:2', 'old', { occurredAtMs: NOW_MS - 73 * 3_600_000 }),
  );
  expect(await names(webhookId)).toEqual([]);
  expect(await names(late)).toEqual(['old']);
});

test('a workspace receives only its own events, also from one transaction with another workspace', async () => {
  const other = environmentId;
  const seenByOther = await webhook({ events: ['*'] });
  environmentId = world.newEnvironment();
  await insertTestWorkspace(world.database, environmentId);
  const own = await webhook({ events: ['*'] });
  await world.process([
    ...inEnvironment(other, track('id:1', 'theirs')),
    ...inEnvironment(environmentId, track('id:1', 'ours')),
  ]);
  expect((await logged(seenByOther, other)).map(({ body }) => body.metric)).toEqual(['theirs']);
  expect(await names(own)).toEqual(['ours']);
});

test('a published message is sent once to the webhooks that list it, by its type and its application', async () => {
  const paid = await webhook({ events: ['message'], eventNames: ['invoice.paid'] });
  const acme = await webhook({
    events: ['*'],
    attributeFilters: [{ field: 'data.application', operator: 'eq', values: ['acme'] }],
  });
  const others = await webhook({ events: ['event', 'email_sent'] });
  const of = (eventId: string, application: string, type = 'invoice.paid') =>
    publish(type, { eventId, application, payload: { n: eventId }, occurredAtMs: 0 });
  await process(of('1', 'acme'), of('1', 'acme'), of('2', 'other'), of('3', 'acme', 'refund'));
  await process(of('2', 'acme'));
  const idsOf = async (webhookId: number) =>
    (await logged(webhookId)).map(({ body }) => body.event_id);
  expect(await idsOf(paid)).toEqual(['1', '2']);
  expect(await idsOf(acme)).toEqual(['1', '3']);
  expect(await idsOf(others)).toEqual([]);
  expect((await logged(paid))[0]).toEqual({
    type: 'message',
    personId: null,
    body: {
      event_id: '1',
      object_type: 'message',
      metric: 'invoice.paid',
      timestamp: 0,
      data: { payload: { n: '1' }, application: 'acme' },
    },
  });
});

test('a disabled webhook, or one that no longer lists incoming events, receives no event', async () => {
  const webhookId = await webhook({ events: ['event'] });
  const change = (changes: Partial<NewWebhook>) =>
    updateWebhook(world.database, environmentId, webhookId, changes, NOW_MS);
  await process(track('id:1', 'a'));
  await change({ disabled: true });
  await process(track('id:1', 'b'));
  await change({ disabled: false, events: ['email_sent'] });
  await process(track('id:1', 'c'));
  await change({ events: ['*'], eventNames: ['d'] });
  await process(track('id:1', 'c'), track('id:1', 'd'));
  expect(await names(webhookId)).toEqual(['a', 'd']);
});

test('an operation that a fault of ours keeps back is left out, and its neighbours are reported', async () => {
  const webhookId = await webhook({ events: ['*'] });
  const poison = { ...identify('id:2', {}), attributes: null as never };
  await process(track('id:1', 'a'), poison, track('id:1', 'b'));
  expect(await names(webhookId)).toEqual(['a', 'b']);
});

test('a workspace without such a webhook runs no extra statement, with any other webhooks', async () => {
  const operations = () => [
    identify('id:1', { plan: 'pro' }),
    track('id:1', 'order_placed'),
    track('id:2', 'order_placed'),
  ];
  await process(...operations());
  const before = await countStatements(...operations());
  await webhook({ events: ['customer_subscribed', 'email_sent'] });
  await webhook({ events: ['event'], disabled: true });
  expect(await countStatements(...operations())).toBe(before);
  // The webhooks that ask, the people whom only events name, and the log.
  await webhook({ events: ['event'] });
  expect(await countStatements(...operations())).toBe(before + 3);
});

test('rows of an import are reported only to webhooks that ask for them', async () => {
  const imports = await ImportsWorld.create();
  const settings = { events: ['event'], withLate: true };
  const plain = await insertTestWebhook(imports.database, 1, settings);
  const asking = await insertTestWebhook(imports.database, 1, { ...settings, withImports: true });
  await imports.people('ann');
  const { importId } = await imports.upload(
    '_svc_name,_svc_customer_id,total\nbought,ann,5\nbought,nobody,6\n',
  );
  expect(await imports.run()).toBe(true);
  const { rows } = await sql<{ webhookId: number; body: string }>`
    select webhook_id as "webhookId", body from delivery_log`.execute(imports.database);
  expect(rows.map(({ webhookId }) => webhookId)).toEqual([asking.webhookId]);
  expect(plain.webhookId).not.toBe(asking.webhookId);
  expect(JSON.parse(rows[0]?.body ?? '')).toMatchObject({
    event_id: `import:${importId}:1`,
    metric: 'bought',
    data: { customer_id: 'ann', properties: { total: '5' }, source: 'imports' },
  });
});
