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
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { createVettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import { fastify, type InjectOptions, type LightMyRequestResponse } from 'fastify';
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
import { insertTenant } from './inserted-rows.ts';

export const SECRET = 'secret of the api under test, long enough';

/** Of the app API; it opens workspace A. */
export const KEY_OF_A = 'key_of_a';

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
