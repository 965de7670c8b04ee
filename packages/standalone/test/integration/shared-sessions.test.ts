/** Each service as the process that operators run, behind a pooler that keeps sessions, and one that does not. */
import { startSessionPooler } from '@sluice/database/session-pooler';
import { createTestDatabase } from '@sluice/database/testing';
import { beginServiceUnderTest } from '@sluice/platform/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mainOf } from './fleet-under-test.ts';

const WAIT = { timeout: 30_000, interval: 50 };
const WARNING = /^a pooler between this process and Postgres.*pool_mode = session/;

const begin = async (service: string, databaseUrl: string, redisUrl?: string) => {
  const process = await beginServiceUnderTest(mainOf(service), {
    DATABASE_URL: databaseUrl,
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    // The fewest that it can be told.
    DATABASE_POOL_MAX: '2',
    [`${service.toUpperCase()}_PORT`]: '0',
  });
  onTestFinished(() => process.kill('SIGKILL').then(() => undefined));
  return process;
};

const warnings = (logs: readonly Record<string, unknown>[]) =>
  logs.filter(({ level, msg }) => level === 40 && WARNING.test(String(msg)));

test.each(['intake', 'worker', 'api'])(
  '%s says at its start that its sessions are not kept, and nothing of it where they are',
  async (service) => {
    const { url } = await createTestDatabase();
    const direct = await begin(service, url, testRedisUrl());
    await direct.started;
    expect(warnings(direct.logs)).toEqual([]);
    expect(await direct.kill('SIGTERM')).toBe(0);

    const pooler = await startSessionPooler(url, 'transaction');
    onTestFinished(() => pooler.close());
    const shared = await begin(service, pooler.url, testRedisUrl());
    await vi.waitFor(() => expect(warnings(shared.logs)).toHaveLength(1), WAIT);
    await shared.kill('SIGKILL');
  },
  120_000,
);

test.each(['intake', 'worker', 'api'])(
  '%s is ready behind a pooler that keeps sessions, queues in the same Postgres and all',
  async (service) => {
    const { url } = await createTestDatabase();
    const pooler = await startSessionPooler(url, 'session');
    onTestFinished(() => pooler.close());
    const process = await begin(service, pooler.url);
    const { url: ownUrl } = await process.started;
    await vi.waitFor(async () => expect((await fetch(`${ownUrl}/readyz`)).status).toBe(200), WAIT);
    expect(warnings(process.logs)).toEqual([]);
    expect(await process.kill('SIGTERM')).toBe(0);
  },
  120_000,
);
