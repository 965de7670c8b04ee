/** The end of the process, as SIGTERM brings it about. */
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, onTestFinished, test } from 'vitest';
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

/**
 * A body that is sent steadily lasts for longer than the whole drain. uWebSockets.js itself ends a connection on which
 * less than 160 KB come in 10 s, which a sender that stands still for some seconds passes.
 */
const BODY_SIZE_BYTES = 16 * 1_048_576;
const PART_SIZE_BYTES = 32_768;
const PART_MS = 100;

const head = (sizeBytes: number, path = '/v1/track', lines = ['X-Strict-Mode: 1']) =>
  [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
    ...lines,
    `Content-Length: ${sizeBytes}`,
    '',
    '',
  ].join('\r\n');

test('a body that never ends does not keep the process from ending well', async () => {
  // Half of it is for bodies.
  const intake = await startIntake({
    DRAIN_TIMEOUT_MS: '24000',
    INTAKE_BATCH_SIZE_BYTES_MAX: String(BODY_SIZE_BYTES),
  });
  const raw = openRaw(intake.port);
  raw.write(head(BODY_SIZE_BYTES, '/v1/batch', []));
  const sending = setInterval(() => raw.write(Buffer.alloc(PART_SIZE_BYTES, 0x20)), PART_MS);
  onTestFinished(() => clearInterval(sending));
  // It has been read once a later call is answered.
  expect((await fetch(`${intake.url}/livez`)).status).toBe(200);
  expect(raw.socket.closed).toBe(false);
  expect(await intake.kill('SIGTERM')).toBe(0);
  expect(raw.text()).toBe('');
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
