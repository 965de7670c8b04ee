/**
 * Every process of a fleet replaced under load by `npm run roll`.
 *
 * One after another: the new one first, then SIGTERM to the old one. Clients keep their connections. If the server
 * closes one without an answer, HTTP lets a client repeat the call, with the same ids. No other failure may happen.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { StallWatch } from '@sluice/platform/testing/stall-watch';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';

const mainOf = (service: 'intake' | 'worker') =>
  fileURLToPath(new URL(`../../../${service}/src/main.ts`, import.meta.url));
const AUTHORIZATION = `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`;
const WAIT = { timeout: 90_000, interval: 50 };
/** Longer than the stall time. */
const STANDSTILL_MS_MAX = 30_000;
const CLIENTS = 6;
/** An old intake closes once it was not called for 300 ms, also if its clients stood still. */
const PAUSE_MS_MAX = 200;
const CALLS_BETWEEN = 150;
const CALLS_MIN = 10_000;
/** Codes of `fetch` for a connection that ended before any answer. */
const CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

function startClients(url: string) {
  const acknowledged: string[] = [];
  const refused: string[] = [];
  let closedCount = 0;
  let isStopping = false;
  const send = async (person: string, messageId: string): Promise<void> => {
    for (;;) {
      try {
        const answer = await fetch(`${url}/v1/track`, {
          method: 'POST',
          headers: { Authorization: AUTHORIZATION, 'X-Strict-Mode': '1' },
          body: JSON.stringify({ userId: person, event: 'restarted', messageId }),
        });
        await answer.text();
        if (answer.status === 200) acknowledged.push(messageId);
        else refused.push(`${messageId}: ${answer.status}`);
        return;
      } catch (error) {
        const { code } = (error as { cause?: { code?: string } }).cause ?? {};
        if (!CLOSED.has(code ?? '')) {
          refused.push(`${messageId}: ${code ?? String(error)}`);
          return;
        }
        closedCount++;
      }
    }
  };
  const running = Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      for (let n = 0; !isStopping; n++) await send(`person-${client}`, `call-${client}-${n}`);
    }),
  );
  return {
    acknowledged,
    refused,
    closedCount: () => closedCount,
    more: (count: number) => {
      const wanted = acknowledged.length + count;
      return vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(wanted), WAIT);
    },
    until: (count: number) =>
      vi.waitFor(() => expect(acknowledged.length).toBeGreaterThanOrEqual(count), {
        ...WAIT,
        timeout: 480_000,
      }),
    async stop() {
      isStopping = true;
      await running;
    },
  };
}

const ROLL = fileURLToPath(new URL('../../../../scripts/roll.mjs', import.meta.url));

/** The processes that are new; they end with the test. */
async function roll(service: 'intake' | 'worker', databaseUrl: string): Promise<number[]> {
  const child = spawn(process.execPath, [ROLL, service], {
    env: { PATH: process.env['PATH'], DATABASE_URL: databaseUrl },
  });
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => void (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => void (errors += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number];
  const pids = output
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => (JSON.parse(line) as { by?: number }).by ?? []);
  onTestFinished(() => pids.forEach(kill));
  expect(code, errors).toBe(0);
  return pids;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

test('every intake and every worker is replaced under load, and no call is refused, lost or doubled', async () => {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const settings = {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '4',
    WORKER_PORT: '0',
  };
  const startIntake = (port: number) =>
    startServiceUnderTest(mainOf('intake'), { ...settings, INTAKE_PORT: String(port) });
  const startWorker = () => startServiceUnderTest(mainOf('worker'), settings);

  const port = await findFreePort();
  const intakes = [await startIntake(port), await startIntake(port)];
  const workers = [await startWorker(), await startWorker()];
  const clients = startClients(`http://127.0.0.1:${port}`);
  await clients.more(CALLS_BETWEEN);

  const replace = async (
    service: 'intake' | 'worker',
    old: readonly { readonly ended: Promise<number | null> }[],
  ): Promise<void> => {
    expect(await roll(service, url)).toHaveLength(old.length);
    // Each ended by itself, drained, before the next was started.
    expect(await Promise.all(old.map(({ ended }) => ended))).toEqual(old.map(() => 0));
    await clients.more(CALLS_BETWEEN);
  };
  const pauses = new StallWatch();
  await replace('intake', intakes);
  await pauses.stop();
  await replace('worker', workers);
  await clients.until(CALLS_MIN);
  await clients.stop();

  expect(clients.refused).toEqual([]);
  // Only a call that was sent in the very moment of the close meets it. A standstill of the clients makes all of them do so.
  const closes = pauses.longestMs < PAUSE_MS_MAX ? 1 : intakes.length;
  expect(clients.closedCount()).toBeLessThanOrEqual(CLIENTS * closes);
  // By progress, not by the clock: the speed of a shared machine is not under test here.
  let storedCount = -1;
  let movedAtMs = performance.now();
  await vi.waitFor(
    async () => {
      const { rows } = await sql<{ eventId: string; count: number }>`
      select event_id as "eventId", count(*)::int as count from events
       where environment_id = ${DEMO.environmentId} and kind = 'event' group by 1`.execute(
        database,
      );
      expect(rows.filter(({ count }) => count > 1)).toEqual([]);
      if (rows.length > storedCount) movedAtMs = performance.now();
      storedCount = rows.length;
      const standsForMs = performance.now() - movedAtMs;
      if (standsForMs > STANDSTILL_MS_MAX) return;
      const stored = new Set(rows.map(({ eventId }) => eventId));
      const missing = clients.acknowledged.filter((messageId) => !stored.has(messageId));
      expect(missing.length).toBe(0);
    },
    { timeout: 480_000, interval: 200 },
  );
  expect(storedCount).toBe(clients.acknowledged.length);
}, 1_200_000);
