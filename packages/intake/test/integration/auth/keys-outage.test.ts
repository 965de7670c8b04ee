/**
 * A path to Postgres that silently drops packets.
 *
 * A real intake process takes calls by its known keys meanwhile.
 */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { metric } from '../support/outage-world.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000, interval: 50 };
const TEST_TIMEOUT_MS = 300_000;
const KEYS_AGE = 'sluice_intake_keys_age_seconds';

const secretHash = (key: string) => createHash('sha256').update(key).digest();

const insertKey = (database: Database, key: string) =>
  sql`
    insert into api_credentials (account_id, environment_id, kind, name, secret_hash, secret_hint)
    select account_id, environment_id, 'pipelines', ${key}, ${secretHash(key)}, '-key' from environments
    where environment_id = 1`.execute(database);

const revokeKey = (database: Database, key: string) =>
  sql`update api_credentials set revoked_at = now() where secret_hash = ${secretHash(key)}`.execute(
    database,
  );

async function startWorld() {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  await insertKey(database, 'old-key');
  const proxy = await startTcpProxyTo(url);
  onTestFinished(() => proxy.close());
  const intake = await startServiceUnderTest(MAIN, {
    DATABASE_URL: proxy.url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '2',
    INTAKE_PORT: '0',
    INTAKE_KEYS_REFRESH_MS: '20',
    DRAIN_TIMEOUT_MS: '15000',
  });
  onTestFinished(() => intake.kill('SIGKILL').then(() => undefined));
  const send = async (key: string): Promise<number> => {
    const answer = await fetch(`${intake.url}/v1/track`, {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
        'X-Strict-Mode': '1',
      },
      body: JSON.stringify({ userId: 'ann', event: 'bought' }),
    });
    await answer.text();
    return answer.status;
  };
  return { database, intake, proxy, send };
}

// Such a read used to wait until TCP gave up, a quarter of an hour, and a revoked key was good for as long.
test(
  'intake gives up a key read that stays unanswered, logs the age of its keys, and applies changes once Postgres answers',
  async () => {
    const { database, intake, proxy, send } = await startWorld();
    expect(await send('old-key')).toBe(200);
    await vi.waitFor(async () => expect(await metric(intake, KEYS_AGE)).toBeLessThan(1), WAIT);

    proxy.hold();
    await vi.waitFor(async () => expect(await metric(intake, KEYS_AGE)).toBeGreaterThan(0.5), WAIT);
    await revokeKey(database, 'old-key');
    await insertKey(database, 'new-key');
    const isSaid = (cause: RegExp, line: object) =>
      vi.waitFor(
        () =>
          expect(intake.logs).toContainEqual(
            expect.objectContaining({
              ...line,
              error: expect.objectContaining({ message: expect.stringMatching(cause) }),
            }),
          ),
        WAIT,
      );
    // Any statement that was under way: beside the read of the keys that may be the measure of the clock.
    await isSaid(/Postgres did not answer in \d+ ms/, {});
    // So is a connection that is not answered, and intake goes on as in any outage of Postgres.
    await isSaid(/timeout|terminated due to/, {
      msg: expect.stringContaining('API keys could not be read'),
      keysAgeSeconds: expect.any(Number),
    });
    expect(await send('old-key')).toBe(200);
    expect(await send('new-key')).toBe(401);
    expect((await fetch(`${intake.url}/readyz`)).status).toBe(200);

    proxy.forget();
    await vi.waitFor(async () => expect(await send('new-key')).toBe(200), WAIT);
    expect(await send('old-key')).toBe(401);
    await vi.waitFor(async () => expect(await metric(intake, KEYS_AGE)).toBeLessThan(1), WAIT);
    expect(await intake.kill('SIGTERM')).toBe(0);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a stop does not wait for a read of the keys that is never answered',
  async () => {
    const { intake, proxy } = await startWorld();
    proxy.hold();
    await vi.waitFor(async () => expect(await metric(intake, KEYS_AGE)).toBeGreaterThan(0.5), WAIT);
    expect(await intake.kill('SIGTERM')).toBe(0);
  },
  TEST_TIMEOUT_MS,
);
