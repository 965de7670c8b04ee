/** Records of each kind in two accounts, and their ids in addresses. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { expect, vi } from 'vitest';
import { WAIT } from '../fleet-under-test.ts';
import { type ConsoleUnderTest, startReceiver } from './console-under-test.ts';

export interface AccountUnderTest {
  /** Of its workspace too. */
  readonly accountId: number;
  readonly writeKey: string;
  readonly appKey: string;
  readonly token: string;
  /** In texts of each record, and in no id. */
  readonly marker: string;
  /** In the ids that a caller chooses. */
  readonly suffix: string;
}

export const FIRST: AccountUnderTest = {
  accountId: DEMO.accountId,
  writeKey: DEMO.writeKey,
  appKey: DEMO.appKey,
  token: DEMO.accountToken,
  marker: 'quincejelly',
  suffix: 'a',
};

export const SECOND: AccountUnderTest = {
  accountId: DEMO.paidAccountId,
  writeKey: DEMO.paidWriteKey,
  appKey: DEMO.paidAppKey,
  token: DEMO.paidAccountToken,
  marker: 'medlarsyrup',
  suffix: 'b',
};

/** Parameters of paths, by the pattern of the route. */
export type IdsOfRoutes = Readonly<Record<string, Readonly<Record<string, string | number>>>>;

/** Ids that both accounts choose. */
const SHARED = 'shared';

export interface AccountRecords {
  readonly ids: IdsOfRoutes;
  /** Routes whose ids both accounts have. */
  readonly sharedIds: IdsOfRoutes;
  /** Queries of screens that name a record, by the pattern of the route. */
  readonly queries: Readonly<Record<string, readonly string[]>>;
  /** `workspace/link` of its portal. */
  readonly portal: { readonly workspace_id: number; readonly link_id: string };
  readonly webhookId: number;
}

/** Makes a record of each kind. Its webhook's receiver answers 500, with the marker. */
export async function makeRecords(
  world: ConsoleUnderTest,
  of: AccountUnderTest,
): Promise<AccountRecords & { close(): void }> {
  const { accountId, marker, suffix } = of;
  const { database } = world.fleet;
  const ofAccount = `/v1/accounts/${accountId}`;
  const call = <Answer = unknown>(method: string, path: string, body?: object) =>
    world.call<Answer>(method, path, body, path.startsWith(ofAccount) ? of.token : of.appKey);
  const receiver = await startReceiver();
  receiver.answer.body = JSON.stringify({ error: marker });

  await sql`update accounts set name = ${`Account ${marker}`} where account_id = ${accountId}`.execute(
    database,
  );
  await sql`
    update environments set name = ${`Workspace ${marker}`} where account_id = ${accountId}`.execute(
    database,
  );
  const { id: webhookId } = await call<{ id: number }>('POST', '/v1/reporting_webhooks', {
    name: `hook ${marker}`,
    endpoint: receiver.url,
    events: ['customer_subscribed'],
  });
  for (const name of [suffix, SHARED]) await makeNamed(of, name, { world, call });
  await world.send(
    '/v1/track',
    { userId: `person-${suffix}`, event: `Order ${marker}`, timestamp: marker },
    false,
    of.writeKey,
  );
  const importId = await world.importFile(
    `${marker}.csv`,
    `_svc_name,_svc_customer_id\nOrder ${marker},person-${suffix}\n,\n`,
    of.appKey,
  );
  const { api_credential: key } = await call<{ api_credential: { id: number } }>(
    'POST',
    `${ofAccount}/api_credentials`,
    { type: 'app', name: `key ${marker}`, environment_id: accountId },
  );
  await call('PUT', ofAccount, { account: { website: `https://${marker}.example` } });
  const { audit_logs: entries } = await call<{ audit_logs: { id: number; object_type: string }[] }>(
    'GET',
    `${ofAccount}/audit_logs?object_type=account`,
  );
  const { userId } = await world.insertUser('member', accountId);
  await sql`
    update users set first_name = ${marker} where account_id = ${accountId} and user_id = ${userId}`.execute(
    database,
  );
  const runId = `run_of_${suffix}`;
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, status, message, content, origin, created_at, finished_at)
    values (${accountId}, ${runId}, 'invoiced', 'credits', 'invoiced', 'x', 'declined', ${`Declined: ${marker}`},
            '{}', '{}', now() - interval '3 seconds', now())`.execute(database);
  const { id: linkId } = await call<{ id: string }>('POST', '/v1/portal_links', {
    for: `customer ${marker}`,
    webhook_ids: [webhookId],
  });
  // The worker has tried, and written the person.
  await vi.waitFor(async () => {
    expect(receiver.bodies.length).toBeGreaterThan(0);
    const path = `/v1/reporting_webhooks/${webhookId}/deliveries/1`;
    expect(JSON.stringify(await call('GET', path))).toContain(marker);
    for (const name of [suffix, SHARED]) {
      const { customer } = await call<{ customer: object }>(
        'GET',
        `/v1/customers/person-${name}/attributes`,
      );
      expect(JSON.stringify(customer)).toContain(marker);
    }
  }, WAIT);
  return {
    webhookId,
    portal: { workspace_id: accountId, link_id: linkId },
    ids: {
      ...namedIds(suffix),
      '/webhooks/:id': { id: webhookId },
      '/imports/:id': { id: importId },
      '/keys/:id': { id: key.id },
      '/audit/:id': { id: entries[0]!.id },
      '/billing/purchases/:run': { run: runId },
    },
    sharedIds: namedIds(SHARED),
    queries: {
      '/webhooks/:id': ['delivery=1', 'delivery=1&attempt=1'],
      '/deliveries': [`event_type=customer_subscribed`],
      '/users': [`user=${userId}`, 'removed=shown'],
      '/audit': [`credential=${key.id}`, `user=${userId}`, `object=account&id=${accountId}`],
      '/people': ['begins=person'],
      '/people/:id': ['tab=relationships', 'attribute=plan'],
    },
    close: () => receiver.close(),
  };
}

/** Records whose ids the caller chooses. */
async function makeNamed(
  { marker, writeKey }: AccountUnderTest,
  name: string,
  {
    world,
    call,
  }: {
    readonly world: ConsoleUnderTest;
    readonly call: (method: string, path: string, body?: object) => Promise<unknown>;
  },
): Promise<void> {
  const send = async (path: string, body: object): Promise<void> => {
    expect(await world.send(path, body, true, writeKey)).toBe(200);
  };
  const userId = `person-${name}`;
  const traits = { email: `${name}@${marker}.example`, plan: marker, unsubscribed: false };
  await send('/v1/identify', { userId, traits });
  await send('/v1/track', {
    userId,
    event: `Order ${marker}`,
    messageId: `event-${name}`,
    properties: { note: marker },
  });
  await send('/v1/group', { userId, groupId: `company-${name}`, traits: { plan: marker } });
  await call('PUT', `/v1/event_types/type.${name}`, {
    description: `It is ${marker}.`,
    schema: { type: 'object', required: [marker] },
  });
  await call('POST', '/v1/applications', { id: `customer-${name}`, name: `customer ${marker}` });
  await call('POST', `/v1/applications/customer-${name}/endpoints`, {
    name: `endpoint ${marker}`,
    endpoint: 'http://127.0.0.1:9/hook',
    event_names: [`type.${name}`],
  });
  await call('PUT', `/v1/feeds/feed-${name}`, { events: ['event'] });
  // A feed keeps the events after its beginning.
  await send('/v1/track', { userId, event: `Feed ${marker}`, messageId: `of-feed-${name}` });
}

const namedIds = (name: string): IdsOfRoutes => ({
  '/events/:id': { id: `event-${name}` },
  '/event-types/:name': { name: `type.${name}` },
  '/applications/:id': { id: `customer-${name}` },
  '/feeds/:name': { name: `feed-${name}` },
  '/people/:id': { id: `person-${name}` },
  '/objects/:type/:id': { type: 1, id: `company-${name}` },
});
