/** Signs of new jobs in Postgres: one connection hears them for all shards of a process, and a lost one is replaced. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { JobSigns } from '@sluice/platform/consumers/job-signs';
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { openQueuePool } from '@sluice/platform/queue/queue-pool';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ADD_MS_MAX } from '../support/broker-world.ts';

const WAIT = { timeout: 30_000, interval: 10 };
const logger = createLogger('test', 'silent');

test('each queue hears its own signs, learns of a lost connection, and hears signs on the next one', async () => {
  const { database, url } = await createTestDatabase();
  const pool = openQueuePool({ databaseUrl: url, logger }, { listenerCount: 1 });
  const signs = new JobSigns(pool);
  onTestFinished(async () => {
    await signs.close();
    await pool.end();
  });
  const heard: string[] = [];
  const ends = ['events-0', 'events-1'].map((queue) =>
    signs.wait(queue, {
      onSign: () => heard.push(queue),
      onLost: () => heard.push(`${queue} lost`),
    }),
  );
  const tell = (queue: string) => sql`select pg_notify('bullmq_jobs', ${queue})`.execute(database);
  await Promise.all([signs.listen(), signs.listen()]);
  await tell('events-1');
  await vi.waitFor(() => expect(heard).toEqual(['events-1']), WAIT);

  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and query like 'listen%'`.execute(database);
  await vi.waitFor(
    () => expect(heard).toEqual(['events-1', 'events-0 lost', 'events-1 lost']),
    WAIT,
  );
  await signs.listen();
  ends[1]?.();
  await tell('events-1');
  await tell('events-0');
  await vi.waitFor(() => expect(heard.at(-1)).toBe('events-0'), WAIT);
  expect(heard).toHaveLength(4);
});

// Postgres notifies every listening connection of every job, so each cost all of them.
test('a worker of many shards hears of their commit batches on one connection', async () => {
  const { database, url } = await createTestDatabase();
  const options = { databaseUrl: url, prefix: 'none', shardCount: 8, logger };
  const producer = await openProducer(options, ADD_MS_MAX);
  onTestFinished(() => producer.close());
  const taken: string[] = [];
  const consumers = await startConsumers(options, {
    processCommitBatch: ({ id }) => {
      taken.push(id);
      return Promise.resolve({ outcome: 'done' });
    },
    wakeLane: () => Promise.resolve({ outcome: 'done' }),
    laneConcurrency: 1,
    now: () => performance.now(),
  });
  onTestFinished(() => consumers.close());
  const listening = async (): Promise<number> => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from pg_stat_activity
       where datname = current_database() and query ilike 'listen%'`.execute(database);
    return rows[0]?.count ?? 0;
  };
  // The shards' connection, and BullMQ's of the lanes.
  await vi.waitFor(async () => expect(await listening()).toBeGreaterThan(0), WAIT);
  for (let shard = 0; shard < 8; shard++)
    await producer.addCommitBatches([
      { shard, envelope: { id: `batch-${shard}`, operations: [] } },
    ]);
  await vi.waitFor(() => expect(taken).toHaveLength(8), WAIT);
  expect(await listening()).toBeLessThanOrEqual(2);
});
