/** Real processes: a key made, rotated or revoked over the API is so in intake within a second, without a restart. */
import { DEMO } from '@sluice/database/seed-demo';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFleet, type Fleet } from './fleet-under-test.ts';

/** What is promised, and what a machine that others use too may add to one call. */
const IN_FORCE_AFTER_MS = 1_000;
const CALL_SLACK_MS = 1_000;

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

/** How long it took until the call was answered so. */
async function untilStatus(status: number, call: () => Promise<number>): Promise<number> {
  const startedAtMs = performance.now();
  await expect.poll(call, { timeout: 10_000, interval: 20 }).toBe(status);
  return performance.now() - startedAtMs;
}

test.each(['tracking', 'pipelines'])('%s', async (type) => {
  const made = await change('POST', '', { name: 'a', type, environment_id: DEMO.environmentId });
  const siteId = made.api_credential.site_id ?? '';
  const first = { siteId, secret: made.secret };
  const bound = IN_FORCE_AFTER_MS + CALL_SLACK_MS;
  expect(await untilStatus(200, () => statusOf(type, first))).toBeLessThan(bound);

  const rotated = await change('POST', `/${made.api_credential.id}/rotate`);
  const second = { siteId, secret: rotated.secret };
  expect(await untilStatus(401, () => statusOf(type, first))).toBeLessThan(bound);
  expect(await untilStatus(200, () => statusOf(type, second))).toBeLessThan(bound);

  await change('DELETE', `/${made.api_credential.id}`);
  expect(await untilStatus(401, () => statusOf(type, second))).toBeLessThan(bound);
});

test('a Pipelines key opens everything once a test identify was taken with it, and says so', async () => {
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
  await untilStatus(200, () => statusOf('pipelines', { siteId: '', secret: made.secret }));
  await untilStatus(200, track);
  expect(await isTesting()).toBe(false);
});
