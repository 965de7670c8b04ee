/**
 * A workspace that sends at full speed, and another beside it.
 *
 * With a real intake, a real broker, and workers of a known speed.
 */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { ServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startOutageWorld, type OutageWorld } from '../support/outage-world.ts';

const CONNECTION_COUNT = 200;
const BATCH_COUNT = 50;
const CALLS = 10;
/** Of each of the two shards. */
const OPERATIONS_PER_MS = 10;
const WAIT = { timeout: 60_000, interval: 5 };

let world: OutageWorld;
beforeEach(async () => {
  world = await startOutageWorld();
});
afterEach(() => world.close());

function post(agent: Agent, url: string, key: string, body: unknown): Promise<number> {
  const authorization = `Basic ${Buffer.from(`${key}:`).toString('base64')}`;
  return new Promise((resolve, reject) => {
    const call = request(url, { agent, method: 'POST', headers: { authorization } });
    call.once('error', reject);
    call.once('response', (response) =>
      response.resume().once('end', () => resolve(response.statusCode ?? 0)),
    );
    call.end(JSON.stringify(body));
  });
}

/** Each connection sends about a person of its own. */
function startFlood(intake: ServiceUnderTest) {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTION_COUNT });
  const acknowledged = new Map<string, string[]>();
  let isStopped = false;
  const connections = Array.from({ length: CONNECTION_COUNT }, async (_, connection) => {
    const userId = `user-${connection}`;
    const names: string[] = [];
    acknowledged.set(userId, names);
    for (let number = 0; !isStopped; number++) {
      const events = Array.from({ length: BATCH_COUNT }, (_unused, place) => `${number}-${place}`);
      const batch = events.map((event) => ({
        type: 'track',
        userId,
        event,
        properties: { note: 'x'.repeat(80) },
      }));
      if ((await post(agent, `${intake.url}/v1/batch`, DEMO.writeKey, { batch })) === 200)
        names.push(...events);
    }
  });
  return {
    acknowledged,
    async stop() {
      isStopped = true;
      await Promise.all(connections);
      agent.destroy();
    },
  };
}

test.each(['redis', 'postgres'] as const)(
  'calls beside a flood are applied behind few of its calls (%s), and its acknowledged calls are applied once, in order',
  async (kind) => {
    const intake = await world.startIntake(kind === 'postgres' ? { REDIS_URL: '' } : {});
    await world.startConsuming(kind, (count) => sleep(2 + count / OPERATIONS_PER_MS));
    const agent = new Agent({ keepAlive: true });
    const call = async (event: string): Promise<void> => {
      const body = { userId: 'ann', event };
      expect(await post(agent, `${intake.url}/v1/track`, DEMO.paidWriteKey, body)).toBe(200);
    };
    await call('before');
    const flood = startFlood(intake);
    await vi.waitFor(() => expect(world.applied().length).toBeGreaterThan(2_000), WAIT);
    const aheadCounts: number[] = [];
    for (let number = 0; number < CALLS; number++) {
      const from = world.applied().length;
      await call(`call-${number}`);
      await vi.waitFor(() => expect(world.processed('ann')).toContain(`call-${number}`), WAIT);
      aheadCounts.push(world.applied().findIndex(({ name }) => name === `call-${number}`) - from);
    }
    await flood.stop();
    agent.destroy();
    // All connections together keep 10,000 under way.
    const middle = aheadCounts.toSorted((one, other) => one - other)[CALLS / 2];
    expect(middle).toBeLessThan(2_500);
    for (const [person, names] of flood.acknowledged)
      await vi.waitFor(() => expect(world.processed(person)).toEqual(names), WAIT);
  },
  120_000,
);
