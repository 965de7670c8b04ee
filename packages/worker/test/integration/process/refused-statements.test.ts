/**
 * A database that refuses a statement of each commit batch: the operations stay, and a worker logs that it makes no
 * progress.
 */
import { fileURLToPath } from 'node:url';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { track } from '@sluice/domain/testing/sample-operations';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000, interval: 100 };

test(
  'a worker that cannot apply any batch is not ready and logs the error; it applies all once the cause is gone',
  { timeout: 300_000 },
  async () => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    // As an extension does that cannot run a statement: SQLSTATE 22P02 is also the code of a value that is no number.
    await sql`create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'invalid input syntax for an intermediate result' using errcode = '22P02'; end $$`.execute(
      database,
    );
    await sql`create trigger refuse before insert on events execute function refuse()`.execute(
      database,
    );
    const broker = { redisUrl: testRedisUrl(), prefix: uniquePrefix(), shardCount: 2 };
    const producer = await openProducer({
      ...broker,
      databaseUrl: url,
      logger: createLogger('test', 'silent'),
    });
    onTestFinished(() => producer.close());
    for (const shard of [0, 1])
      await producer.addCommitBatches([
        {
          shard,
          envelope: {
            id: `batch-${shard}`,
            operations: inEnvironment(1, track(`id:${shard}`, 'hello')),
          },
        },
      ]);
    const worker = await startServiceUnderTest(MAIN, {
      DATABASE_URL: url,
      REDIS_URL: broker.redisUrl,
      QUEUE_PREFIX: broker.prefix,
      SHARD_COUNT: '2',
      // Half of it is how long each try has to fail. A try that a busy machine makes longer than all of it ends the worker.
      WORKER_HUNG_AFTER_MS: '20000',
      WORKER_PORT: '0',
    });
    const readiness = async () => (await fetch(`${worker.url}/readyz`)).json();
    await vi.waitFor(
      async () =>
        expect(await readiness()).toMatchObject({
          ready: false,
          failing: { reason: '22P02: invalid input syntax for an intermediate result' },
          parked_operations: 0,
        }),
      WAIT,
    );
    await vi.waitFor(
      async () =>
        expect(await (await fetch(`${worker.url}/metrics`)).text()).toMatch(
          /^sluice_worker_failing_seconds(\{[^}]*\})? [1-9]/m,
        ),
      WAIT,
    );
    await vi.waitFor(
      () =>
        expect(worker.logs).toContainEqual(
          expect.objectContaining({ level: 50, reason: expect.stringContaining('22P02') }),
        ),
      WAIT,
    );

    await sql`drop trigger refuse on events`.execute(database);
    await vi.waitFor(async () => expect(await readiness()).toMatchObject({ ready: true }), WAIT);
    await vi.waitFor(async () => {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from events where environment_id = 1 and name = 'hello'`.execute(
        database,
      );
      expect(rows).toEqual([{ count: 2 }]);
    }, WAIT);
    await worker.kill('SIGTERM');
  },
);
