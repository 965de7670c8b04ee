/**
 * First opens and clicks for webhooks without full resolution.
 *
 * Such a webhook gets the first open and the first click of each link, once.
 */
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { NumberStock } from '@sluice/database/people/numbers';
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { Webhook } from '@sluice/database/webhooks/webhooks';
import type { Operation } from '@sluice/domain/operations/operation';
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import { parseMetric } from '@sluice/domain/track/track-v1-messages';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { createGate } from '../support/lane-world.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';

let database: Database;
const newId = createIdGenerator(Date.now);
const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
let lastEnvironmentId = 0;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

/** A workspace with a webhook that wants the first ones only, and one that wants all. */
async function createWorkspace() {
  const environmentId = ++lastEnvironmentId;
  await insertTestWorkspace(database, environmentId);
  const events = ['email_opened', 'email_clicked', 'email_delivered'];
  const firsts = await insertTestWebhook(database, environmentId, { events });
  const all = await insertTestWebhook(database, environmentId, { events, fullResolution: true });
  const logged = async ({ webhookId }: Webhook): Promise<string[]> => {
    const { rows } = await sql<{ body: string }>`
      select body from delivery_log where environment_id = ${environmentId} and webhook_id = ${webhookId}
       order by sequence`.execute(database);
    return rows.map(({ body }) => {
      const { metric, data } = JSON.parse(body) as {
        metric: string;
        data: { delivery_id: string; href?: string };
      };
      return [metric, data.delivery_id, data.href].filter(Boolean).join(' ');
    });
  };
  return {
    environmentId,
    firsts: () => logged(firsts),
    all: () => logged(all),
    /** A call to the Track API's metrics route, as intake parses it. */
    call: (metric: string, deliveryId: string, href?: string): Operation => {
      const body = { delivery_id: deliveryId, metric, ...(href !== undefined && { href }) };
      const context = { environmentId, receivedAtMs: NOW_MS, newId, phoneIdentifies: false };
      const [operation] = parseMetric(body, context).operations;
      if (!operation) throw new Error('the call was refused');
      return operation;
    },
    report: (...operations: Operation[]) =>
      processCommitBatch(
        {
          database,
          numbers: new NumberStock(),
          takenIds: new TakenIdWatch(),
          newId,
          now: () => NOW_MS,
        },
        { id: newId(), operations },
      ),
  };
}

test('the first open and the first click of each link are sent, the others only in full resolution', async () => {
  const { call, report, firsts, all } = await createWorkspace();
  await report(
    call('delivered', 'm1'),
    call('opened', 'm1'),
    call('opened', 'm1'),
    call('clicked', 'm1', 'https://a.example'),
    call('opened', 'm2'),
  );
  await report(
    call('clicked', 'm1', 'https://a.example'),
    call('clicked', 'm1', 'https://b.example'),
    call('opened', 'm1'),
    call('delivered', 'm1'),
  );
  expect(await firsts()).toEqual([
    'delivered m1',
    'opened m1',
    'clicked m1 https://a.example',
    'opened m2',
    'clicked m1 https://b.example',
    'delivered m1',
  ]);
  expect(await all()).toHaveLength(9);
});

test('clicks that name no link are one link, and a link of the longest kind is a link', async () => {
  const { call, report, firsts } = await createWorkspace();
  const long = (end: string) => `https://a.example/${'x'.repeat(1_900)}${end}`;
  await report(
    call('clicked', 'm1'),
    call('clicked', 'm1'),
    call('clicked', 'm1', long('1')),
    call('clicked', 'm1', long('2')),
    call('clicked', 'm1', long('1')),
  );
  expect(await firsts()).toHaveLength(3);
});

test('the same message in another workspace is another message', async () => {
  const [one, other] = [await createWorkspace(), await createWorkspace()];
  await one.report(one.call('opened', 'm1'));
  await other.report(other.call('opened', 'm1'));
  expect(await other.firsts()).toEqual(['opened m1']);
});

test('commit batches that report the same messages at once, in any order, send each first once', async () => {
  const { call, report, firsts, all } = await createWorkspace();
  const messages = Array.from({ length: 20 }, (_, index) => `m${index}`);
  await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      report(
        ...(index % 2 ? messages : messages.toReversed()).flatMap((message) => [
          call('opened', message),
          call('clicked', message, 'https://a.example'),
        ]),
      ),
    ),
  );
  const sent = await firsts();
  expect(sent).toHaveLength(40);
  expect(new Set(sent).size).toBe(40);
  expect(await all()).toHaveLength(320);
});

test('if the first transaction is undone, the transaction that waited for it is first', async () => {
  const { environmentId, firsts } = await createWorkspace();
  const opened = (): ReportingEvent => ({
    environmentId,
    eventId: newId(),
    eventType: 'email_opened',
    objectType: 'email',
    metric: 'opened',
    occurredAtMs: NOW_MS,
    engagement: { deliveryId: 'm1', link: '' },
    data: { delivery_id: 'm1' },
  });
  const [taken, mayEnd] = [createGate(), createGate()];
  const undone = database.transaction().execute(async (transaction) => {
    await appendDeliveries(transaction, [opened()]);
    taken.open();
    await mayEnd.opened;
    throw new Error('undone');
  });
  await taken.opened;
  const waiting = database
    .transaction()
    .execute((transaction) => appendDeliveries(transaction, [opened()]));
  mayEnd.open();
  await expect(undone).rejects.toThrow('undone');
  await waiting;
  expect(await firsts()).toEqual(['opened m1']);
});
