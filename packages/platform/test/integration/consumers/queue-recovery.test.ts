/**
 * The consumers when their broker fails under them.
 *
 * On both brokers every job stays, order holds, and every shard moves again long before the locks of the broker have
 * run out.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import { openProducer, redisPrefix, type Producer } from '@sluice/platform/queue/queue';
import {
  startConsumers,
  type ConsumerOptions,
  type Consumers,
} from '@sluice/platform/consumers/queue-consumers';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import type { JobOutcome } from '@sluice/platform/consumers/queue-shard-job';
import { openTaskQueue, startTaskWorker } from '@sluice/platform/consumers/queue-tasks';
import { startTcpProxyTo, type UrlProxy } from '@sluice/database/testing/tcp-proxy';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ADD_MS_MAX } from '../support/broker-world.ts';

const DONE: JobOutcome = { outcome: 'done' };
const SHARDS = [0, 1, 2, 3];
const COMMIT_BATCHES = 60;
const WAIT = { timeout: 30_000, interval: 10 };
const LONG_WAIT = { timeout: 60_000, interval: 10 };

const commitBatch = (shard: number, n: number): CommitBatch => ({
  id: `envelope-${shard}-${n}`,
  operations: [],
});
const names = (shard: number) =>
  Array.from({ length: COMMIT_BATCHES }, (_, n) => commitBatch(shard, n).id);

describe.each(['postgres', 'redis'] as const)('the queue on %s', (kind) => {
  let direct: BrokerOptions;
  let proxied: BrokerOptions;
  let proxy: UrlProxy;
  let producer: Producer;
  const opened: Consumers[] = [];

  /** True if Redis would notify the next worker that asks of commit batches of shard 0. */
  const hasSign = async (): Promise<boolean> => {
    const redis = new Redis(testRedisUrl());
    try {
      return (await redis.exists(`${redisPrefix(direct.prefix, 'events-0')}:events-0:marker`)) > 0;
    } finally {
      redis.disconnect();
    }
  };

  const consume = async (
    options: ConsumerOptions,
    processors: Partial<Processors>,
  ): Promise<Consumers> => {
    const consumers = await startConsumers(options, {
      processCommitBatch: () => Promise.resolve(DONE),
      wakeLane: () => Promise.resolve(DONE),
      laneConcurrency: 1,
      now: Date.now,
      ...processors,
    });
    opened.push(consumers);
    return consumers;
  };

  beforeEach(async () => {
    const { url } = await createTestDatabase();
    direct = {
      databaseUrl: url,
      redisUrl: kind === 'redis' ? testRedisUrl() : undefined,
      prefix: uniquePrefix(),
      shardCount: SHARDS.length,
      logger: createLogger('test', 'silent'),
    };
    proxy = await startTcpProxyTo(kind === 'redis' ? testRedisUrl() : url);
    proxied = {
      ...direct,
      ...(kind === 'redis' ? { redisUrl: proxy.url } : { databaseUrl: proxy.url }),
    };
    producer = await openProducer(direct, ADD_MS_MAX);
  });
  afterEach(async () => {
    proxy.restore();
    await Promise.all(opened.splice(0).map((consumers) => consumers.close()));
    await producer.close();
    await proxy.close();
  });

  // BullMQ ends a job and takes the next in one step. If its answer is lost no worker knows of the next one, and a
  // shard used to stand until the lock of that job ran out.
  test.each([1, 2, 3])(
    'answers of the broker that are lost in the middle of work stop no shard (%i)',
    { timeout: 120_000 },
    async () => {
      const begun = new Map<number, string[]>(SHARDS.map((shard) => [shard, []]));
      const consumers = await consume(
        { ...proxied, stalledAfterMs: 60_000 },
        {
          processCommitBatch: ({ id }) => {
            const order = begun.get(Number(id.split('-')[1])) as string[];
            if (order.at(-1) !== id) order.push(id);
            return Promise.resolve(DONE);
          },
        },
      );
      for (let n = 0; n < COMMIT_BATCHES; n++) {
        if (n === COMMIT_BATCHES / 2) {
          await vi.waitFor(() => {
            for (const order of begun.values()) expect(order.length).toBeGreaterThan(0);
          }, WAIT);
          proxy.holdAnswers();
        }
        await producer.addCommitBatches(
          SHARDS.map((shard) => ({ shard, envelope: commitBatch(shard, n) })),
        );
      }
      proxy.cut();
      proxy.restore();
      const backAtMs = performance.now();
      await vi.waitFor(() => {
        for (const shard of SHARDS) expect(begun.get(shard)).toEqual(names(shard));
      }, LONG_WAIT);
      // Two looks and the wait to connect again. The lock of a job lives for 40 s.
      expect(performance.now() - backAtMs).toBeLessThan(36_000);
      // The last look may have come before the connection was made again.
      await vi.waitFor(
        () =>
          expect(consumers.report()).toMatchObject({ isBrokerAnswering: true, stuckQueues: [] }),
        WAIT,
      );
    },
  );

  test('a producer that was opened while the broker was away adds once it is back', async () => {
    proxy.cut();
    const late = await openProducer(proxied, 500);
    try {
      await expect(
        late.addCommitBatches([{ shard: 0, envelope: commitBatch(0, 0) }]),
      ).rejects.toMatchObject({ code: 'BROKER_UNAVAILABLE' });
      proxy.restore();
      await vi.waitFor(
        () => late.addCommitBatches([{ shard: 0, envelope: commitBatch(0, 0) }]),
        WAIT,
      );
      await vi.waitFor(
        async () => expect(await late.commitBatchCounts()).toEqual([1, 0, 0, 0]),
        WAIT,
      );
    } finally {
      await late.close();
    }
  });

  test('lanes and tasks are woken by clients that were opened while the broker was away', async () => {
    proxy.cut();
    const late = await openProducer(proxied, 500);
    const things = { queue: 'things', keyOf: (thing: string) => thing };
    const tasks = await openTaskQueue(proxied, things);
    const lane = { environmentId: 1, webhookId: 2 };
    const woken: unknown[] = [];
    try {
      await expect(late.wakeLane(lane)).rejects.toBeInstanceOf(Error);
      await expect(tasks.wake('a thing')).rejects.toBeInstanceOf(Error);
      proxy.restore();
      await vi.waitFor(() => late.wakeLane(lane), WAIT);
      await vi.waitFor(() => tasks.wake('a thing'), WAIT);
      await consume(direct, {
        wakeLane: (key) => {
          woken.push(key);
          return Promise.resolve(DONE);
        },
      });
      const worker = startTaskWorker(direct, things, 1, (thing) => {
        woken.push(thing);
        return Promise.resolve();
      });
      await vi.waitFor(() => expect(new Set(woken)).toEqual(new Set([lane, 'a thing'])), WAIT);
      await worker.close();
    } finally {
      await tasks.close();
      await late.close();
    }
  });

  test('a worker that closes while the broker is cut off leaves its commit batch to the next one, in its place', async () => {
    for (const n of [0, 1]) {
      await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(0, n) }]);
    }
    let tries = 0;
    const first = await consume(
      { ...proxied, stalledAfterMs: 1_500 },
      {
        processCommitBatch: () => {
          tries++;
          return Promise.resolve({ outcome: 'retry', afterMs: 60_000, reason: 'away' });
        },
      },
    );
    await vi.waitFor(() => expect(tries).toBe(1), WAIT);
    proxy.cut();
    await first.close();
    const order: string[] = [];
    await consume(
      { ...direct, stalledAfterMs: 1_500 },
      {
        processCommitBatch: ({ id }) => {
          // A lock of one second may end before the batch does: then it runs again, in its place.
          if (order.at(-1) !== id) order.push(id);
          return Promise.resolve(DONE);
        },
      },
    );
    await vi.waitFor(() => expect(order).toEqual(names(0).slice(0, 2)), WAIT);
  });

  test('a worker that closes with a commit batch in progress leaves the next one to another worker at once', async () => {
    const gate = Promise.withResolvers<void>();
    const order: string[] = [];
    const processCommitBatch: Processors['processCommitBatch'] = async ({ id }) => {
      order.push(id);
      await gate.promise;
      return DONE;
    };
    await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(0, 0) }]);
    const first = await consume({ ...direct, stalledAfterMs: 60_000 }, { processCommitBatch });
    await vi.waitFor(() => expect(order).toHaveLength(1), WAIT);
    await consume({ ...direct, stalledAfterMs: 60_000 }, { processCommitBatch });
    // The other one has looked in vain, and waits for a sign.
    if (kind === 'redis') await vi.waitFor(async () => expect(await hasSign()).toBe(false), WAIT);
    await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(0, 1) }]);
    const closed = first.close();
    gate.resolve();
    await closed;
    await vi.waitFor(() => expect(order).toEqual(names(0).slice(0, 2)), WAIT);
  });
});

test('on Postgres a commit batch that two put back at once keeps its place', async () => {
  const { database, url } = await createTestDatabase();
  const logger = createLogger('test', 'silent');
  const broker = { databaseUrl: url, prefix: 'none', shardCount: 1, logger };
  const producer = await openProducer(broker, ADD_MS_MAX);
  for (const n of [0, 1])
    await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(0, n) }]);
  await producer.close();
  const { id } = commitBatch(0, 0);
  await sql`update bullmq.job set state = 'active', lock_token = 'ours' where id = ${id}`.execute(
    database,
  );
  const putBack = await database.transaction().execute(async (transaction) => {
    const { rows: own } = await sql<{ pid: number }>`
      update bullmq.job set state = 'waiting', lock_token = null where id = ${id}
      returning pg_backend_pid() as pid`.execute(transaction);
    const second = sql`select bullmq.move_active_to_wait('events-0', ${id}, 'ours', 0)`.execute(
      database,
    );
    await vi.waitFor(async () => {
      const { rows } = await sql`
        select from pg_stat_activity where pg_blocking_pids(pid) @> array[${own[0]?.pid}::int]`.execute(
        database,
      );
      expect(rows).toHaveLength(1);
    }, WAIT);
    return [second];
  });
  await Promise.all(putBack);
  const { rows } = await sql<{ id: string }>`
    select id from bullmq.job where state = 'waiting' order by seq`.execute(database);
  expect(rows.map((row) => row.id)).toEqual(names(0).slice(0, 2));
});

test('on Postgres a commit batch whose row another statement holds is waited for, not passed over', async () => {
  const { database, url } = await createTestDatabase();
  const broker = {
    databaseUrl: url,
    prefix: 'none',
    shardCount: 1,
    logger: createLogger('test', 'silent'),
  };
  const producer = await openProducer(broker, ADD_MS_MAX);
  for (const n of [0, 1]) {
    await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(0, n) }]);
  }
  const order: string[] = [];
  const consumers = await database.transaction().execute(async (transaction) => {
    await sql`select id from bullmq.job where id = ${commitBatch(0, 0).id} for update`.execute(
      transaction,
    );
    const { rows: own } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(
      transaction,
    );
    const holder = own[0]?.pid;
    const started = await startConsumers(broker, {
      processCommitBatch: ({ id }) => {
        order.push(id);
        return Promise.resolve(DONE);
      },
      wakeLane: () => Promise.resolve(DONE),
      laneConcurrency: 1,
      now: Date.now,
    });
    // The claim waits at the row that this transaction holds, and has taken no other job.
    await vi.waitFor(async () => {
      const { rows } = await sql`
        select pid from pg_stat_activity
         where query ilike '%move_to_active%' and pg_blocking_pids(pid) @> array[${holder}::int]`.execute(
        database,
      );
      expect(order).toEqual([]);
      expect(rows).toHaveLength(1);
    }, WAIT);
    return started;
  });
  await vi.waitFor(() => expect(order).toEqual(names(0).slice(0, 2)), WAIT);
  await consumers.close();
  await producer.close();
});
