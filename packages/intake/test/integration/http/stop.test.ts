/** The end of the process, as SIGTERM brings it about. */
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, test } from 'vitest';
import { openRaw } from '../support/raw-http.ts';

const WAIT = { timeout: 60_000 };
const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

async function startIntake(settings: Record<string, string> = {}): Promise<ServiceUnderTest> {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  return startServiceUnderTest(MAIN, {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '2',
    INTAKE_PORT: '0',
    ...settings,
  });
}

const head = (sizeBytes: number) =>
  [
    'POST /v1/track HTTP/1.1',
    'Host: 127.0.0.1',
    `Authorization: Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
    'X-Strict-Mode: 1',
    `Content-Length: ${sizeBytes}`,
    '',
    '',
  ].join('\r\n');

test('a body that never ends does not keep the process from ending well', async () => {
  // Half of it is for bodies: less than the 10 s after which uWebSockets.js ends a silent connection by itself.
  const intake = await startIntake({ DRAIN_TIMEOUT_MS: '18000' });
  const raw = openRaw(intake.port);
  raw.write(`${head(1_000)}{"userId":`);
  // It has been read once a later call is answered.
  expect((await fetch(`${intake.url}/livez`)).status).toBe(200);
  expect(await intake.kill('SIGTERM')).toBe(0);
});

test('a body that is on its way when the process is to end is waited for, taken and answered', async () => {
  const intake = await startIntake();
  const raw = openRaw(intake.port);
  const body = JSON.stringify({ userId: 'ann', event: 'bought' });
  raw.write(head(body.length) + body.slice(0, 5));
  expect((await fetch(`${intake.url}/livez`)).status).toBe(200);
  const ended = intake.kill('SIGTERM');
  await expect
    .poll(() => intake.logs.some((line) => String(line['msg']).startsWith('stopping')), WAIT)
    .toBe(true);
  raw.write(body.slice(5));
  expect(await raw.answer()).toMatchObject({ status: 200 });
  expect(await ended).toBe(0);
});
