/**
 * Waiting jobs of a shard, past BullMQ: read in the order in which they are taken. Only jobs that still wait are taken
 * out.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import { openProducer, redisPrefix, shardQueueName } from '@sluice/platform/queue/queue';
import { openQueuePool } from '@sluice/platform/queue/queue-pool';
import {
  postgresWaiting,
  redisWaiting,
  type WaitingCommitBatches,
} from '@sluice/platform/consumers/queue-waiting';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { ADD_MS_MAX } from '../support/broker-world.ts';

const NAME = shardQueueName(0);

interface Broker {
  readonly options: BrokerOptions;
  readonly waiting: WaitingCommitBatches;
  /**
   * As a worker does.
   *
   * @returns the id of the job that it took.
   */
  readonly takeNext: () => Promise<string>;
  /** True if the job exists, in any state. */
  readonly has: (id: string) => Promise<boolean>;
}

async function onRedis(): Promise<Broker> {
  const redis = new Redis(testRedisUrl());
  onTestFinished(() => redis.disconnect());
  const options = {
    databaseUrl: 'postgres://127.0.0.1:1/none',
    redisUrl: testRedisUrl(),
    prefix: uniquePrefix(),
    shardCount: 1,
    logger: createLogger('test', 'silent'),
  };
  const keyOf = (part: string) => `${redisPrefix(options.prefix, NAME)}:${NAME}:${part}`;
  return {
    options,
    waiting: redisWaiting(redis, keyOf),
    takeNext: async () => (await redis.rpoplpush(keyOf('wait'), keyOf('active'))) ?? '',
    has: async (id) => (await redis.exists(keyOf(id))) === 1,
  };
}

async function onPostgres(): Promise<Broker> {
  const { url } = await createTestDatabase();
  const options = {
    databaseUrl: url,
    prefix: uniquePrefix(),
    shardCount: 1,
    logger: createLogger('test', 'silent'),
  };
  const pool = openQueuePool(options, { listenerCount: 0 });
  onTestFinished(() => pool.end());
  return {
    options,
    waiting: postgresWaiting(pool, NAME),
    takeNext: async () => {
      const { rows } = await pool.query<{ id: string }>(
        `update job set state = 'active'
          where id = (select id from job where queue = $1 and state = 'waiting' order by priority, seq limit 1)
         returning id`,
        [NAME],
      );
      return rows[0]?.id ?? '';
    },
    has: async (id) => (await pool.query('select from job where id = $1', [id])).rowCount === 1,
  };
}

test.each([
  ['redis', onRedis],
  ['postgres', onPostgres],
])(
  '%s: batches are listed in order, and a batch that a worker has taken stays with the worker',
  async (_, open) => {
    const { options, waiting, takeNext, has } = await open();
    expect(await waiting.list(4)).toEqual([]);
    const producer = await openProducer(options, ADD_MS_MAX);
    onTestFinished(() => producer.close());
    const ids = ['a', 'b', 'c', 'd', 'e'].map((letter) => `envelope-${letter}`);
    for (const id of ids)
      await producer.addCommitBatches([{ shard: 0, envelope: { id, operations: [] } }]);
    const listed = async (count: number) => (await waiting.list(count)).map(({ id }) => id);
    expect(await listed(2)).toEqual(ids.slice(0, 2));
    expect(await listed(9)).toEqual(ids);

    expect(await takeNext()).toBe('envelope-a');
    await waiting.remove(['envelope-a', 'envelope-b', 'envelope-d', 'envelope-of-nobody']);
    expect(await listed(9)).toEqual(['envelope-c', 'envelope-e']);
    const left = await Promise.all(ids.map(has));
    expect(ids.filter((_id, place) => left[place])).toEqual([
      'envelope-a',
      'envelope-c',
      'envelope-e',
    ]);
  },
);
