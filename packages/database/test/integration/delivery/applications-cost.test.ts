/** Endpoints of applications that a commit batch does not name. They add no cost to it, for any number of them. */
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { DatabaseOrTransaction } from '../../../src/connection/connection.ts';
import { appendDeliveries } from '../../../src/delivery/deliveries.ts';
import {
  listApplicationSubscriptions,
  listIncomingSubscriptions,
} from '../../../src/delivery/incoming-subscriptions.ts';
import { takeUntold } from '../../../src/delivery/lane-alerts.ts';
import { recordLaneMerges } from '../../../src/delivery/lane-merges.ts';
import { claimCommitBatches } from '../../../src/events/commit-batches.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import { listApplications, listEndpoints } from '../../../src/webhooks/applications.ts';
import { listWebhooks } from '../../../src/webhooks/webhooks.ts';

const ENVIRONMENT_ID = 7;
const APPLICATION_COUNT = 10_000;

/** Two endpoints an application, with filters and without, healthy and idle. */
async function createCrowd() {
  const { database } = await createTestDatabase();
  await insertTestWorkspace(database, ENVIRONMENT_ID);
  const own = await insertTestWebhook(database, ENVIRONMENT_ID, { events: ['*'] });
  await sql`
    insert into applications (environment_id, application_id, name)
    select ${ENVIRONMENT_ID}, 'a' || n, 'A' from generate_series(1, ${APPLICATION_COUNT}::int) n`.execute(
    database,
  );
  await sql`
    with made as (
      insert into webhooks (environment_id, name, endpoint, events, signing_key, application_id, attribute_filters)
      select ${ENVIRONMENT_ID}, 'E', 'http://receiver.test/', '{application_message}', 'k', 'a' || n,
             case when n % 2 = 0 then '[{"field":"data.payload.x","operator":"exists"}]'::jsonb end
        from generate_series(1, ${APPLICATION_COUNT}::int) n, generate_series(1, 2)
      returning environment_id, webhook_id)
    insert into lanes (environment_id, webhook_id) select environment_id, webhook_id from made`.execute(
    database,
  );
  await sql`analyze webhooks, lanes, applications`.execute(database);
  return { database, own };
}

/** Rows of webhooks, lanes and applications that the transaction has read so far. */
async function readCount(transaction: DatabaseOrTransaction): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as count from pg_stat_xact_user_tables
     where relname in ('webhooks', 'lanes', 'applications')`.execute(transaction);
  return Number(rows[0]?.count ?? 0);
}

test('a commit batch, a merge, an alert and a page of a list read the endpoints that they are about', async () => {
  const { database, own } = await createCrowd();
  const named = { environmentId: ENVIRONMENT_ID, applicationId: 'a77' };
  const event = {
    environmentId: ENVIRONMENT_ID,
    eventType: 'message',
    objectType: 'message',
    metric: 'paid',
    occurredAtMs: 0,
    data: { payload: {} },
  } as const;
  const counts = await database.transaction().execute(async (transaction) => {
    const read: Record<string, number> = {};
    // Postgres also counts earlier reads of a connection, until it has reported them.
    let before = await readCount(transaction);
    const note = async (name: string): Promise<void> => {
      const after = await readCount(transaction);
      read[name] = after - before;
      before = after;
    };
    const { reportingIncoming } = await claimCommitBatches(
      transaction,
      [{ envelopeId: 'batch', operationCount: 1, traceparent: null }],
      [ENVIRONMENT_ID],
      false,
    );
    expect(reportingIncoming).toEqual([ENVIRONMENT_ID]);
    await note('claim');
    expect(await listIncomingSubscriptions(transaction, reportingIncoming)).toHaveLength(1);
    const { subscriptions } = await listApplicationSubscriptions(transaction, [named]);
    expect(subscriptions).toHaveLength(2);
    await note('subscriptions');
    const webhookIds = subscriptions.map(({ webhookId }) => webhookId);
    const lanes = await appendDeliveries(transaction, [
      { ...event, eventId: '1', ...named, webhookIds },
      { ...event, eventId: '2', webhookIds: [own.webhookId] },
      { ...event, eventId: '3', eventType: 'customer_subscribed' },
    ]);
    expect(lanes.map(({ webhookId }) => webhookId).toSorted((one, other) => one - other)).toEqual(
      [own.webhookId, ...webhookIds].toSorted((one, other) => one - other),
    );
    await note('deliveries');
    await recordLaneMerges(transaction, [
      { environmentId: ENVIRONMENT_ID, fromPersonId: 1, toPersonId: 2 },
    ]);
    await note('merge');
    await takeUntold(transaction, ENVIRONMENT_ID, 0);
    await note('alerts');
    expect(await listWebhooks(transaction, ENVIRONMENT_ID)).toHaveLength(1);
    await note('webhooks');
    expect(await listApplications(transaction, ENVIRONMENT_ID, 50, 'a5')).toHaveLength(50);
    expect(await listEndpoints(transaction, ENVIRONMENT_ID, 'a5', 50)).toHaveLength(2);
    await note('lists');
    return read;
  });
  for (const [name, count] of Object.entries(counts))
    expect([name, count <= 100]).toEqual([name, true]);
}, 240_000);
