/**
 * Real workers, killed with SIGKILL at every step of a lane's life, on a real Postgres and a real Redis
 * that is flushed in between. Each step is held open by a lock, or by the receiver, until the worker is
 * there; then it dies. Whatever happens: every event arrives, in order, and one that was answered with
 * a 200 comes again only when a worker died in between, with the same id.
 *
 * `SLUICE_SEED` repeats a run.
 */
import { randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection';
import { appendDeliveries } from '@sluice/database/deliveries';
import { findLane, type LaneKey } from '@sluice/database/lanes';
import { createTestDatabase } from '@sluice/database/testing';
import { insertWebhook } from '@sluice/database/webhooks';
import { startRedisServer, type RedisServer } from '@sluice/platform/redis-server';
import { startServiceUnderTest, type ServiceUnderTest } from '@sluice/platform/service-under-test';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createGate, until } from './lane-world.ts';

const WORKER = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const RANDOM_STEPS = 3;

let database: Database;
let databaseUrl: string;
let redis: RedisServer;
let directory: string;
let lane: LaneKey;
let worker: ServiceUnderTest;
let receiver: Server;

interface Arrival {
  readonly eventId: string;
  readonly status: number;
  /** Workers that had died when it came. */
  readonly deaths: number;
}

const arrivals: Arrival[] = [];
let deaths = 0;
let logged = 0;
/** What the receiver answers to the next request; 200 by default. */
let answer: () => number | Promise<number> = () => 200;

beforeAll(async () => {
  ({ database, url: databaseUrl } = await createTestDatabase());
  directory = await mkdtemp(join(tmpdir(), 'sluice-crash-'));
  redis = await startRedisServer({ directory });
  receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      void (async () => {
        const { event_id: eventId } = JSON.parse(body) as { event_id: string };
        const arrivedAfter = deaths;
        const status = await answer();
        arrivals.push({ eventId, status, deaths: arrivedAfter });
        response.writeHead(status).end();
      })();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  await sql`insert into accounts (account_id, name) values (1, 'Test')`.execute(database);
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key) values (1, 1, 'Test', 'key')`.execute(
    database,
  );
  const webhook = await insertWebhook(database, 1, {
    name: 'Hook',
    endpoint: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    events: ['customer_subscribed'],
    disabled: false,
    fullResolution: false,
    withContent: false,
  });
  lane = { environmentId: 1, webhookId: webhook?.webhookId ?? 0 };
  worker = await startWorker();
});

afterAll(async () => {
  await worker?.kill('SIGKILL');
  receiver?.closeAllConnections();
  receiver?.close();
  await redis?.stop();
  await rm(directory, { recursive: true, force: true });
});

function startWorker(): Promise<ServiceUnderTest> {
  return startServiceUnderTest(WORKER, {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    SHARD_COUNT: '1',
    WORKER_PORT: '0',
    WORKER_SWEEP_INTERVAL_MS: '50',
    QUEUE_STALLED_AFTER_MS: '1000',
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
    // One at a time, so that order is order of arrival.
    WEBHOOK_WINDOW_MAX: '1',
    WEBHOOK_TIMEOUT_MS: '400',
    WEBHOOK_LISTED_FAILURE_WAIT_MS: '100',
    WEBHOOK_BACKOFF_BASE_MS: '50',
    WEBHOOK_BACKOFF_CAP_MS: '100',
  });
}

async function log(count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({
    environmentId: 1,
    eventId: `e${++logged}`,
    eventType: 'customer_subscribed' as const,
    objectType: 'customer' as const,
    metric: 'subscribed',
    occurredAtMs: Date.now(),
    data: { customer_id: '42' },
  }));
  await database.transaction().execute((transaction) => appendDeliveries(transaction, events));
}

/** Dies, and takes with it what Postgres was still to do for it. */
async function kill(): Promise<void> {
  await worker.kill('SIGKILL');
  deaths++;
  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'sluice-worker'`.execute(database);
}

/** As if the time had passed that others leave a lane to a worker that says nothing. */
async function replace(): Promise<void> {
  await sql`update lanes set lease_until = clock_timestamp() where lease_until is not null`.execute(
    database,
  );
  worker = await startWorker();
}

/** Holds a lock until told to let go. */
async function hold(statement: ReturnType<typeof sql>): Promise<() => Promise<void>> {
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
}

const holdProgress = () => hold(sql`select from lanes where environment_id = 1 for no key update`);
/** Who claims a lane reads whose it is; who logs an event does not. */
const holdClaims = () => hold(sql`lock table environments in access exclusive mode`);
const holdLog = () => hold(sql`lock table delivery_log in access exclusive mode`);

async function workerWaitsForLock(): Promise<void> {
  await until(async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from pg_stat_activity
       where datname = current_database() and application_name = 'sluice-worker' and wait_event_type = 'Lock'`.execute(
      database,
    );
    return (rows[0]?.count ?? 0) > 0;
  });
}

/** The next request comes, and is answered when the gate is opened. */
function catchRequest(status = 200) {
  const came = createGate();
  const mayAnswer = createGate();
  answer = async () => {
    came.open();
    await mayAnswer.opened;
    return status;
  };
  return { came: came.opened, answer: () => mayAnswer.open() };
}

async function redisCommand(...words: string[]): Promise<void> {
  const { port } = redis;
  await new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${words.join(' ')}\r\n`));
    socket.once('data', (reply) => {
      socket.destroy();
      if (String(reply).startsWith('+OK')) resolve();
      else reject(new Error(String(reply)));
    });
    socket.once('error', reject);
  });
}

const isFailing = async (): Promise<boolean> =>
  (await findLane(database, lane))?.state === 'failing';

/** Brings the worker there, and kills it. */
const STEPS: Readonly<Record<string, () => Promise<void>>> = {
  async 'claiming the lane'() {
    const release = await holdClaims();
    await log(3);
    await workerWaitsForLock();
    await kill();
    await release();
  },
  async 'reading the log'() {
    const releaseClaims = await holdClaims();
    await log(3);
    const releaseLog = await holdLog();
    await releaseClaims();
    await until(async () => (await findLane(database, lane))?.isHeld === true);
    await workerWaitsForLock();
    await kill();
    await releaseLog();
  },
  async 'waiting for the answer'() {
    const request = catchRequest();
    await log(3);
    await request.came;
    await kill();
    request.answer();
  },
  async 'keeping a success'() {
    const request = catchRequest();
    await log(3);
    await request.came;
    const release = await holdProgress();
    request.answer();
    await workerWaitsForLock();
    await kill();
    await release();
  },
  async 'keeping a failure'() {
    const request = catchRequest(503);
    await log(3);
    await request.came;
    const release = await holdProgress();
    request.answer();
    await workerWaitsForLock();
    await kill();
    await release();
  },
  async 'done with the lane, before it is woken for its probe'() {
    const request = catchRequest(503);
    await log(3);
    await request.came;
    await redisCommand('CLIENT', 'PAUSE', '60000', 'WRITE');
    request.answer();
    await until(async () => (await isFailing()) && !(await findLane(database, lane))?.isHeld);
    await kill();
    await redisCommand('CLIENT', 'UNPAUSE');
  },
  async 'waiting for the answer to a probe'() {
    answer = () => 503;
    await log(3);
    await until(isFailing);
    const probe = catchRequest();
    await probe.came;
    await kill();
    probe.answer();
  },
  async 'waiting until a probe is due, when Redis forgets all wake-ups'() {
    answer = () => 503;
    await log(3);
    await until(isFailing);
    await kill();
    await redisCommand('FLUSHALL');
  },
};

async function allArrive(): Promise<void> {
  const isDone = async () => {
    const found = await findLane(database, lane);
    return found?.cursor === logged && found.lastSequence === logged;
  };
  const deadlineMs = performance.now() + 30_000;
  while (!(await isDone())) {
    if (performance.now() > deadlineMs)
      throw new Error(`not all arrived: ${JSON.stringify(await findLane(database, lane))}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function expectAllInOrder(): void {
  const succeeded = new Map<string, number>();
  for (const { eventId, status, deaths: deathsBefore } of arrivals) {
    const number = Number(eventId.slice(1));
    // None overtakes: all before it were answered with a 200.
    expect(succeeded.size).toBeGreaterThanOrEqual(number - 1);
    const before = succeeded.get(eventId);
    if (before !== undefined)
      expect(deathsBefore, `${eventId} came again without a death`).toBeGreaterThan(before);
    if (status === 200) succeeded.set(eventId, deathsBefore);
  }
  expect(succeeded.size).toBe(logged);
}

test.each(Object.keys(STEPS))(
  'a worker dies %s: nothing is lost, nothing overtakes',
  async (step) => {
    await STEPS[step]?.();
    answer = () => 200;
    await replace();
    await allArrive();
    expectAllInOrder();
  },
  60_000,
);

test('a worker lives on when Redis is flushed in the middle', async () => {
  const request = catchRequest();
  await log(10);
  await request.came;
  await redisCommand('FLUSHALL');
  request.answer();
  answer = () => 200;
  await allArrive();
  await log(10);
  await allArrive();
  expectAllInOrder();
}, 60_000);

const seed = Number(process.env['SLUICE_SEED'] ?? randomInt(2 ** 31));

test(`deaths at random steps, failures at random, seed ${seed}`, async () => {
  const random = mulberry32(seed);
  const names = Object.keys(STEPS);
  for (let round = 0; round < RANDOM_STEPS; round++) {
    await STEPS[names[Math.floor(random() * names.length)] as string]?.();
    answer = () => (random() < 0.3 ? 503 : 200);
    await replace();
    await log(Math.floor(random() * 20));
  }
  await allArrive();
  expectAllInOrder();
}, 120_000);

/** The same numbers for the same seed. */
function mulberry32(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
