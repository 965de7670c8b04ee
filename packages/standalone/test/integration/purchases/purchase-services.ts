/**
 * API, worker and the simulated payment provider, as operators run them.
 *
 * They run on a fresh database with the demo's accounts.
 */
import { fileURLToPath } from 'node:url';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator } from '@sluice/billing-vendor/simulator/simulator';
import { listCharges } from '@sluice/billing-vendor/simulator/simulator-controls';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { findFreePort } from '@sluice/platform/testing/free-port';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, vi } from 'vitest';
import { PATIENT_DELIVERIES } from '../fleet-under-test.ts';

export const WAIT = { timeout: 60_000, interval: 50 };
/** Of a purchase whose worker was killed too: another one goes on with it 15 s later. */
const ENDED = { timeout: 90_000, interval: 50 };

export const CARD = { accountId: DEMO.accountId, token: DEMO.accountToken };
export const INVOICED = {
  accountId: DEMO.invoicedAccountId,
  token: DEMO.invoicedAccountToken,
};
interface DemoAccount {
  readonly accountId: number;
  readonly token: string;
}

/** Members of an answer that are read by name. */
type Body = Record<string, unknown> & { run_id: string };

const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../../${service}/src/main.ts`, import.meta.url));

/** @param catalogueFile - absent: the catalogue that comes with the program. */
export async function startPurchaseServices(
  redisUrl: string,
  catalogueFile?: string,
  more: Readonly<Record<string, string>> = {},
) {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  // The simulator binds it after the services have started: no outgoing connection may take it meanwhile.
  const port = await findFreePort();
  const settings: Record<string, string> = {
    DATABASE_URL: url,
    REDIS_URL: redisUrl,
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    SIMULATOR_URL: `http://127.0.0.1:${port}`,
    STRIPE_WEBHOOK_SECRET: 'whsec_of_this_test',
    API_PORT: '0',
    WORKER_PORT: '0',
    WORKER_SWEEP_INTERVAL_MS: '100',
    // A call that waits for its purchase waits long enough on a busy machine.
    PURCHASE_WAIT_MS: '60000',
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
    ...PATIENT_DELIVERIES,
    ...(catalogueFile !== undefined && { BILLING_CATALOGUE_FILE: catalogueFile }),
    ...more,
  };
  const start = (service: string, changes = {}): Promise<ServiceUnderTest> =>
    startServiceUnderTest(mainOf(service), { ...settings, ...changes });
  const [api, firstWorker] = await Promise.all([start('api'), start('worker')]);
  let worker = firstWorker;
  const simulator = await startSimulator({
    host: '127.0.0.1',
    port,
    webhookUrl: `${api.url}/v1/vendor_events`,
    webhookSecret: 'whsec_of_this_test',
    catalogue: readCatalogue(catalogueFile),
    now: Date.now,
    random: Math.random,
  });

  async function call(
    account: DemoAccount,
    path: string,
    body?: object,
  ): Promise<{ status: number; headers: Headers; body: Body }> {
    const answer = await fetch(`${api.url}/v1/accounts/${account.accountId}/billing${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${account.token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const json = await answer.text();
    return {
      status: answer.status,
      headers: answer.headers,
      body: JSON.parse(json === '' ? '{}' : json) as Body,
    };
  }

  return {
    settings,
    database,
    api,
    simulator,
    call,
    paid: () => listCharges(simulator.state).filter((charge) => charge.status === 'succeeded'),
    untilEnded: (account: DemoAccount, runId: string) =>
      vi.waitFor(async () => {
        const { body } = await call(account, `/runs/${runId}?wait=5`);
        expect(body).not.toMatchObject({ status: 'pending' });
        return body;
      }, ENDED),
    /** SIGKILL, and another one with these settings. */
    async replaceWorker(changes: Readonly<Record<string, string>>): Promise<ServiceUnderTest> {
      await worker.kill('SIGKILL');
      worker = await start('worker', changes);
      return worker;
    },
    async close() {
      await Promise.all([api.kill('SIGKILL'), worker.kill('SIGKILL')]);
      await simulator.close();
    },
  };
}

export type PurchaseServices = Awaited<ReturnType<typeof startPurchaseServices>>;
