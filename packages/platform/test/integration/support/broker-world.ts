/**
 * A broker in Redis under a prefix of its own.
 *
 * It is for the tests of one file; the resources that a test opened are closed after it.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import {
  openProducer,
  redisPrefix,
  shardQueueName,
  type Producer,
} from '@sluice/platform/queue/queue';
import type { RedisClient } from '@sluice/platform/redis/redis-client';
import { connectWorker } from '@sluice/platform/redis/redis';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { afterEach, beforeEach } from 'vitest';

export const WAIT = { timeout: 30_000, interval: 10 };
/** For a broker that is up: longer than a standstill of it, or of this process, on a busy machine. */
export const ADD_MS_MAX = 20_000;
/** Of its only shard. */
export const NAME = shardQueueName(0);
export const logger = createLogger('test', 'silent');
export const commitBatch = (id: string): CommitBatch => ({ id, operations: [] });

export interface BrokerWorld {
  options: BrokerOptions;
  producer: Producer;
  redis: RedisClient;
  /** Called after the test, in order. */
  readonly closes: (() => Promise<void>)[];
  /** For BullMQ's own classes. */
  connection(): { connection: RedisClient; prefix: string };
}

/** Made anew for each test of the file that calls this. */
export function useBroker(): BrokerWorld {
  const world = {
    closes: [] as (() => Promise<void>)[],
    connection: () => ({
      connection: world.redis,
      prefix: redisPrefix(world.options.prefix, NAME),
    }),
  } as BrokerWorld;
  beforeEach(async () => {
    world.options = {
      databaseUrl: 'postgres://127.0.0.1:1/none',
      redisUrl: testRedisUrl(),
      prefix: uniquePrefix(),
      shardCount: 1,
      logger,
    };
    world.producer = await openProducer(world.options, ADD_MS_MAX);
    world.redis = connectWorker(testRedisUrl());
    await world.redis.ping();
  });
  afterEach(async () => {
    for (const close of world.closes.splice(0)) await close();
    await world.producer.close();
    world.redis.disconnect();
  });
  return world;
}
