/**
 * Intake, API and worker as operators run them.
 *
 * They are processes on one fresh database.
 */
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { APIClient } from 'customerio-node';
import { expect, vi } from 'vitest';

export const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../${service}/src/main.ts`, import.meta.url));

/**
 * The longest that fits twice into a stop. A delivery whose receiver or worker stands still for the default of four seconds
 * waits an hour, and the deliveries behind it too.
 */
export const PATIENT_DELIVERIES = { WEBHOOK_TIMEOUT_MS: '12000' };

/** Time until sent data must be readable, or a program has begun its work: ten times longer on a busy machine. */
export const WAIT = { timeout: 60_000, interval: 50 };

export interface Activity {
  readonly type: string;
  readonly name: string;
  readonly timestamp: number;
  readonly data: Record<string, unknown>;
}

interface Customer {
  readonly attributes: Record<string, string>;
  readonly unsubscribed: boolean;
  readonly devices: unknown[];
}

/** The services, and the results of the calls: read back over the app API with its own client. */
export interface Fleet {
  readonly intake: ServiceUnderTest;
  readonly api: ServiceUnderTest;
  readonly worker: ServiceUnderTest;
  readonly app: APIClient;
  /** For data that no read of the API shows yet. */
  readonly database: Database;
  readonly databaseUrl: string;
  /** Of this fleet's keys in Redis. */
  readonly queuePrefix: string;
  customer(id: string): Promise<Customer>;
  /** Events, pages and screens. */
  events(id: string): Promise<Activity[]>;
  /** The one event of that name, once it is there. */
  event(id: string, name: string): Promise<Activity>;
  /** As text, to look for names in. */
  relationships(id: string): Promise<string>;
  close(): Promise<void>;
}

/** `postgres`: the queues too. */
export async function startFleet(
  broker: 'redis' | 'postgres' = 'redis',
  more: Readonly<Record<string, string>> = {},
): Promise<Fleet> {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const queuePrefix = uniquePrefix();
  const settings = {
    DATABASE_URL: url,
    REDIS_URL: broker === 'redis' ? testRedisUrl() : '',
    QUEUE_PREFIX: queuePrefix,
    SHARD_COUNT: '2',
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
    ...PATIENT_DELIVERIES,
    ...more,
  };
  const [intake, api, worker] = await Promise.all([
    startServiceUnderTest(mainOf('intake'), { ...settings, INTAKE_PORT: '0' }),
    startServiceUnderTest(mainOf('api'), { ...settings, API_PORT: '0' }),
    startServiceUnderTest(mainOf('worker'), { ...settings, WORKER_PORT: '0' }),
  ]);
  const app = new APIClient(DEMO.appKey, { url: `${api.url}/v1` });
  const events = async (id: string): Promise<Activity[]> => {
    const { activities } = (await app.getCustomerActivities(id, { limit: 100 })) as {
      activities: Activity[];
    };
    return activities.filter(({ type }) => ['event', 'page', 'screen'].includes(type));
  };
  return {
    intake,
    api,
    worker,
    app,
    database,
    databaseUrl: url,
    queuePrefix,
    customer: async (id) => ((await app.getAttributes(id)) as { customer: Customer }).customer,
    events,
    event: (id, name) =>
      vi.waitFor(async () => {
        const found = (await events(id)).filter((event) => event.name === name);
        expect(found).toHaveLength(1);
        return found[0] as Activity;
      }, WAIT),
    relationships: async (id) => JSON.stringify(await app.getCustomerRelationships(id)),
    async close() {
      await Promise.all([intake, api, worker].map((service) => service.kill('SIGKILL')));
    },
  };
}
