/**
 * The API over a real, empty database, with a test clock. The database has two workspaces of two accounts. The API has the
 * rights of its role alone, and a test has all.
 */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import type { PurchaseKey } from '@sluice/database/billing/purchase-workflows';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { AuditLogExportKey } from '@sluice/database/audit/audit-log-exports';
import type { Database } from '@sluice/database/connection/connection';
import { insertReceipt } from '@sluice/database/billing/receipts';
import type { Role } from '@sluice/domain/accounts/account';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { createVettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import { fastify, type InjectOptions, type LightMyRequestResponse } from 'fastify';
import { sql } from 'kysely';
import { expect } from 'vitest';
import { RefusedCredentials } from '../../../src/auth/refused-credentials.ts';
import { domainRecordText } from '../../../src/identity/domain-records.ts';
import { createProviderClient } from '../../../src/identity/provider-client.ts';
import { createProviderFetch } from '../../../src/identity/provider-fetch.ts';
import { TailPlaces } from '../../../src/events/tail-places.ts';
import type { ApiEffects } from '../../../src/api-effects.ts';
import { buildServer } from '../../../src/server.ts';
import type { AnsweredBodiesOptions } from '../../../src/serving/answered-bodies.ts';
import type { UnreadAnswersOptions } from '../../../src/serving/unread-answers.ts';
import { checkAgainst } from './documented-answers.ts';

export const SECRET = 'secret of the api under test, long enough';

/** Of the app API; it opens workspace A. */
export const KEY_OF_A = 'key_of_a';

export interface Tenant {
  readonly environmentId: number;
  readonly accountId: number;
  /** Of the app API. */
  readonly key: string;
  /** Of a service account that may do everything in the account. */
  readonly token: string;
  /** A Pipelines key for changes, which no call uses. */
  readonly spareCredentialId: number;
}

type CallOptions = Pick<InjectOptions, 'headers' | 'payload' | 'query'> & {
  readonly body?: unknown;
  readonly key?: string;
};

interface ApiOptions {
  /** Of the database's sessions. */
  readonly timeZone?: string;
  readonly bodyTimeoutMs?: number;
  readonly silenceTimeoutMs?: number;
  readonly unreadAnswers?: UnreadAnswersOptions;
  readonly answeredBodies?: AnsweredBodiesOptions;
  /** Wrong tokens of one address; without it they are not counted. */
  readonly refusedPerMinuteMax?: number;
  /** The API's own way to the database, if it is not the test's. The test closes it. */
  readonly openDatabase?: (databaseUrl: string) => Promise<Database>;
}

/** `changes` replaces effects. */
export async function startApi(
  changes: Partial<ApiEffects> = {},
  {
    timeZone,
    bodyTimeoutMs,
    silenceTimeoutMs,
    unreadAnswers,
    answeredBodies,
    openDatabase,
    refusedPerMinuteMax = 0,
  }: ApiOptions = {},
) {
  const { database, openAs, url: databaseUrl } = await createTestDatabase(timeZone);
  const woken: LaneKey[] = [];
  const wokenPurchases: PurchaseKey[] = [];
  const wokenExports: AuditLogExportKey[] = [];
  const refusals: object[] = [];
  const everyRefusal: object[] = [];
  const clock = { nowMs: Date.parse('2026-03-01T12:00:00Z'), setBackMs: 0 };
  const broker = { isAway: false };
  const domainRecords: string[] = [];
  let idCount = 0;
  let secretCount = 0;
  const encryptedText = createEncryptedText([{ id: 'test', key: Buffer.alloc(32, 7) }]);
  const refusedCredentials = new RefusedCredentials({
    countMax: refusedPerMinuteMax,
    now: () => clock.nowMs - clock.setBackMs,
    database,
    monotonicNow: () => clock.nowMs,
    logger: {
      warn: (line: object) => void refusals.push(line),
      debug: (line: object) => void everyRefusal.push(line),
    } as never,
  });
  const effects: ApiEffects = {
    database: (await openDatabase?.(databaseUrl)) ?? openAs('sluice_api'),
    logger: fastify().log,
    now: () => clock.nowMs - clock.setBackMs,
    monotonicNow: () => clock.nowMs,
    refusedCredentials,
    secret: SECRET,
    ratePerMinute: 0,
    keyRatePerSecond: 0,
    trustedProxies: [],
    addressConnectionCountMax: 0,
    newId: () => `id-${++idCount}`,
    recordRequest: () => {},
    checkReadiness: async () => ({ isReady: true, checks: {} }),
    signupAdmission: { admits: 'anybody' },
    providers: createProviderClient(
      withoutDeadline(createProviderFetch(createVettedConnector({ allowPrivate: true }))),
      () => clock.nowMs,
    ),
    // Both tenants own every domain.
    readTextRecords: async () => domainRecords,
    demoHosts: [],
    operatorAccountIds: [],
    // There is no broker: a look at the fleet leaves its part out.
    openFleetBroker: () => Promise.reject(new Error('no broker here')),
    consoleIntakeUrl: 'http://127.0.0.1:8080',
    showsProbeDetails: true,
    renderMetrics: async () => ({ contentType: 'text/plain', body: '' }),
    outgoingIpAddresses: [],
    giveUpAfterMs: 604_800_000,
    provider: unreachableProvider(),
    providerEventSecret: PROVIDER_EVENT_SECRET,
    providerTimeoutMs: 1_000,
    catalogue: readCatalogue(undefined),
    cardPaymentMs: 3_600_000,
    purchaseWaitMs: 1,
    wakePurchaseWorkflow: async (workflow) => void wokenPurchases.push(workflow),
    wakeProviderEvents: async () => {},
    importSizeBytesMax: 10_000_000,
    unfinishedImportSizeBytesMax: 25_000_000,
    importStorage: { sizeBytesMax: 1e12, sharePercent: 25 },
    openTail: async () => ({ close: () => {} }),
    tailPlaces: new TailPlaces({
      database,
      countMax: 80,
      sharePercent: 25,
      monotonicNow: () => clock.nowMs,
    }),
    // Ends by itself: a test of every operation waits for each answer's end.
    tailDurationMsMax: 1,
    encryptedText,
    newSecret: () => `secret-${String(++secretCount).padStart(4, '0')}-of-${'0'.repeat(20)}`,
    wakeLane: async (lane) => {
      if (broker.isAway) throw new Error('the broker is away');
      woken.push(lane);
    },
    wakeExport: async (key) => {
      if (broker.isAway) throw new Error('the broker is away');
      wokenExports.push(key);
    },
    ...changes,
  };
  const app = await buildServer(
    effects,
    bodyTimeoutMs,
    silenceTimeoutMs,
    unreadAnswers,
    answeredBodies,
  );
  const inject = app.inject.bind(app) as (
    options: InjectOptions,
  ) => Promise<LightMyRequestResponse>;
  await app.ready();
  const check = checkAgainst(app.swagger());
  // Every answer that a test gets is held to the document.
  app.inject = (async (options: InjectOptions | string) => {
    const answer = await inject(typeof options === 'string' ? { url: options } : options);
    const { method = 'GET', url = '' } = typeof options === 'string' ? { url: options } : options;
    check(method, typeof url === 'string' ? url : (url.pathname ?? ''), answer);
    return answer;
  }) as typeof app.inject;
  const a = await insertTenant(database, KEY_OF_A);
  const b = await insertTenant(database, 'key_of_b');
  domainRecords.push(...[a, b].map(({ accountId }) => domainRecordText(SECRET, accountId)));

  return {
    app,
    database,
    databaseUrl,
    woken,
    wokenPurchases,
    wokenExports,
    clock,
    refusals,
    everyRefusal,
    refusedCredentials,
    broker,
    encryptedText,
    a,
    b,
    /** Calls as workspace A unless another key is given. No input of a client may end in a 500. */
    async call(
      method: 'GET' | 'POST' | 'PUT' | 'DELETE',
      url: string,
      { body, key = a.key, ...options }: CallOptions = {},
    ) {
      const answer = await app.inject({
        method,
        url,
        ...options,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...options.headers,
        },
        ...(body !== undefined && { payload: JSON.stringify(body) }),
      });
      expect({ status: answer.statusCode < 500, body: answer.body }).toMatchObject({
        status: true,
      });
      return answer;
    },
    close: () => app.close(),
  };
}

export const PROVIDER_EVENT_SECRET = 'whsec_test';

/** The API gives an identity provider five seconds. A provider of the test's own process answers after a stall of it. */
const withoutDeadline =
  (fetch: ReturnType<typeof createProviderFetch>): typeof fetch =>
  (address, { signal: _signal, ...options }) =>
    fetch(address, options);

/** No call of the API may need the payment provider to answer, as long as there is no purchase by card. */
const unreachableProvider = () =>
  createStripeProvider(
    openStripeClient({ secretKey: 'sk_test', baseUrl: 'http://127.0.0.1:9', timeoutMs: 50 }),
  );

export type ApiUnderTest = Awaited<ReturnType<typeof startApi>>;

export async function insertTenant(database: Database, key: string): Promise<Tenant> {
  const { rows } = await sql<{ environmentId: number; accountId: number }>`
    with account as (insert into accounts (name) values (${key}) returning account_id)
    insert into environments (account_id, name, webhook_signing_key)
    select account_id, ${`workspace of ${key}`}, 'signing key' from account
    returning environment_id as "environmentId", account_id::int as "accountId"`.execute(database);
  const { environmentId, accountId } = rows[0]!;
  await insertKey(database, environmentId, 'app', key);
  const token = `sa_sandbox_${key}`;
  await insertToken(database, accountId, token);
  await insertKey(database, environmentId, 'pipelines', `spare_${key}`);
  const spare = await sql<{ credentialId: number }>`
    select credential_id::int as "credentialId" from api_credentials
     where account_id = ${accountId} and kind = 'pipelines'`.execute(database);
  return { environmentId, accountId, key, token, spareCredentialId: spare.rows[0]!.credentialId };
}

/** A token of a new service account. */
export async function insertToken(
  database: Database,
  accountId: number,
  token: string,
  given: {
    readonly role?: Role;
    readonly isReadOnly?: boolean;
    readonly scopes?: readonly string[];
    readonly ipAllowlist?: readonly string[];
    readonly expiresAt?: string;
  } = {},
): Promise<void> {
  const { role = 'account_admin', isReadOnly = false, scopes = ['usage:write'] } = given;
  const { ipAllowlist = [], expiresAt = null } = given;
  await sql`
    with service_account as (
      insert into service_accounts (account_id, name, role) values (${accountId}, 'test', ${role})
      returning account_id, service_account_id)
    insert into api_credentials
      (account_id, service_account_id, kind, name, secret_hash, secret_hint, is_read_only, scopes, ip_allowlist, expires_at)
    select account_id, service_account_id, 'service_account', 'test', ${hashSecret(token)}, ${token.slice(-4)},
           ${isReadOnly}, ${scopes}::text[], ${ipAllowlist}::text[], ${expiresAt}::timestamptz
      from service_account`.execute(database);
}

/** A purchase of add-ons that is pending. */
export async function insertPendingPurchase(
  database: Database,
  accountId: number,
  runId: string,
): Promise<void> {
  const content = { type: 'addons', skus: ['a'], contact: { name: 'a', email: 'a@example.com' } };
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at)
    values (${accountId}, ${runId}, 'addons', 'addons', 'card', '', ${JSON.stringify(content)},
            '{"actor": {"type": "system"}}', '2026-03-01T00:00:00Z')`.execute(database);
}

export async function insertKey(
  database: Database,
  environmentId: number,
  kind: 'app' | 'track' | 'pipelines',
  key: string,
  given: { readonly isReadOnly?: boolean; readonly ipAllowlist?: readonly string[] } = {},
): Promise<void> {
  const { isReadOnly = false, ipAllowlist = [] } = given;
  const hash = hashSecret(key);
  await sql`
    insert into api_credentials
      (account_id, environment_id, kind, name, site_id, secret_hash, secret_hint, is_read_only, ip_allowlist)
    select account_id, environment_id, ${kind}, 'test', ${kind === 'track' ? 'site' : null}::text, ${hash}::bytea,
           ${key.slice(-4)}, ${isReadOnly}, ${ipAllowlist}::text[]
      from environments where environment_id = ${environmentId}`.execute(database);
}

/** A person with the given identifiers and attributes; identifiers as the worker writes them. */
export async function insertPerson(
  database: Database,
  environmentId: number,
  person: {
    readonly personId: number;
    readonly id?: string;
    readonly email?: string;
    readonly attributes?: Record<string, unknown>;
    readonly unsubscribed?: boolean;
  },
): Promise<void> {
  const { personId, id = null, email = null, attributes = {}, unsubscribed = null } = person;
  await sql`
    insert into people (environment_id, person_id, id, email, unsubscribed, attributes, created_at, updated_at)
    values (${environmentId}, ${personId}, ${id}, ${email}, ${unsubscribed}, ${JSON.stringify(attributes)},
            '2026-02-01T00:00:00Z', '2026-02-02T00:00:00Z')`.execute(database);
  for (const [kind, value] of [
    ['id', id],
    ['email', email?.toLowerCase()],
  ]) {
    if (value == null) continue;
    await sql`
      insert into person_identifiers (environment_id, kind, value, person_id)
      values (${environmentId}, ${kind}, ${value}, ${personId})`.execute(database);
  }
}

export async function insertEvent(
  database: Database,
  environmentId: number,
  event: {
    readonly personId: number;
    readonly eventId: string;
    readonly occurredAt: string;
    readonly receivedAt?: string;
    readonly kind?: string;
    readonly name?: string | null;
    readonly data?: Record<string, unknown>;
  },
): Promise<void> {
  const { personId, eventId, occurredAt, kind = 'event', name = 'bought', data = {} } = event;
  const { receivedAt = '2026-03-01T00:00:00Z' } = event;
  await sql`
    insert into events (environment_id, person_id, event_id, kind, name, data, occurred_at, received_at, processed_at)
    values (${environmentId}, ${personId}, ${eventId}, ${kind}, ${name}, ${JSON.stringify(data)}, ${occurredAt},
            ${receivedAt}, ${receivedAt})`.execute(database);
  await sql`
    insert into event_ids (environment_id, event_id, received_at, source)
    values (${environmentId}, ${eventId}, ${receivedAt}, 'pipelines.track')
    on conflict do nothing`.execute(database);
}

/** With text that must be escaped. */
export async function insertTestReceipt(
  database: Database,
  accountId: number,
  receiptId: string,
): Promise<void> {
  await insertReceipt(database, accountId, {
    receiptId,
    number: 'R-1 <b>',
    issuedAt: new Date('2026-02-01T10:00:00Z'),
    billedTo: '<script>alert("billed")</script>\n1 Main & Sons',
    lines: [{ description: `<img src=x onerror='alert(1)'>`, quantity: 2, amount: 12345 }],
    total: 12345,
    currency: 'usd',
    paymentMethod: 'Visa "4242"',
  });
}
