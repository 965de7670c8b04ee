/**
 * Services behind a pooler that keeps sessions, and another one.
 *
 * The services are the processes that operators run.
 */
import { startSessionPooler } from '@sluice/database/testing/session-pooler';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { beginServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mainOf } from './fleet-under-test.ts';

const WAIT = { timeout: 60_000, interval: 50 };

const begin = async (service: string, databaseUrl: string) => {
  const process = await beginServiceUnderTest(mainOf(service), {
    DATABASE_URL: databaseUrl,
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    // The smallest allowed number.
    DATABASE_POOL_MAX: '2',
    [`${service.toUpperCase()}_PORT`]: '0',
  });
  onTestFinished(() => process.kill('SIGKILL').then(() => undefined));
  return process;
};

// It only warned, and settings that the queues made for their sessions reached others: tables were not found.
test.each(['intake', 'worker', 'api'])(
  '%s does not start behind a pooler that shares sessions, and names the setting to change',
  async (service) => {
    const { url } = await createTestDatabase();
    const pooler = await startSessionPooler(url, 'transaction');
    onTestFinished(() => pooler.close());
    const process = await begin(service, pooler.url);
    expect(await process.ended).toBe(1);
    expect(process.logs).toContainEqual(
      expect.objectContaining({
        level: 60,
        code: 'SESSIONS_SHARED',
        msg: expect.stringMatching(
          /^a pooler between this process and Postgres.*pool_mode = session/,
        ),
      }),
    );
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
    expect(await process.kill('SIGTERM')).toBe(0);
  },
  120_000,
);
