/**
 * A real worker process that can be killed at a chosen step.
 *
 * SIGKILL ends it, on a real Postgres and a real Redis, with a receiver that remembers its requests. A step is held
 * open by a lock, or by the receiver, until the worker is there.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { findLane } from '@sluice/database/delivery/lanes';
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { expect } from 'vitest';
import { eventInTurn } from './event-in-turn.ts';
import { createGate, endStoredLeases, until } from './lane-world.ts';

const WORKER = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

/** A request as the receiver saw it. */
export interface Arrival {
  readonly eventId: string;
  readonly status: number;
  /** Workers that had died when it came. */
  readonly deaths: number;
}

export interface CrashWorld {
  readonly database: Database;
  readonly lane: LaneKey;
  readonly arrivals: Arrival[];
  /** Events logged so far: e1, e2, … */
  readonly loggedCount: number;
  /** The receiver's answer to the next request; 200 by default. */
  answer: () => number | Promise<number>;
  /** Reports, events of one's own and published messages in turns. */
  log(count: number): Promise<void>;
  /** The worker dies, together with its running statements in Postgres. */
  kill(): Promise<void>;
  /** As if the time had passed that others leave to a silent worker. */
  replace(): Promise<void>;
  /** Holds a lock until the returned function is called. */
  hold(statement: ReturnType<typeof sql>): Promise<() => Promise<void>>;
  workerWaitsForLock(): Promise<void>;
  /** The next request comes, and is answered when the gate is opened. */
  catchRequest(status?: number): { readonly came: Promise<void>; readonly answer: () => void };
  /**
   * The worker dies while it stores the answer to the first request that `begin` causes: it waits for a lock that the
   * statement `progress` holds.
   */
  killWhileKeeping<Begun>(
    status: number,
    progress: ReturnType<typeof sql>,
    begin: () => Promise<Begun>,
  ): Promise<Begun>;
  redisCommand(...words: string[]): Promise<void>;
  isFailing(): Promise<boolean>;
  allArrive(): Promise<void>;
  close(): Promise<void>;
}

export async function createCrashWorld(): Promise<CrashWorld> {
  const { database, url: databaseUrl } = await createTestDatabase();
  const directory = await mkdtemp(join(tmpdir(), 'sluice-crash-'));
  const redis = await startRedisServer({ directory });
  let deaths = 0;
  let loggedCount = 0;
  let worker: ServiceUnderTest | undefined;

  const receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      void (async () => {
        const { event_id: eventId } = JSON.parse(body) as { event_id: string };
        const arrivedAfter = deaths;
        const status = await world.answer();
        world.arrivals.push({ eventId, status, deaths: arrivedAfter });
        response.writeHead(status).end();
      })();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  await insertTestWorkspace(database, 1);
  const { webhookId } = await insertTestWebhook(database, 1, {
    endpoint: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
  });
  const lane = { environmentId: 1, webhookId };

  const startWorker = (): Promise<ServiceUnderTest> =>
    startServiceUnderTest(WORKER, {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      SHARD_COUNT: '1',
      WORKER_PORT: '0',
      WORKER_SWEEP_INTERVAL_MS: '50',
      QUEUE_STALLED_AFTER_MS: '1000',
      WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      // One at a time, so that order is order of arrival.
      WEBHOOK_WINDOW_MAX: '1',
      // Longer than the stalls of a busy machine: a request that times out is sent again, without a death. Half of it is
      // for an access token.
      WEBHOOK_TIMEOUT_MS: '20000',
      DRAIN_TIMEOUT_MS: '60000',
      WEBHOOK_LISTED_FAILURE_WAIT_MS: '100',
      WEBHOOK_BACKOFF_BASE_MS: '50',
      WEBHOOK_BACKOFF_CAP_MS: '100',
    });

  const world: CrashWorld = {
    database,
    lane,
    arrivals: [],
    answer: () => 200,
    get loggedCount() {
      return loggedCount;
    },

    async log(count) {
      const events = Array.from({ length: count }, () =>
        eventInTurn(lane, ++loggedCount, Date.now()),
      );
      await database.transaction().execute((transaction) => appendDeliveries(transaction, events));
    },

    async kill() {
      await worker?.kill('SIGKILL');
      deaths++;
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name = 'sluice-worker'`.execute(
        database,
      );
    },

    async replace() {
      await endStoredLeases({ database, ...lane });
      worker = await startWorker();
    },

    async hold(statement) {
      const held = createGate();
      const released = createGate();
      const ended = database.transaction().execute(async (transaction) => {
        await statement.execute(transaction);
        held.open();
        await released.opened;
      });
      await held.opened;
      return async () => {
        released.open();
        await ended;
      };
    },

    workerWaitsForLock: () =>
      until(async () => {
        const { rows } = await sql<{ count: number }>`
          select count(*)::int as count from pg_stat_activity
           where datname = current_database() and application_name = 'sluice-worker' and wait_event_type = 'Lock'`.execute(
          database,
        );
        return (rows[0]?.count ?? 0) > 0;
      }),

    catchRequest(status = 200) {
      const came = createGate();
      const mayAnswer = createGate();
      world.answer = async () => {
        came.open();
        await mayAnswer.opened;
        return status;
      };
      return { came: came.opened, answer: () => mayAnswer.open() };
    },

    async killWhileKeeping(status, progress, begin) {
      const request = world.catchRequest(status);
      const begun = await begin();
      await request.came;
      const release = await world.hold(progress);
      request.answer();
      await world.workerWaitsForLock();
      await world.kill();
      await release();
      return begun;
    },

    redisCommand: (...words) =>
      new Promise<void>((resolve, reject) => {
        const socket = connect(redis.port, '127.0.0.1', () =>
          socket.write(`${words.join(' ')}\r\n`),
        );
        socket.once('data', (reply) => {
          socket.destroy();
          if (String(reply).startsWith('+OK')) resolve();
          else reject(new Error(String(reply)));
        });
        socket.once('error', reject);
      }),

    isFailing: async () => (await findLane(database, lane))?.state === 'failing',

    async allArrive() {
      const deadlineMs = performance.now() + 60_000;
      for (;;) {
        const found = await findLane(database, lane);
        if (found?.cursor === loggedCount && found.lastSequence === loggedCount) return;
        if (performance.now() > deadlineMs)
          throw new Error(`not all arrived: ${JSON.stringify(found)}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },

    async close() {
      await worker?.kill('SIGKILL');
      receiver.closeAllConnections();
      receiver.close();
      await redis.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
  worker = await startWorker();
  return world;
}

/** e1 to e`count`: all came, in order. One came again only after a death, with the same id. */
export function expectAllInOrder(arrivals: readonly Arrival[], count: number): void {
  const succeeded = new Map<string, number>();
  for (const { eventId, status, deaths } of arrivals) {
    const number = Number(eventId.slice(1));
    // In order: all before it were answered with a 200.
    expect(succeeded.size).toBeGreaterThanOrEqual(number - 1);
    const before = succeeded.get(eventId);
    if (before !== undefined)
      expect(deaths, `${eventId} came again without a death`).toBeGreaterThan(before);
    if (status === 200) succeeded.set(eventId, deaths);
  }
  expect(succeeded.size).toBe(count);
}
