/** A worker that must stop while Redis does not answer. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { expect, onTestFinished, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
/** By default DRAIN_TIMEOUT_MS cuts a stop after it. */
const STOP_MS_MAX = 25_000;

// Its tasks by the clock waited for Redis without an end: the stop was cut, and with it the deliveries under way.
test('ends well, and before its stop would be cut', { timeout: 240_000 }, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-own-redis-'));
  const redis = await startRedisServer({ directory });
  onTestFinished(async () => {
    await redis.kill();
    await rm(directory, { recursive: true, force: true });
  });
  const { url } = await createTestDatabase();
  const worker = await startServiceUnderTest(MAIN, {
    DATABASE_URL: url,
    REDIS_URL: redis.url,
    SHARD_COUNT: '1',
    WORKER_PORT: '0',
    // Longer than the default: a standstill of the machine must not cut the stop.
    DRAIN_TIMEOUT_MS: '60000',
  });
  process.kill(redis.pid, 'SIGSTOP');
  const clock = new TickClock(100);
  expect(await worker.kill('SIGTERM')).toBe(0);
  clock.stop();
  expect(clock.nowMs).toBeLessThan(STOP_MS_MAX);
  expect(worker.logs.filter(({ msg }) => /DRAIN_TIMEOUT_MS/.test(String(msg)))).toEqual([]);
});
