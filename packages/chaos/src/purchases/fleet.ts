/**
 * The fleet for purchases: an API, a worker and a simulated payment provider.
 *
 * API and worker are real processes over a Postgres of their own. The payment provider is in this process, so that its
 * record of charges outlives every kill. It sends each event twice, late and out of order.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator, type Simulator } from '@sluice/billing-vendor/simulator/simulator';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { migrate } from '@sluice/database/schema/migrate';
import type { Random } from '@sluice/domain/values/seeded-random';
import { migrateQueues } from '@sluice/platform/queue/queue';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { installBreakpoints } from './breakpoints.ts';

export type Service = 'api' | 'worker';

export interface PurchaseFleet {
  readonly database: Database;
  readonly simulator: Simulator;
  /** The same for the whole life of the fleet. */
  readonly apiUrl: string;
  /** SIGKILL; resolves when it is gone. */
  kill(service: Service): Promise<void>;
  start(service: Service): Promise<void>;
  /** Settings with which a program sees the same ledgers. */
  readonly settings: Readonly<Record<string, string>>;
  lastLines(service: Service): readonly string[];
  close(): Promise<void>;
}

/** Time for which a worker waits for the payment provider. */
const VENDOR_TIMEOUT_MS = 400;
const EVENT_DELAY_MS_MAX = 400;
const LINES_SHOWN = 15;

const mainOf = (service: Service) =>
  fileURLToPath(new URL(`../../../${service}/src/main.ts`, import.meta.url));

export async function startPurchaseFleet(random: Random): Promise<PurchaseFleet> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-purchases-'));
  // Postgres' account must pass through.
  await chmod(directory, 0o711);
  const postgres = await startEmbeddedPostgres({
    directory,
    // Only processes of ours die here.
    durability: 'none',
    onProgress: () => {},
  });
  await postgres.createDatabase('purchases');
  const url = postgres.url('purchases');
  const database = createDatabase({
    url,
    poolMax: 4,
    applicationName: 'chaos',
    onError: () => {},
  });
  await migrate(database);
  await migrateQueues(url);
  await installBreakpoints(database);

  const apiPort = await findFreePort();
  const apiUrl = `http://127.0.0.1:${apiPort}`;
  const secret = 'whsec_of_the_crash_matrix';
  const simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookUrl: `${apiUrl}/v1/vendor_events`,
    webhookSecret: secret,
    catalogue: readCatalogue(undefined),
    now: Date.now,
    random,
  });
  simulator.treatment.duplicateCount = 1;
  simulator.treatment.delayMsMax = EVENT_DELAY_MS_MAX;

  const settings = {
    DATABASE_URL: url,
    SHARD_COUNT: '1',
    QUEUE_STALLED_AFTER_MS: '1500',
    SIMULATOR_URL: `http://127.0.0.1:${simulator.port}`,
    STRIPE_WEBHOOK_SECRET: secret,
    VENDOR_TIMEOUT_MS: String(VENDOR_TIMEOUT_MS),
    API_PORT: String(apiPort),
    // The same after every crash.
    API_SECRET: 'of the crash matrix, and long enough',
    PURCHASE_WAIT_MS: '3000',
    WORKER_PORT: '0',
    WORKER_SWEEP_INTERVAL_MS: '100',
  };
  const running = new Map<Service, ServiceUnderTest>();
  const start = async (service: Service) => {
    running.set(service, await startServiceUnderTest(mainOf(service), settings));
  };
  const kill = async (service: Service) => {
    await running.get(service)?.kill('SIGKILL');
  };
  await Promise.all([start('api'), start('worker')]);

  return {
    database,
    simulator,
    apiUrl,
    kill,
    start,
    settings,
    lastLines: (service) =>
      (running.get(service)?.logs ?? []).slice(-LINES_SHOWN).map((line) => JSON.stringify(line)),
    async close() {
      await Promise.all([kill('api'), kill('worker')]);
      await simulator.close();
      await database.destroy();
      await postgres.remove();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
