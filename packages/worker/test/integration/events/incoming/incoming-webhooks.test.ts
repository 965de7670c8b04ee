/** Webhooks receive incoming events of a matching type, name, filter and workspace. */
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { updateWebhook, type NewWebhook } from '@sluice/database/webhooks/webhooks';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, metric, NOW_MS, publish, track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { processCommitBatch } from '../../../../src/events/process-commit-batch.ts';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../../support/commit-batch-world.ts';
import { ImportsWorld } from '../../support/imports-world.ts';
import { createIncomingWorld, type IncomingWorld } from './incoming-world.ts';

let world: CommitBatchWorld;
let workspace: IncomingWorld;
beforeAll(async () => {
  world = await createCommitBatchWorld();
});
beforeEach(async () => {
  workspace = await createIncomingWorld(world);
});

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
  const batch = {
    id: world.newId(),
    operations: inEnvironment(workspace.environmentId, ...operations),
  };
  await processCommitBatch({ ...world.deps, database }, batch);
  return count;
}

test('names and filters are looked at before anything is logged, also beside reporting events', async () => {
  const webhookId = await workspace.webhook({
    events: ['event', 'email_sent', 'email_opened'],
    eventNames: ['order_placed'],
    attributeFilters: [{ field: 'metric', operator: 'in', values: ['order_placed', 'opened'] }],
  });
  const large = await workspace.webhook({
    events: ['event'],
    attributeFilters: [{ field: 'data.properties.total', operator: 'gt', values: ['10'] }],
  });
  await workspace.process(
    track('id:1', 'order_placed', { data: { total: 11 } }),
    metric('m1', 'sent'),
    track('id:1', 'opened'),
    metric('m1', 'opened'),
    track('id:1', 'order_placed', { data: { total: 9 } }),
  );
  expect(await workspace.names(webhookId)).toEqual(['order_placed', 'opened', 'order_placed']);
  expect(await workspace.names(large)).toEqual(['order_placed']);
});

test('a published message is sent once to the webhooks that list it, by its type and its application', async () => {
  const paid = await workspace.webhook({ events: ['message'], eventNames: ['invoice.paid'] });
  const acme = await workspace.webhook({
    events: ['*'],
    attributeFilters: [{ field: 'data.application', operator: 'eq', values: ['acme'] }],
  });
  const others = await workspace.webhook({ events: ['event', 'email_sent'] });
  const of = (eventId: string, application: string, type = 'invoice.paid') =>
    publish(type, { eventId, application, payload: { n: eventId }, occurredAtMs: 0 });
  await workspace.process(
    of('1', 'acme'),
    of('1', 'acme'),
    of('2', 'other'),
    of('3', 'acme', 'refund'),
  );
  await workspace.process(of('2', 'acme'));
  const idsOf = async (webhookId: number) =>
    (await workspace.logged(webhookId)).map(({ body }) => body.event_id);
  expect(await idsOf(paid)).toEqual(['1', '2']);
  expect(await idsOf(acme)).toEqual(['1', '3']);
  expect(await idsOf(others)).toEqual([]);
  expect((await workspace.logged(paid))[0]).toEqual({
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
  const webhookId = await workspace.webhook({ events: ['event'] });
  const change = (changes: Partial<NewWebhook>) =>
    updateWebhook(world.database, workspace.environmentId, webhookId, changes, NOW_MS);
  await workspace.process(track('id:1', 'a'));
  await change({ disabled: true });
  await workspace.process(track('id:1', 'b'));
  await change({ disabled: false, events: ['email_sent'] });
  await workspace.process(track('id:1', 'c'));
  await change({ events: ['*'], eventNames: ['d'] });
  await workspace.process(track('id:1', 'c'), track('id:1', 'd'));
  expect(await workspace.names(webhookId)).toEqual(['a', 'd']);
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

test('a workspace receives only its own events, also from one transaction with another workspace', async () => {
  const other = await createIncomingWorld(world);
  const seenByOther = await other.webhook({ events: ['*'] });
  const own = await workspace.webhook({ events: ['*'] });
  await world.process([
    ...inEnvironment(other.environmentId, track('id:1', 'theirs')),
    ...inEnvironment(workspace.environmentId, track('id:1', 'ours')),
  ]);
  expect(await other.names(seenByOther)).toEqual(['theirs']);
  expect(await workspace.names(own)).toEqual(['ours']);
});

test('a workspace without such a webhook runs no extra statement, with any other webhooks', async () => {
  const operations = () => [
    identify('id:1', { plan: 'pro' }),
    track('id:1', 'order_placed'),
    track('id:2', 'order_placed'),
  ];
  await workspace.process(...operations());
  const before = await countStatements(...operations());
  await workspace.webhook({ events: ['customer_subscribed', 'email_sent'] });
  await workspace.webhook({ events: ['event'], disabled: true });
  expect(await countStatements(...operations())).toBe(before);
  // The webhooks that ask, the people whom only events name, and the log.
  await workspace.webhook({ events: ['event'] });
  expect(await countStatements(...operations())).toBe(before + 3);
});
