/**
 * One workspace at the bounds of an intake process, beside another.
 *
 * The process is real, and the other workspace is still served.
 */
import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDatabase } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { ServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { StallWatch } from '@sluice/platform/testing/stall-watch';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { metric, startOutageWorld, type OutageWorld } from '../support/outage-world.ts';

const KEYS = [DEMO.writeKey, DEMO.paidWriteKey] as const;
const WAIT = { timeout: 60_000, interval: 20 };
const TEST_TIMEOUT_MS = 240_000;
const PENDING_SIZE_BYTES_MAX = 1_048_576;
const SPILL_SIZE_BYTES_MAX = 2_000_000;
const TRIES_MAX = 3;

let world: OutageWorld;
beforeEach(async () => {
  world = await startOutageWorld();
});
afterEach(() => world.close());

/** Of the demo's workspaces the first is the only one with keys. */
async function leaveOneWorkspace(): Promise<void> {
  const database = createDatabase({
    url: world.databaseUrl,
    poolMax: 1,
    applicationName: 'test',
    onError: () => undefined,
  });
  await sql`delete from api_credentials where environment_id <> ${DEMO.environmentId}`.execute(
    database,
  );
  await database.destroy();
}

function begin(
  intake: ServiceUnderTest,
  path: string,
  key: string,
  headers: Record<string, string> = {},
): ClientRequest {
  const authorization = `Basic ${Buffer.from(`${key}:`).toString('base64')}`;
  const call = request(`${intake.url}${path}`, {
    method: 'POST',
    agent: false,
    headers: { authorization, ...headers },
  });
  call.on('error', () => undefined);
  onTestFinished(() => void call.destroy());
  return call;
}

async function statusOf(call: ClientRequest): Promise<number> {
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

const track = (intake: ServiceUnderTest, key: string, event: string): Promise<number> => {
  const call = begin(intake, '/v1/track', key);
  call.end(JSON.stringify({ userId: 'ann', event, properties: { note: 'x'.repeat(8_000) } }));
  return statusOf(call);
};

/** Calls of one workspace, one after another, until one is refused. */
async function fillDisk(intake: ServiceUnderTest, key: string): Promise<string[]> {
  const acknowledged: string[] = [];
  for (;;) {
    const event = `${key}-${acknowledged.length}`;
    const status = await track(intake, key, event);
    if (status !== 200) {
      expect(status).toBe(503);
      return acknowledged;
    }
    acknowledged.push(event);
  }
}

test(
  'while the broker is away, the last share of the disk is for the other workspace, and all acknowledged calls are applied',
  async () => {
    const intake = await world.startIntake({
      INTAKE_SPILL_SIZE_BYTES_MAX: String(SPILL_SIZE_BYTES_MAX),
    });
    await world.killRedis();
    const first = await fillDisk(intake, KEYS[0]);
    const firstSizeBytes = await metric(intake, 'sluice_intake_spill_bytes');
    expect(firstSizeBytes).toBeGreaterThan(0.7 * SPILL_SIZE_BYTES_MAX);
    expect(firstSizeBytes).toBeLessThanOrEqual(0.75 * SPILL_SIZE_BYTES_MAX);
    const second = await fillDisk(intake, KEYS[1]);
    expect(second.length).toBeGreaterThan(0.2 * first.length);
    await world.restartRedis();
    await world.startConsuming();
    await vi.waitFor(
      () => expect(world.processed('ann').toSorted()).toEqual([...first, ...second].toSorted()),
      WAIT,
    );
  },
  TEST_TIMEOUT_MS,
);

test(
  'the only workspace of an installation takes the whole disk',
  async () => {
    await leaveOneWorkspace();
    const intake = await world.startIntake({
      INTAKE_SPILL_SIZE_BYTES_MAX: String(SPILL_SIZE_BYTES_MAX),
    });
    await world.killRedis();
    await fillDisk(intake, KEYS[0]);
    expect(await metric(intake, 'sluice_intake_spill_bytes')).toBeGreaterThan(
      0.95 * SPILL_SIZE_BYTES_MAX,
    );
  },
  TEST_TIMEOUT_MS,
);

/**
 * Begins so many bodies of 100 KB of one workspace. A body that intake keeps waits for its rest. Calls that it answers
 * meanwhile show that it has had the time to refuse the others, on a machine that stood still too.
 *
 * @returns the statuses of the others.
 */
async function holdBodies(intake: ServiceUnderTest, key: string, count: number): Promise<number[]> {
  const statuses: number[] = [];
  const sent = Array.from({ length: count }, () => {
    const call = begin(intake, '/v1/batch', key, { 'content-length': '110000' });
    void statusOf(call).then(
      (status) => statuses.push(status),
      () => undefined,
    );
    return new Promise((resolve) => call.write(Buffer.alloc(100_000, 0x20), resolve));
  });
  await Promise.all(sent);
  for (let look = 0; look < 5; look++) {
    await (await fetch(`${intake.url}/livez`)).text();
    await sleep(50);
  }
  return statuses;
}

test(
  'bodies that one workspace does not finish leave the last share of the pending bytes to the other',
  async () => {
    for (let tries = 1; ; tries++) {
      const intake = await world.startIntake({
        INTAKE_PENDING_SIZE_BYTES_MAX: String(PENDING_SIZE_BYTES_MAX),
      });
      const watch = new StallWatch();
      const startedAtMs = performance.now();
      // Six of its bodies fit, in 655,360 bytes. Then two of the other workspace fit.
      const first = await holdBodies(intake, KEYS[0], 9);
      const second = await holdBodies(intake, KEYS[1], 4);
      const status = await track(intake, KEYS[1], 'small');
      const heldMs = performance.now() - startedAtMs;
      await watch.stop();
      // uWebSockets.js ends silent bodies itself, after 8 s at the earliest, and a standstill may last for as long.
      const isTooLate = heldMs > 7_000 && watch.longestMs > 1_000;
      await intake.kill('SIGKILL');
      if (isTooLate && tries < TRIES_MAX) continue;
      expect([first, second, status]).toEqual([[503, 503, 503], [503, 503], 200]);
      return;
    }
  },
  TEST_TIMEOUT_MS,
);

test(
  'streams that one workspace keeps open leave the last share of the places to the other',
  async () => {
    const intake = await world.startIntake({ INTAKE_STREAM_COUNT_MAX: '8' });
    const open = async (key: string) => {
      const call = begin(intake, '/v1/stream', key);
      call.write(`${JSON.stringify({ type: 'track', userId: 'ann', event: 'a' })}\n`);
      return statusOf(call);
    };
    const statuses = [];
    for (let count = 0; count < 6; count++) statuses.push(await open(KEYS[0]));
    expect(statuses).toEqual([200, 200, 200, 200, 200, 503]);
    expect([await open(KEYS[1]), await open(KEYS[1])]).toEqual([200, 200]);
  },
  TEST_TIMEOUT_MS,
);
