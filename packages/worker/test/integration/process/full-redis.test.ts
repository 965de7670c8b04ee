/**
 * A Redis that fills up while no worker lives.
 *
 * It runs with the processes that operators run. To take a job needs memory in Redis too, so workers that start only
 * then must find some left, or the memory would stay full.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';

const WAIT = { timeout: 60_000, interval: 100 };
/** Of which a tenth is left to the workers: the connections of one take two megabytes while it starts. */
const MAXMEMORY = '40mb';
const DISK_BUFFER_SIZE_BYTES_MAX = 1_000_000;
const PADDING = 'x'.repeat(30_000);
/** The first calls have ten events, three quarters of the memory together. The others have one, so that they come close to any mark. */
const LARGE_CALLS = 100;
const PEOPLE = 20;

async function start(service: string, settings: Record<string, string>): Promise<ServiceUnderTest> {
  const main = fileURLToPath(new URL(`../../../../${service}/src/main.ts`, import.meta.url));
  const started = await startServiceUnderTest(main, settings);
  onTestFinished(() => void started.kill('SIGKILL'));
  return started;
}

/** The nth call: its answer, and its events' ids. */
async function post(intake: ServiceUnderTest, n: number) {
  const ids = Array.from({ length: n < LARGE_CALLS ? 10 : 1 }, (_, event) => `event-${n}-${event}`);
  const batch = ids.map((messageId) => ({
    type: 'track',
    userId: `person-${n % PEOPLE}`,
    event: 'filled',
    messageId,
    properties: { n, padding: PADDING },
  }));
  const answer = await fetch(`${intake.url}/v1/batch`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}` },
    body: JSON.stringify({ batch }),
  });
  return { status: answer.status, headers: answer.headers, body: await answer.json(), ids };
}

async function storedIds(database: Database): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select event_id as id from events where environment_id = 1 and name = 'filled'`.execute(
    database,
  );
  return rows.map(({ id }) => id).toSorted();
}

test(
  'intake stops before it is full, a worker that starts only then makes room, and intake goes on by itself',
  { timeout: 300_000 },
  async () => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    const directory = await mkdtemp(join(tmpdir(), 'sluice-test-full-'));
    const redis = await startRedisServer({
      directory: join(directory, 'redis'),
      extraArguments: ['--maxmemory', MAXMEMORY],
    });
    onTestFinished(async () => {
      await redis.kill();
      await rm(directory, { recursive: true, force: true });
    });
    const settings = { DATABASE_URL: url, REDIS_URL: redis.url, SHARD_COUNT: '4' };
    const intake = await start('intake', {
      ...settings,
      INTAKE_PORT: '0',
      INTAKE_SPILL_DIRECTORY: join(directory, 'spill'),
      INTAKE_SPILL_SIZE_BYTES_MAX: String(DISK_BUFFER_SIZE_BYTES_MAX),
      // A busy Redis confirms late: three large calls in the disk buffer would fill it long before Redis is full.
      INTAKE_COMMIT_DEADLINE_MS: '30000',
    });
    const readiness = async () =>
      (await (await fetch(`${intake.url}/readyz`)).json()) as Record<string, unknown>;

    const acknowledged: string[] = [];
    let n = 0;
    let last = await post(intake, n);
    for (; last.status === 200; last = await post(intake, ++n)) acknowledged.push(...last.ids);
    expect(last.status).toBe(503);
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(last.body).toMatchObject({ code: 'overloaded' });
    // Again and again: without an answer of a busy Redis in time, intake knows no fill.
    const full = await vi.waitFor(async () => {
      const found = await readiness();
      expect(found).toMatchObject({
        ready: false,
        full: true,
        spill: { filling: true },
        memory_ratio: expect.any(Number),
      });
      return found;
    }, WAIT);
    // Near the mark, and below the brim.
    expect(full['memory_ratio']).toBeGreaterThanOrEqual(0.88);
    expect(full['memory_ratio']).toBeLessThan(0.95);
    await vi.waitFor(async () => {
      const metrics = await (await fetch(`${intake.url}/metrics`)).text();
      expect(metrics).toMatch(/^sluice_full_brokers{.*} 1$/m);
      expect(metrics).toMatch(/^sluice_broker_memory_ratio{.*} 0\.[89]\d*$/m);
    }, WAIT);

    const worker = await start('worker', { ...settings, WORKER_PORT: '0' });
    await vi.waitFor(async () => {
      const again = await post(intake, ++n);
      if (again.status === 200) acknowledged.push(...again.ids);
      expect(again.status).toBe(200);
    }, WAIT);
    await vi.waitFor(async () => {
      expect(await readiness()).toMatchObject({
        ready: true,
        full: false,
        spill: { envelopes: 0 },
      });
    }, WAIT);
    await vi.waitFor(async () => {
      expect(await storedIds(database)).toEqual(acknowledged.toSorted());
    }, WAIT);
    expect(await intake.kill('SIGTERM')).toBe(0);
    expect(await worker.kill('SIGTERM')).toBe(0);
  },
);
