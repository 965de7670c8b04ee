/**
 * A worker that starts while Redis is away or full.
 *
 * As after a power cut. Its supervisor must not end it meanwhile.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000, interval: 50 };

async function startOwnRedis(port?: number): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-own-redis-'));
  const redis = await startRedisServer({ directory, ...(port !== undefined && { port }) });
  onTestFinished(async () => {
    await redis.kill();
    await rm(directory, { recursive: true, force: true });
  });
  return redis;
}

test('is alive, serves its metrics and is not ready, and begins by itself once Redis is there', async () => {
  const { url: databaseUrl } = await createTestDatabase();
  const [port, redisPort] = [await findFreePort(), await findFreePort()];
  const starting = startServiceUnderTest(MAIN, {
    DATABASE_URL: databaseUrl,
    REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    SHARD_COUNT: '1',
    WORKER_PORT: String(port),
  });
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  await vi.waitFor(async () => expect((await ask('/livez')).status).toBe(200), WAIT);
  expect((await ask('/readyz')).status).toBe(503);
  await vi.waitFor(
    async () =>
      expect(await (await ask('/metrics')).text()).toContain('sluice_undelivered_oldest_seconds{'),
    WAIT,
  );

  await startOwnRedis(redisPort);
  const worker = await starting;
  await vi.waitFor(async () => expect((await ask('/readyz')).status).toBe(200), WAIT);
  expect(await worker.kill('SIGTERM')).toBe(0);
}, 240_000);

test('starts though Redis is full and refuses every write, once the queues have been there before', async () => {
  const { url: databaseUrl } = await createTestDatabase();
  const { url } = await startOwnRedis();
  const start = () =>
    startServiceUnderTest(MAIN, {
      DATABASE_URL: databaseUrl,
      REDIS_URL: url,
      SHARD_COUNT: '1',
      WORKER_PORT: '0',
    });
  expect(await (await start()).kill('SIGTERM')).toBe(0);
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  await redis.config('SET', 'maxmemory', '1');
  const worker = await start();
  expect((await fetch(`${worker.url}/livez`)).status).toBe(200);
  expect(await worker.kill('SIGTERM')).toBe(0);
}, 240_000);
