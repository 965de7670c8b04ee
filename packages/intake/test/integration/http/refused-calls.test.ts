/** An operator's information about calls that are not taken. */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startOutageWorld, type OutageWorld } from '../support/outage-world.ts';

let world: OutageWorld;
beforeAll(async () => {
  world = await startOutageWorld();
});
afterAll(() => world.close());

const refusedIn = (page: string) =>
  Object.fromEntries(
    [...page.matchAll(/^sluice_intake_refused_calls_total{(?=.*status="(\d+)").*} (.+)$/gm)].map(
      ([, status = '', count]) => [status, Number(count)],
    ),
  );

test('a refused call is counted by its status; an accepted call is not counted', async () => {
  const intake = await world.startIntake({ INTAKE_RATE_LIMIT_PER_SECOND: '0' });
  const refused = async () => refusedIn(await (await fetch(`${intake.url}/metrics`)).text());
  expect(await refused()).toEqual({ 400: 0, 401: 0, 429: 0, 503: 0 });
  const statusOf = async (key: string, event: object): Promise<number> => {
    const answer = await fetch(`${intake.url}/v1/track`, {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
        'X-Strict-Mode': '1',
      },
      body: JSON.stringify(event),
    });
    await answer.text();
    return answer.status;
  };
  expect(await statusOf(DEMO.writeKey, { userId: 'ann', event: 'seen' })).toBe(200);
  expect(await statusOf('nobody', { userId: 'ann', event: 'seen' })).toBe(401);
  expect(await statusOf(DEMO.writeKey, { userId: 'ann' })).toBe(400);
  expect(await statusOf(DEMO.writeKey, { event: 'seen' })).toBe(400);
  expect(await refused()).toEqual({ 400: 2, 401: 1, 429: 0, 503: 0 });
});
