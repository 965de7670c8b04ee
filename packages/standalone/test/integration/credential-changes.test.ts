/** Real processes: a key made, rotated or revoked over the API is so in intake within a second, without a restart. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startFleet, type Fleet } from './fleet-under-test.ts';

/** The promised time, counted from the answer with the change of the key. */
const IN_FORCE_AFTER_MS = 1_000;
/** The same by the clock of the wall, with the time that a busy machine adds. */
const WALL_CLOCK_MS_MAX = 3_000;
const TICK_MS = 10;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.close());

interface Made {
  readonly secret: string;
  readonly api_credential: { readonly id: number; readonly site_id: string | null };
}

async function change(method: 'POST' | 'DELETE', path: string, body?: object): Promise<Made> {
  const answer = await fetch(
    `${fleet.api.url}/v1/accounts/${DEMO.accountId}/api_credentials${path}`,
    {
      method,
      headers: {
        authorization: `Bearer ${DEMO.accountToken}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    },
  );
  expect(answer.status).toBe(200);
  return (await answer.json()) as Made;
}

async function statusOf(type: string, { siteId, secret }: { siteId: string; secret: string }) {
  const isTrack = type === 'tracking';
  const path = isTrack ? '/api/v1/customers/ada' : '/v1/identify';
  const answer = await fetch(fleet.intake.url + path, {
    method: isTrack ? 'PUT' : 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(isTrack ? `${siteId}:${secret}` : `${secret}:`).toString('base64')}`,
      'content-type': 'application/json',
      'x-strict-mode': '1',
    },
    body: JSON.stringify(isTrack ? { plan: 'pro' } : { userId: 'ada' }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

/**
 * Calls until the answer is `status`, and returns when the last call was sent that was answered otherwise. By when it
 * was sent, not answered, so that a slow machine does not look like a slow revocation. For the same reason the time is
 * counted in ticks of a timer here: a tick that the machine has no time for is not counted. Intake too waits for its
 * timer and for Postgres.
 */
async function lastSentBefore(status: number, call: () => Promise<number>): Promise<number> {
  const clock = new TickClock(TICK_MS);
  onTestFinished(() => clock.stop());
  const startedAtMs = performance.now();
  let lastSentAtMs = 0;
  let lastSentByWallClockMs = 0;
  const callOnce = async (): Promise<number> => {
    const sentAtMs = clock.nowMs;
    const sentByWallClockMs = performance.now() - startedAtMs;
    const answered = await call();
    if (answered !== status) {
      lastSentAtMs = sentAtMs;
      lastSentByWallClockMs = sentByWallClockMs;
    }
    return answered;
  };
  await expect.poll(callOnce, { timeout: 30_000, interval: 5 }).toBe(status);
  clock.stop();
  expect(lastSentByWallClockMs).toBeLessThan(WALL_CLOCK_MS_MAX);
  return lastSentAtMs;
}

test.each(['tracking', 'pipelines'])('%s', async (type) => {
  const made = await change('POST', '', { name: 'a', type, environment_id: DEMO.environmentId });
  const siteId = made.api_credential.site_id ?? '';
  const first = { siteId, secret: made.secret };
  const isSoon = async (status: number, key: typeof first) =>
    expect(await lastSentBefore(status, () => statusOf(type, key))).toBeLessThan(IN_FORCE_AFTER_MS);
  await isSoon(200, first);

  const rotated = await change('POST', `/${made.api_credential.id}/rotate`);
  const second = { siteId, secret: rotated.secret };
  await isSoon(401, first);
  await isSoon(200, second);

  await change('DELETE', `/${made.api_credential.id}`);
  await isSoon(401, second);
});

test('a Pipelines key opens its workspace after a test of it, and the API then shows no open test', async () => {
  const body = { name: 'a', type: 'pipelines', environment_id: DEMO.environmentId };
  const made = await change('POST', '', body);
  const track = async (): Promise<number> => {
    const answer = await fetch(`${fleet.intake.url}/v1/track`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${made.secret}:`).toString('base64')}`,
        'x-strict-mode': '1',
      },
      body: JSON.stringify({ userId: 'ada', event: 'bought' }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  const isTesting = async (): Promise<boolean> => {
    const answer = await fetch(
      `${fleet.api.url}/v1/accounts/${DEMO.accountId}/api_credentials/${made.api_credential.id}`,
      { headers: { authorization: `Bearer ${DEMO.accountToken}` } },
    );
    const shown = (await answer.json()) as { api_credential: { testing: boolean } };
    return shown.api_credential.testing;
  };
  expect(await isTesting()).toBe(true);
  await lastSentBefore(200, () => statusOf('pipelines', { siteId: '', secret: made.secret }));
  expect(await track()).toBe(200);
  await vi.waitFor(async () => expect(await isTesting()).toBe(false), 10_000);
});

test('whether a phone number names a person', async () => {
  const allow = async (phone_identifies: boolean) => {
    const answer = await fetch(
      `${fleet.api.url}/v1/accounts/${DEMO.accountId}/environments/${DEMO.environmentId}`,
      {
        method: 'PUT',
        headers: {
          authorization: `Bearer ${DEMO.accountToken}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ environment: { phone_identifies } }),
      },
    );
    expect(answer.status).toBe(200);
  };
  const statusOfCall = async (): Promise<number> => {
    const answer = await fetch(`${fleet.intake.url}/v2/entity`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${DEMO.siteId}:${DEMO.apiKey}`).toString('base64')}`,
        'x-strict-mode': '1',
      },
      body: JSON.stringify({
        type: 'person',
        action: 'identify',
        identifiers: { phone: '+15550100' },
      }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  await allow(true);
  expect(await lastSentBefore(200, statusOfCall)).toBeLessThan(IN_FORCE_AFTER_MS);
  await allow(false);
  expect(await lastSentBefore(400, statusOfCall)).toBeLessThan(IN_FORCE_AFTER_MS);
});
