/** The last use of a key. Intake is its own process with the rights of its role. */
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { grantDatabaseRoles } from '@sluice/database/schema/database-roles';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WAIT = { timeout: 30_000, interval: 20 };

test('intake writes the last use of the keys that calls came with, and of no other key', async () => {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  await grantDatabaseRoles(database);
  const asRole = new URL(url);
  asRole.searchParams.set('options', '-c role=sluice_intake');
  const intake = await startServiceUnderTest(MAIN, {
    DATABASE_URL: url,
    INTAKE_DATABASE_URL: asRole.href,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '2',
    INTAKE_PORT: '0',
    INTAKE_KEYS_REFRESH_MS: '20',
  });
  const usedKinds = async (): Promise<string[]> => {
    const { rows } = await sql<{ name: string }>`
      select kind || ' ' || environment_id as name from api_credentials
       where last_used_at > now() - interval '1 minute' order by 1`.execute(database);
    return rows.map(({ name }) => name);
  };
  const send = async (path: string, credentials: string, body: object): Promise<void> => {
    const answer = await fetch(`${intake.url}${path}`, {
      method: path.startsWith('/v1') ? 'POST' : 'PUT',
      headers: { Authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(200);
    await answer.text();
  };
  expect(await usedKinds()).toEqual([]);
  await send('/v1/track', `${DEMO.writeKey}:`, { userId: 'ann', event: 'bought' });
  await vi.waitFor(async () => expect(await usedKinds()).toEqual(['pipelines 1']), WAIT);
  await send('/api/v1/customers/ann', `${DEMO.siteId}:${DEMO.apiKey}`, { plan: 'free' });
  await vi.waitFor(async () => expect(await usedKinds()).toEqual(['pipelines 1', 'track 1']), WAIT);
  await intake.kill('SIGTERM');
});
