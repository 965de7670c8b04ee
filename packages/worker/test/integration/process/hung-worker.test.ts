/**
 * A worker process that hangs in a commit batch ends.
 *
 * The next one goes on.
 */
import { fileURLToPath } from 'node:url';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000, interval: 50 };

const commitBatch: CommitBatch = {
  id: 'envelope-a',
  operations: [
    {
      type: 'event.track',
      kind: 'event',
      environmentId: 1,
      receivedAtMs: 1_700_000_000_000,
      person: { kind: 'id', value: 'ann' },
      eventId: 'event-a',
      name: 'hello',
      data: {},
      occurredAtMs: 1_700_000_000_000,
    },
  ],
};

test(
  'a worker that hangs is not ready in /readyz and ends, and the next one applies its batch',
  { timeout: 240_000 },
  async () => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    const broker = { redisUrl: testRedisUrl(), prefix: uniquePrefix(), shardCount: 1 };
    const settings = {
      DATABASE_URL: url,
      REDIS_URL: broker.redisUrl,
      QUEUE_PREFIX: broker.prefix,
      SHARD_COUNT: '1',
      QUEUE_STALLED_AFTER_MS: '1500',
      // It is not ready from half of that on: longer than a busy machine stands still, so that it is asked meanwhile, and the
      // next worker has the time to apply the batch.
      WORKER_HUNG_AFTER_MS: '16000',
      WORKER_PORT: '0',
    };
    const producer = await openProducer({
      ...broker,
      databaseUrl: url,
      logger: createLogger('test', 'silent'),
    });
    const first = await startServiceUnderTest(MAIN, settings);
    const unreadiness: unknown[] = [];
    // A lock that somebody forgot: the commit batch's transaction waits for it without end.
    await database.transaction().execute(async (transaction) => {
      await sql`lock table events in access exclusive mode`.execute(transaction);
      await producer.addCommitBatches([{ shard: 0, envelope: commitBatch }]);
      const ended = first.ended.then(() => true);
      while (!(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 20))]))) {
        const answer = await fetch(`${first.url}/readyz`).catch(() => undefined);
        if (answer?.status === 503) unreadiness.push(await answer.json().catch(() => undefined));
      }
    });
    expect(await first.ended).toBe(1);
    const last = first.logs.at(-1);
    expect(last).toMatchObject({
      level: 60,
      code: 'JOB_HUNG',
      msg: expect.stringMatching(
        /^an attempt at the job envelope-a of events-0 .* 16000 ms \(WORKER_HUNG_AFTER_MS\).* another one acquires the job\. Start it again\..*docs\/operations\/runbooks\/events-are-not-processed\.md$/,
      ),
    });
    expect(last).not.toHaveProperty('error');
    expect(unreadiness).toContainEqual(
      expect.objectContaining({ ready: false, stuck_queues: ['events-0'] }),
    );

    const second = await startServiceUnderTest(MAIN, settings);
    await vi.waitFor(async () => {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from events where environment_id = 1 and name = 'hello'`.execute(
        database,
      );
      expect(rows[0]?.count).toBe(1);
    }, WAIT);
    // From its next look at the queues on.
    await vi.waitFor(
      async () => expect((await fetch(`${second.url}/readyz`)).status).toBe(200),
      WAIT,
    );
    await second.kill('SIGTERM');
    await producer.close();
  },
);
