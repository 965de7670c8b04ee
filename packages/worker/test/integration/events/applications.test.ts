/**
 * A published message reaches the endpoints of its application alone.
 *
 * Messages arrive in the order in which they came.
 */
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { makeApplication, deleteApplication } from '@sluice/database/webhooks/applications';
import type { NewWebhook } from '@sluice/database/webhooks/webhooks';
import { APPLICATION_EVENT_TYPE } from '@sluice/domain/delivery/incoming-event';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, publish, track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';

const ORIGIN = { actor: { type: 'system' } } as const;

let world: CommitBatchWorld;
let environmentId: number;
beforeAll(async () => {
  world = await createCommitBatchWorld();
});
beforeEach(async () => {
  environmentId = await newWorkspace();
});

async function newWorkspace(): Promise<number> {
  const made = world.newEnvironment();
  await insertTestWorkspace(world.database, made);
  return made;
}

const application = (applicationId: string, inside = environmentId) =>
  makeApplication(world.database, inside, { applicationId, name: applicationId }, ORIGIN, 0);

const endpoint = async (
  applicationId: string,
  settings: Partial<NewWebhook> = {},
  inside = environmentId,
): Promise<number> => {
  const events = [APPLICATION_EVENT_TYPE];
  const made = await insertTestWebhook(world.database, inside, {
    events,
    applicationId,
    ...settings,
  });
  return made.webhookId;
};
const webhook = async (events: string[]): Promise<number> =>
  (await insertTestWebhook(world.database, environmentId, { events })).webhookId;

const process = (...operations: Operation[]) =>
  world.process(inEnvironment(environmentId, ...operations));

async function idsOf(webhookId: number, inside = environmentId): Promise<string[]> {
  const { rows } = await sql<{ eventId: string }>`
    select event_id as "eventId" from delivery_log
     where environment_id = ${inside} and webhook_id = ${webhookId} order by sequence`.execute(
    world.database,
  );
  return rows.map(({ eventId }) => eventId);
}

const message = (eventId: string, to?: string, type = 'paid') =>
  publish(type, { eventId, ...(to !== undefined && { application: to }) });

test('endpoints receive only messages of their own application, once and in order', async () => {
  await application('acme');
  await application('bolt');
  const acme = await endpoint('acme');
  const acmePaid = await endpoint('acme', { eventNames: ['paid'] });
  const acmeOff = await endpoint('acme', { disabled: true });
  const bolt = await endpoint('bolt');
  const all = await webhook(['*']);
  const failing = await webhook(['message']);
  await process(
    message('1', 'acme'),
    message('2', 'bolt'),
    message('3', 'acme', 'sent'),
    message('1', 'acme'),
    message('4'),
    message('5', 'nobody’s'),
    identify('id:ada', { email: 'a@x' }),
    track('id:ada', 'order_placed', { eventId: 'tracked' }),
  );
  await process(message('6', 'acme'));
  expect(await idsOf(acme)).toEqual(['1', '3', '6']);
  expect(await idsOf(acmePaid)).toEqual(['1', '6']);
  expect(await idsOf(acmeOff)).toEqual([]);
  expect(await idsOf(bolt)).toEqual(['2']);
  expect(await idsOf(failing)).toEqual(['4', '5']);
  expect(await idsOf(all)).toEqual(expect.arrayContaining(['4', '5', 'tracked']));
  for (const id of ['1', '2', '3', '6']) expect(await idsOf(all)).not.toContain(id);
});

test('an application of another workspace is another application, also with the same id', async () => {
  const neighbourId = await newWorkspace();
  await application('acme', neighbourId);
  const theirs = await endpoint('acme', {}, neighbourId);
  const own = await webhook(['message']);
  await process(message('1', 'acme'));
  expect(await idsOf(theirs, neighbourId)).toEqual([]);
  expect(await idsOf(own)).toEqual(['1']);
});

test('a filter of an endpoint sees the message, and filters of webhooks leave endpoints alone', async () => {
  await application('acme');
  const large = await endpoint('acme', {
    attributeFilters: [{ field: 'data.payload.total', operator: 'gte', values: ['100'] }],
  });
  const every = await endpoint('acme');
  await insertTestWebhook(world.database, environmentId, {
    events: ['customer_subscribed'],
    attributeFilters: [{ field: 'data.payload', operator: 'exists' }],
  });
  const of = (eventId: string, total: number) =>
    publish('paid', { eventId, application: 'acme', payload: { total } });
  await process(
    of('1', 5),
    of('2', 500),
    identify('id:ada', { email: 'a@x', unsubscribed: true }),
    identify('id:ada', { unsubscribed: false }),
  );
  expect(await idsOf(large)).toEqual(['2']);
  expect(await idsOf(every)).toEqual(['1', '2']);
});

test('the endpoints of a deleted application receive no more messages', async () => {
  await application('acme');
  const acme = await endpoint('acme');
  await process(message('1', 'acme'));
  expect(await deleteApplication(world.database, environmentId, 'acme', ORIGIN, 0)).toBe(true);
  await process(message('2', 'acme'));
  await application('acme');
  await process(message('3', 'acme'));
  expect(await idsOf(acme)).toEqual(['1']);
  expect(await world.countOf('lanes', environmentId)).toBe(0);
});
