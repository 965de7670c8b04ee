/**
 * Wake-ups of many lanes at once on Postgres.
 *
 * Each by itself would be a transaction.
 */
import type { Database, DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import { openTaskQueue, startTaskWorker } from '@sluice/platform/consumers/queue-tasks';
import { startTcpProxyTo, type TcpProxy } from '@sluice/database/testing/tcp-proxy';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ADD_MS_MAX } from '../support/broker-world.ts';

/** Thousands of jobs run before its end, each a few statements. */
const WAIT = { timeout: 60_000, interval: 10 };
/** 1,000 in statements of at most 200. */
const STATEMENTS_MAX = 5;

const lanes: LaneKey[] = Array.from({ length: 1_000 }, (_, place) => ({
  environmentId: 1,
  webhookId: place + 1,
}));

let database: Database;
let broker: BrokerOptions;
const producers: Producer[] = [];

async function open(databaseUrl = broker.databaseUrl): Promise<Producer> {
  const producer = await openProducer({ ...broker, databaseUrl }, ADD_MS_MAX);
  producers.push(producer);
  return producer;
}

/** Webhooks that a job waits for or runs for, and how many transactions wrote those jobs. */
async function readJobs(queue = 'webhooks') {
  const { rows } = await sql<{ woken: number[]; transactions: number }>`
    select coalesce(array_agg((data ->> 'webhookId')::int order by (data ->> 'webhookId')::int), '{}') as woken,
           count(distinct xmin::text)::int as transactions
      from bullmq.job where queue = ${queue}`.execute(database);
  return rows[0] as { woken: number[]; transactions: number };
}

const allWoken = lanes.map(({ webhookId }) => webhookId);

beforeEach(async () => {
  const created = await createTestDatabase();
  database = created.database;
  broker = {
    databaseUrl: created.url,
    prefix: 'none',
    shardCount: 1,
    logger: createLogger('test', 'silent'),
  };
});
afterEach(async () => {
  await Promise.all(producers.splice(0).map((producer) => producer.close()));
});

test('a thousand lanes are woken by eight statements, a job each, though 600 of them are named twice', async () => {
  const producer = await open();
  const twice = [...lanes.slice(0, 300), ...lanes, ...lanes.slice(700)];
  await Promise.all(twice.map((lane) => producer.wakeLane(lane)));
  const added = await readJobs();
  expect(added.woken).toEqual(allWoken);
  expect(added.transactions).toBeLessThanOrEqual(8);
});

test('a thousand that wait already cost five statements, and are still one job each', async () => {
  const producer = await open();
  await Promise.all(lanes.map((lane) => producer.wakeLane(lane)));
  const added = await readJobs();
  expect(added.transactions).toBeLessThanOrEqual(STATEMENTS_MAX);
  await Promise.all(lanes.map((lane) => producer.wakeLane(lane)));
  // A statement that finds its job there locks the row of its key, and the row names the transaction.
  const { rows } = await sql<{ locking: number; keys: number }>`
    select count(distinct xmax::text)::int as locking, count(*)::int as keys
      from bullmq.dedup where queue = 'webhooks' and xmax <> 0`.execute(database);
  expect(rows[0]?.keys).toBe(lanes.length);
  expect(rows[0]?.locking).toBeLessThanOrEqual(STATEMENTS_MAX);
  expect(await readJobs()).toEqual(added);
});

test('tasks go the same way, and each runs once', async () => {
  const kind = { queue: 'things', keyOf: ({ webhookId }: LaneKey) => `thing-${webhookId}` };
  const tasks = await openTaskQueue<LaneKey>(broker, kind);
  await Promise.all(lanes.map((lane) => tasks.wake(lane)));
  const added = await readJobs('things');
  expect(added.woken).toEqual(allWoken);
  expect(added.transactions).toBeLessThanOrEqual(STATEMENTS_MAX);
  const done: number[] = [];
  const worker = startTaskWorker(
    broker,
    kind,
    64,
    async ({ webhookId }) => void done.push(webhookId),
  );
  await vi.waitFor(async () => expect((await readJobs('things')).woken).toEqual([]), WAIT);
  expect(done.toSorted((one, other) => one - other)).toEqual(allWoken);
  await worker.close();
  await tasks.close();
});

test('two processes that wake the same lanes in opposite order, while those run, never wait in a circle', async () => {
  const [one, other] = [await open(), await open()];
  const runs = new Map<number, number>();
  const consumers = await startConsumers(broker, {
    processCommitBatch: () => Promise.resolve({ outcome: 'done' }),
    wakeLane: ({ webhookId }) => {
      runs.set(webhookId, (runs.get(webhookId) ?? 0) + 1);
      return Promise.resolve({ outcome: 'done' });
    },
    laneConcurrency: 16,
    now: Date.now,
  });
  const backwards = lanes.toReversed();
  for (let round = 0; round < 5; round++) {
    await Promise.all([
      ...lanes.map((lane) => one.wakeLane(lane)),
      ...backwards.map((lane) => other.wakeLane(lane)),
    ]);
  }
  await vi.waitFor(async () => expect((await readJobs()).woken).toEqual([]), WAIT);
  expect(runs.size).toBe(lanes.length);
  await consumers.close();
  const { rows } = await sql<{ deadlocks: number }>`
    select deadlocks::int as deadlocks from pg_stat_database where datname = current_database()`.execute(
    database,
  );
  expect(rows).toEqual([{ deadlocks: 0 }]);
});

test('after a connection is cut, the confirmed wake-ups are stored, and the failed ones can be repeated', async () => {
  const proxy = await startTcpProxyTo(broker.databaseUrl);
  const producer = await open(proxy.url);
  const told = new Set<number>();
  const failed: LaneKey[] = [];
  const wakeAll = (group: readonly LaneKey[]) =>
    Promise.all(
      group.map((lane) =>
        producer.wakeLane(lane).then(
          () => void told.add(lane.webhookId),
          () => void failed.push(lane),
        ),
      ),
    );
  await database
    .transaction()
    .execute((transaction) => cutInTheMiddle(transaction, proxy, { wakeAll, told }));
  const there = new Set((await readJobs()).woken);
  expect(told.size).toBeGreaterThan(0);
  expect(failed.length).toBeGreaterThan(0);
  expect([...told].filter((webhookId) => !there.has(webhookId))).toEqual([]);

  proxy.restore();
  // As the reconcile loop does, until it works.
  await vi.waitFor(async () => {
    await wakeAll(failed.splice(0));
    expect(failed).toEqual([]);
  }, WAIT);
  expect((await readJobs()).woken).toEqual(allWoken);
  await proxy.close();
});

/** One statement waits for a lane's key that this transaction holds; the others go through, then all is cut. */
async function cutInTheMiddle(
  transaction: DatabaseOrTransaction,
  proxy: TcpProxy,
  {
    wakeAll,
    told,
  }: { wakeAll: (group: readonly LaneKey[]) => Promise<unknown>; told: Set<number> },
): Promise<void> {
  const { rows: holders } = await sql<{ pid: number }>`
    select pg_backend_pid() as pid, pg_advisory_xact_lock(hashtext('bullmq:dedup:webhooks:lane-1-500'))`.execute(
    transaction,
  );
  const holder = holders[0]?.pid ?? NaN;
  const woken = wakeAll(lanes);
  await vi.waitFor(async () => {
    // Not by the transaction: it sees the other sessions as they were at its first look.
    const { rows } = await sql`
      select pid from pg_stat_activity
       where datname = current_database() and pg_blocking_pids(pid) @> array[${holder}::int]`.execute(
      database,
    );
    expect(rows).toHaveLength(1);
    expect(told.size).toBe(800);
  }, WAIT);
  proxy.cut();
  await woken;
}
