/** The rule of `ingestion-webhooks.md` §5: a Pipelines key is saved by one successful test identify. */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

/** An intake with a key that is made to be tested, and the answers to calls with that key. */
async function startWithTestKey(keysRefreshMs: number) {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const secretHash = createHash('sha256').update('new-key').digest();
  await sql`
    insert into api_credentials (account_id, environment_id, kind, name, secret_hash, secret_hint, is_test)
    select account_id, environment_id, 'pipelines', 'new', ${secretHash}, '-key', true from environments
    where environment_id = 1`.execute(database);
  const intake = await startServiceUnderTest(MAIN, {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '2',
    INTAKE_PORT: '0',
    INTAKE_KEYS_REFRESH_MS: String(keysRefreshMs),
  });
  const send = async (path: string, body: object, isStrict = true): Promise<number> => {
    const answer = await fetch(`${intake.url}/v1/${path}`, {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from('new-key:').toString('base64')}`,
        ...(isStrict ? { 'X-Strict-Mode': '1' } : {}),
      },
      body: JSON.stringify(body),
    });
    await answer.text();
    return answer.status;
  };
  const isTest = async (): Promise<boolean | undefined> => {
    const { rows } = await sql<{ isTest: boolean }>`
      select is_test as "isTest" from api_credentials where secret_hash = ${secretHash}`.execute(
      database,
    );
    return rows[0]?.isTest;
  };
  return { intake, send, isTest };
}

const event = { type: 'track', userId: 'ann', event: 'bought' };

test('a key that is made to be tested opens identify alone, and everything once one was taken', async () => {
  const { intake, send, isTest } = await startWithTestKey(20);
  expect(await send('track', event)).toBe(401);
  expect(await send('batch', { batch: [event] })).toBe(401);
  expect(await send('stream', event)).toBe(401);
  // Permissive mode answers 200 to it, and it still is no success.
  expect(await send('track', event, false)).toBe(200);
  expect(await send('identify', {})).toBe(400);
  expect(await send('identify', {}, false)).toBe(200);
  // No call was taken with it so far: after some looks at the keys it is unchanged.
  expect(await send('track', event)).toBe(401);
  expect(await isTest()).toBe(true);
  // A call that was answered 200 and not taken is visible to the operator, and so is a key that is mistyped.
  const mistyped = await fetch(`${intake.url}/v1/track`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from('nwe-key:').toString('base64')}` },
    body: JSON.stringify(event),
  });
  expect(mistyped.status).toBe(200);
  const page = await (await fetch(`${intake.url}/metrics`)).text();
  expect(page).toMatch(
    /sluice_intake_unauthorized_calls_total\{[^}]*reason="untested_key"[^}]*\} [45]\n/,
  );
  expect(page).toMatch(
    /sluice_intake_unauthorized_calls_total\{[^}]*reason="not_in_force"[^}]*\} 1\n/,
  );

  expect(await send('identify', { userId: 'ann' })).toBe(200);
  expect(await send('track', event)).toBe(200);
  await vi.waitFor(async () => expect(await isTest()).toBe(false), 30_000);
  expect(await send('stream', event)).toBe(200);
  await intake.kill('SIGTERM');
});

test('the call after the identify that was taken is taken too, however seldom keys are read', async () => {
  const { intake, send, isTest } = await startWithTestKey(60_000);
  expect(await send('track', event)).toBe(401);
  expect(await send('identify', { userId: 'ann' })).toBe(200);
  expect(await send('track', event)).toBe(200);
  expect(await send('stream', event)).toBe(200);
  expect(await isTest()).toBe(true);
  await intake.kill('SIGTERM');
});
