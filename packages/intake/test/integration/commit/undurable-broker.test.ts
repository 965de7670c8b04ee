/**
 * In production a broker that can lose confirmed data gets no calls.
 *
 * With a real intake process.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { ServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { send, startOutageWorld, type OutageWorld } from '../support/outage-world.ts';

const WAIT = { timeout: 60_000, interval: 50 };
const TEST_TIMEOUT_MS = 240_000;
const PRODUCTION = { NODE_ENV: 'production', INTAKE_ADMIN_PORT: '0' };

let world: OutageWorld;
beforeEach(async () => {
  world = await startOutageWorld();
});
afterEach(() => world.close());

/** As an operator sees it: on the admin port. */
async function readiness({ logs }: ServiceUnderTest) {
  const port = await vi.waitFor(() => {
    const line = logs.find(({ adminPort }) => adminPort !== undefined);
    expect(line).toBeDefined();
    return Number(line?.['adminPort']);
  }, WAIT);
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
  return { status: answer.status, details: (await answer.json()) as Record<string, unknown> };
}

/** A call that a busy broker confirms late is on the disk for a moment, and intake is not ready meanwhile. */
const untilReadiness = (intake: ServiceUnderTest, expected: object) =>
  vi.waitFor(async () => expect(await readiness(intake)).toMatchObject(expected), WAIT);

/** Kept by an intake on its disk alone, so far. */
const spilledCount = async (intake: ServiceUnderTest) =>
  ((await readiness(intake)).details['spill'] as { envelopes: number }).envelopes;

/** A call that a busy broker confirms late is on the disk for a moment; one that the broker may not get stays there. */
const untilNoneIsSpilled = (intake: ServiceUnderTest) =>
  vi.waitFor(async () => expect(await spilledCount(intake)).toBe(0), WAIT);

test.each(['appendonly no', 'appendfsync everysec'])(
  'intake does not start on a Redis with %s, and names the settings',
  async (setting) => {
    await world.command(`CONFIG SET ${setting}`);
    const named = setting.replace(' ', '=');
    await expect(world.startIntake(PRODUCTION)).rejects.toThrow(
      new RegExp(
        `ended with 1:[^]*${named}[^]*appendonly yes, appendfsync always[^]*INTAKE_ALLOW_UNDURABLE_BROKER=true`,
      ),
    );
  },
  TEST_TIMEOUT_MS,
);

test(
  'intake does not start on queues in a Postgres without fsync',
  async () => {
    const { url } = await createTestDatabase();
    await expect(
      world.startIntake({ ...PRODUCTION, DATABASE_URL: url, REDIS_URL: '' }),
    ).rejects.toThrow(/ended with 1:[^]*fsync=off[^]*INTAKE_ALLOW_UNDURABLE_BROKER=true/);
  },
  TEST_TIMEOUT_MS,
);

test(
  'intake starts if the loss is accepted or the settings are hidden, and reports that it is not durable',
  async () => {
    await world.command('CONFIG SET appendfsync everysec');
    const accepted = await world.startIntake({
      ...PRODUCTION,
      INTAKE_ALLOW_UNDURABLE_BROKER: 'true',
    });
    expect((await send(accepted, 'ann', 'taken')).status).toBe(200);
    await untilReadiness(accepted, {
      status: 200,
      details: { durable: false, broker: expect.stringContaining('appendfsync=everysec') },
    });
    await untilNoneIsSpilled(accepted);

    await world.command('ACL SETUSER default -config');
    const unaware = await world.startIntake(PRODUCTION);
    expect((await send(unaware, 'ann', 'taken')).status).toBe(200);
    const hidden = expect.stringContaining('settings cannot be read');
    await untilReadiness(unaware, {
      status: 200,
      details: { durable: false, broker_answers: true, broker: hidden },
    });
    await untilNoneIsSpilled(unaware);
    // The line comes through a pipe.
    await vi.waitFor(
      () =>
        expect(unaware.logs).toContainEqual(expect.objectContaining({ level: 40, msg: hidden })),
      WAIT,
    );
  },
  TEST_TIMEOUT_MS,
);

test(
  'a Redis that was away at the start and comes back undurable gets no call until it is set right',
  async () => {
    await world.killRedis();
    const intake = await world.startIntake(PRODUCTION);
    expect((await send(intake, 'ann', 'first')).status).toBe(200);
    await world.restartRedis('everysec');
    await untilReadiness(intake, {
      status: 503,
      details: { broker: expect.stringContaining('INTAKE_ALLOW_UNDURABLE_BROKER') },
    });
    expect((await send(intake, 'ann', 'second')).status).toBe(200);
    expect(await spilledCount(intake)).toBe(2);
    await world.startConsuming();
    await world.command('CONFIG SET appendfsync always');
    await vi.waitFor(() => expect(world.processed('ann')).toEqual(['first', 'second']), WAIT);
    await vi.waitFor(async () => expect((await readiness(intake)).status).toBe(200), WAIT);
  },
  TEST_TIMEOUT_MS,
);
