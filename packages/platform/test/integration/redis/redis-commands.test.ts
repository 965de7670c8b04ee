import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RedisClient } from '@sluice/platform/redis/redis-client';
import { connectProducer, connectWorker } from '@sluice/platform/redis/redis';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let directory: string;
let server: RedisServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-test-redis-'));
  server = await startRedisServer({ directory });
});

afterAll(async () => {
  await server.kill();
  await rm(directory, { recursive: true, force: true });
});

/** How often the server has read from a socket. */
const readsOf = async (redis: RedisClient): Promise<number> =>
  Number(/total_reads_processed:(\d+)/.exec(await redis.info('stats'))?.[1]);

describe.each([
  ['adds', (url: string) => connectProducer(url, 5_000)],
  ['takes', async (url: string) => connectWorker(url)],
])('a connection that %s', (_, connect) => {
  test('sends the commands of one turn in one write, also from microtasks, and answers each', async () => {
    const redis = await connect(server.url);
    try {
      await redis.ping();
      const before = await readsOf(redis);
      const answers = await Promise.all(
        Array.from({ length: 100 }, async (__, number) => {
          for (let microtasks = 0; microtasks < number % 7; microtasks++) await Promise.resolve();
          return redis.echo(String(number));
        }),
      );
      expect(answers).toEqual(Array.from({ length: 100 }, (__, number) => String(number)));
      // With the look that it is read by.
      expect((await readsOf(redis)) - before).toBe(2);
    } finally {
      redis.disconnect();
    }
  });
});
