/**
 * Leases and locks of a killed worker are taken up within seconds.
 *
 * That is long before they end.
 */
import { fileURLToPath } from 'node:url';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { createTestDatabase, lockWaiterCount } from '@sluice/database/testing/testing';
import { identify } from '@sluice/domain/testing/sample-operations';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { startReceiver } from '../../support/receiver.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000, interval: 20 };
/** Of the leases and locks; work that is taken up by their ends is far too late for this test. */
const HELD_MS = 120_000;
/** From the start of the next worker on: the start of a process takes as long as the machine is busy. */
const TAKEN_UP_MS_MAX = 40_000;

test.each(['redis', 'postgres'] as const)(
  'on %s: the deliveries and the commit batch that a worker had in progress when it was killed',
  { timeout: 300_000 },
  async (kind) => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    let isHanging = true;
    const receiver = await startReceiver(({ socket }) => {
      if (!isHanging) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    await insertTestWebhook(database, 1, {
      endpoint: receiver.url,
      events: ['customer_unsubscribed'],
    });
    const broker = {
      ...(kind === 'redis' && { redisUrl: testRedisUrl() }),
      prefix: uniquePrefix(),
      shardCount: 1,
    };
    const settings = {
      DATABASE_URL: url,
      ...(broker.redisUrl !== undefined && { REDIS_URL: broker.redisUrl }),
      QUEUE_PREFIX: broker.prefix,
      SHARD_COUNT: '1',
      QUEUE_STALLED_AFTER_MS: String(HELD_MS),
      WEBHOOK_TIMEOUT_MS: String(HELD_MS / 3),
      WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      DRAIN_TIMEOUT_MS: String(HELD_MS),
      WORKER_PORT: '0',
    };
    const producer = await openProducer({
      ...broker,
      databaseUrl: url,
      logger: createLogger('test', 'silent'),
    });
    const add = (id: string, who: string) =>
      producer.addCommitBatches([
        {
          shard: 0,
          envelope: {
            id,
            operations: [identify(who, { unsubscribed: true, email: `${id}@example.com` })],
          },
        },
      ]);
    const first = await startServiceUnderTest(MAIN, settings);
    await add('one', 'id:person-one');
    await vi.waitFor(() => expect(receiver.requests.length).toBeGreaterThan(0), WAIT);
    // The second batch waits for a lock when its worker is killed.
    await database.transaction().execute(async (transaction) => {
      await sql`lock table people in access exclusive mode`.execute(transaction);
      await add('two', 'id:person-two');
      // Other work of the worker may wait too.
      await vi.waitFor(
        async () => expect(await lockWaiterCount(database)).toBeGreaterThan(0),
        WAIT,
      );
      await first.kill('SIGKILL');
    });
    isHanging = false;
    const sentBefore = receiver.requests.length;
    const second = await startServiceUnderTest(MAIN, settings);
    const startedAtMs = performance.now();
    await vi.waitFor(() => {
      const sentAgain = receiver.requests.slice(sentBefore).join('\n');
      expect(sentAgain).toContain('person-one');
      expect(sentAgain).toContain('person-two');
    }, WAIT);
    expect(performance.now() - startedAtMs).toBeLessThan(TAKEN_UP_MS_MAX);
    // All lines have come through the pipe by then.
    await second.kill('SIGTERM');
    expect(second.logs).toContainEqual(
      expect.objectContaining({
        msg: 'worker processes ended without releasing their work; this worker released it',
        deliveryQueues: 1,
      }),
    );
    const { rows } = await sql`select from worker_processes`.execute(database);
    expect(rows).toEqual([]);
    await producer.close();
    await receiver.close();
  },
);
