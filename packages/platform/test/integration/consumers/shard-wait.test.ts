/**
 * Workers that wait on Postgres: their cost for the broker, the time until they take over, and the effect of a lost
 * sign.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { startConsumers, type Consumers } from '@sluice/platform/consumers/queue-consumers';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import type { JobOutcome } from '@sluice/platform/consumers/queue-shard-job';
import { sql } from 'kysely';
import { afterEach, expect, test, vi } from 'vitest';
import { ADD_MS_MAX } from '../support/broker-world.ts';

const DONE: JobOutcome = { outcome: 'done' };
const WAIT = { timeout: 20_000, interval: 10 };
const WORKERS = 6;
const COMMIT_BATCHES = 100;

const commitBatch = (n: number): CommitBatch => ({ id: `envelope-${n}`, operations: [] });

let producer: Producer | undefined;
const opened: Consumers[] = [];

const consume = async (
  broker: BrokerOptions,
  processCommitBatch: Processors['processCommitBatch'],
  wakeLane: Processors['wakeLane'] = () => Promise.resolve(DONE),
): Promise<Consumers> => {
  const consumers = await startConsumers(broker, {
    processCommitBatch,
    wakeLane,
    laneConcurrency: 1,
    now: Date.now,
  });
  opened.push(consumers);
  return consumers;
};
const closeAll = () => Promise.all(opened.splice(0).map((consumers) => consumers.close()));

afterEach(async () => {
  await closeAll();
  await producer?.close();
});

// BullMQ's wait ends at once while jobs wait, even if they may not be taken. Five idle workers made thirty claims of
// each commit batch, and the shard's own worker had to stand in line with them.
test('on Postgres the workers that stand by do not ask for each commit batch again and again', async () => {
  const { database, url, name } = await createTestDatabase();
  await sql`alter database ${sql.id(name)} set track_functions = 'pl'`.execute(database);
  const broker = {
    databaseUrl: url,
    prefix: 'none',
    shardCount: 1,
    logger: createLogger('test', 'silent'),
  };
  producer = await openProducer(broker, ADD_MS_MAX);
  for (let n = 0; n < COMMIT_BATCHES; n++) {
    await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(n) }]);
  }
  const order: string[] = [];
  for (let n = 0; n < WORKERS; n++) {
    await consume(broker, async ({ id }) => {
      order.push(id);
      // As long as a transaction takes.
      await sql`select pg_sleep(0.005)`.execute(database);
      return DONE;
    });
  }
  await vi.waitFor(() => expect(order).toHaveLength(COMMIT_BATCHES), { ...WAIT, timeout: 40_000 });
  // A connection that ends brings its figures.
  await closeAll();
  await producer.close();
  producer = undefined;
  await vi.waitFor(async () => {
    const { rows } = await sql`
      select pid from pg_stat_activity
       where datname = ${name} and application_name <> 'test' and backend_type = 'client backend'`.execute(
      database,
    );
    expect(rows).toEqual([]);
  }, WAIT);
  const { rows } = await sql<{ calls: number }>`
    select calls::int from pg_stat_user_functions
     where schemaname = 'bullmq' and funcname = 'move_to_active'`.execute(database);
  // One a commit batch by the worker with the shard. Each worker asks when it starts and when its wait ends.
  expect(rows[0]?.calls).toBeGreaterThanOrEqual(COMMIT_BATCHES);
  expect(rows[0]?.calls).toBeLessThan(COMMIT_BATCHES * 1.5);
});

test('on Postgres a worker that stops hands its shard over, long before the others look by themselves', async () => {
  const { database, url } = await createTestDatabase();
  const broker = {
    databaseUrl: url,
    prefix: 'none',
    shardCount: 1,
    // Then others look every thirty seconds.
    stalledAfterMs: 90_000,
    logger: createLogger('test', 'silent'),
  };
  producer = await openProducer(broker, ADD_MS_MAX);
  for (const n of [0, 1]) {
    await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(n) }]);
  }
  const order: string[] = [];
  let letGo = (): void => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const first = await consume(broker, async ({ id }) => {
    order.push(`first ${id}`);
    await held;
    return DONE;
  });
  await vi.waitFor(() => expect(order).toHaveLength(1), WAIT);
  await consume(broker, ({ id }) => {
    order.push(`second ${id}`);
    return Promise.resolve(DONE);
  });
  await vi.waitFor(async () => {
    const { rows } = await sql`
      select pid from pg_stat_activity
       where datname = current_database() and state = 'idle' and query like '% as is_free'`.execute(
      database,
    );
    expect(rows).not.toEqual([]);
  }, WAIT);
  const closed = first.close();
  letGo();
  await closed;
  await vi.waitFor(() => expect(order).toEqual(['first envelope-0', 'second envelope-1']), WAIT);
});

test('on Postgres a job whose sign got lost is found by the watch, and no worker is replaced for it', async () => {
  const { database, url } = await createTestDatabase();
  const broker = {
    databaseUrl: url,
    prefix: 'none',
    shardCount: 2,
    // Looks while the queue is quiet: each seven seconds. Of themselves the workers ask after minutes. One that does not
    // take a found job in this time is replaced, so a standstill of Postgres must be shorter.
    stalledAfterMs: 20_000,
    logger: createLogger('test', 'silent'),
  };
  producer = await openProducer(broker, ADD_MS_MAX);
  const taken: string[] = [];
  const consumers = await consume(
    { ...broker, shardCount: 1 },
    ({ id }) => {
      taken.push(id);
      return Promise.resolve(DONE);
    },
    () => {
      taken.push('lane');
      return Promise.resolve(DONE);
    },
  );
  for (const n of [0, 1]) await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(n) }]);
  await producer.wakeLane({ environmentId: 1, webhookId: 1 });
  await vi.waitFor(() => expect(taken).toHaveLength(3), WAIT);
  taken.length = 0;

  // A move of a job from one queue to another gives no sign.
  for (const queue of ['events-0', 'webhooks']) {
    await producer.addCommitBatches([{ shard: 1, envelope: commitBatch(2) }]);
    await sql`update bullmq.job set queue = ${queue} where queue = 'events-1'`.execute(database);
  }
  await vi.waitFor(() => expect(taken.toSorted()).toEqual(['envelope-2', 'lane']), {
    ...WAIT,
    timeout: 40_000,
  });
  expect(consumers.report().replacedWorkers).toBe(0);
});
