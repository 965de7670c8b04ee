/**
 * Settings of intake with effects that a client sees.
 *
 * They are set as an operator sets them.
 */
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, onTestFinished, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

async function startIntake(changes: Record<string, string>): Promise<string> {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const intake = await startServiceUnderTest(MAIN, {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    INTAKE_PORT: '0',
    ...changes,
  });
  onTestFinished(async () => void (await intake.kill('SIGTERM')));
  return intake.url;
}

const basic = (credentials: string) => ({
  Authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
});

test.each([
  [{}, 'us'],
  [{ INTAKE_REGION: 'eu' }, 'eu'],
])('with %j a client that asks for its region hears %s', async (changes, region) => {
  const url = await startIntake(changes);
  const answer = await fetch(`${url}/api/v1/accounts/region`, {
    headers: basic(`${DEMO.siteId}:${DEMO.apiKey}`),
  });
  expect(await answer.json()).toMatchObject({ region });
});

test('with INTAKE_STREAM_COUNT_MAX streams open, another one is 503 with Retry-After', async () => {
  const url = await startIntake({ INTAKE_STREAM_COUNT_MAX: '1' });
  const open = (body: string | ReadableStream, signal: AbortSignal) =>
    fetch(`${url}/v1/stream`, {
      method: 'POST',
      headers: basic(`${DEMO.writeKey}:`),
      body,
      signal,
      duplex: 'half',
    });
  const line = `${JSON.stringify({ type: 'track', userId: 'ann', event: 'Seen' })}\n`;
  const sender = new AbortController();
  // It sends one line and no more, but does not end.
  const unended = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(line)),
  });
  const first = await open(unended, sender.signal);
  expect(first.status).toBe(200);
  const second = await open(line, AbortSignal.timeout(60_000));
  expect(second.status).toBe(503);
  expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
  sender.abort();
});
