/**
 * Memory of queued events and blocked deliveries on both brokers. Events are 1,000 or 1 a commit batch, and
 * a failing lane blocks the deliveries. They are compared with one job for each, with the same bodies.
 */
import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/platform/process/logger';
import { BULLMQ_SCHEMA } from '@sluice/platform/queue/queue-tables';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { Queue } from 'bullmq';
import { sql } from 'kysely';
import { runMigrations } from 'graphile-worker';
import { redisBytesOf } from './backlog.ts';
import type { DeliveryWorld } from './delivery-world.ts';
import { BLOCKED_BYTES, makeFailingLane } from './failing-lane.ts';
import { addEventJobs } from './graphile-jobs.ts';
import { bytesOfOneMore, redisBytes, tableBytes } from './memory-slope.ts';
import { addEvents, EVENT_DATA, trackEvent } from './queued-events.ts';

const SHARD_COUNT = 4;
const PERSON_COUNT = 1_000;
const FORMS = [
  ['full envelopes', 1_000],
  ['one an envelope', 1],
] as const;
/** Different in each job, because Postgres compresses large values and would shrink equal ones. */
const dataOf = () => ({ ...EVENT_DATA, order: randomUUID() });
const JOBS_A_CALL = 1_000;
const BLOCKED = { body: 'x'.repeat(BLOCKED_BYTES) };

type Bytes = Record<string, number>;

export async function measureQueued(
  world: DeliveryWorld,
  sizes: readonly number[],
): Promise<Bytes> {
  const { database, redis } = world;
  const bytes: Bytes = {};
  const measure = async (name: string, bytesAt: (size: number) => Promise<number>) => {
    bytes[name] = await bytesOfOneMore(name, sizes, bytesAt);
  };
  for (const broker of ['Redis', 'Postgres'] as const) {
    const producer = await openProducer({
      databaseUrl: world.databaseUrl,
      redisUrl: broker === 'Redis' ? world.redisServer.url : undefined,
      prefix: 'memory',
      shardCount: SHARD_COUNT,
      logger: createLogger('bench', 'warn'),
    });
    try {
      for (const [form, operationsPerCommitBatch] of FORMS)
        await measure(`queued event, ${broker}, ${form}`, async (size) => {
          await emptyQueues(world, broker);
          await addAll(producer, size, operationsPerCommitBatch);
          return broker === 'Redis' ? redisBytes(redis) : tableBytes(database, BULLMQ_SCHEMA, ['']);
        });
    } finally {
      await producer.close();
    }
    await emptyQueues(world, broker);
  }
  await measure('queued event, Redis, bullmq job', (size) =>
    bytesOfBullmqJobs(world, size, (n) => trackEvent(`user-${n % PERSON_COUNT}`, dataOf())),
  );
  await measure('queued event, Postgres, graphile-worker job', (size) =>
    bytesOfGraphileJobs(world, size, trackEvent('user-1', dataOf())),
  );
  return bytes;
}

export async function measureBlocked(
  world: DeliveryWorld,
  sizes: readonly number[],
): Promise<Bytes> {
  const { database } = world;
  const bytes: Bytes = {};
  const measure = async (name: string, bytesAt: (size: number) => Promise<number>) => {
    bytes[name] = await bytesOfOneMore(name, sizes, bytesAt);
  };
  await measure('held-back delivery, Redis', async (size) =>
    redisBytesOf(world, await makeFailingLane(database, size)),
  );
  await measure('held-back delivery, Postgres', async (size) => {
    await makeFailingLane(database, size);
    return tableBytes(database, 'public', ['lanes', 'delivery_log', 'delivery_attempts']);
  });
  await measure('held-back delivery, Redis, bullmq job', (size) =>
    bytesOfBullmqJobs(world, size, () => BLOCKED),
  );
  await measure('held-back delivery, Postgres, graphile-worker job', (size) =>
    bytesOfGraphileJobs(world, size, BLOCKED),
  );
  return bytes;
}

async function addAll(
  producer: Producer,
  count: number,
  operationsPerCommitBatch: number,
): Promise<void> {
  await addEvents(producer, {
    count,
    personCount: PERSON_COUNT,
    shardCount: SHARD_COUNT,
    operationsPerCommitBatch,
    dataOf,
  });
  const queued = (await producer.commitBatchCounts()).reduce((sum, one) => sum + one, 0);
  if (queued < count / operationsPerCommitBatch)
    throw new Error(`${count} events were added, but ${queued} commit batches are queued`);
}

async function emptyQueues(
  { database, redis }: DeliveryWorld,
  broker: 'Redis' | 'Postgres',
): Promise<void> {
  if (broker === 'Redis') {
    await redis.flushall();
    return;
  }
  const { rows } = await sql<{ name: string }>`
    select relname::text as name from pg_class
     where relnamespace = ${BULLMQ_SCHEMA}::regnamespace and relkind = 'r'
       and relname not like '%migration%'`.execute(database);
  await sql`truncate ${sql.join(rows.map(({ name }) => sql.table(`${BULLMQ_SCHEMA}.${name}`)))} cascade`.execute(
    database,
  );
}

/** Delayed by a week, as held-back deliveries are; a waiting job takes as many bytes. */
async function bytesOfBullmqJobs(
  { redis, redisServer }: DeliveryWorld,
  count: number,
  bodyOf: (n: number) => object,
): Promise<number> {
  await redis.flushall();
  const queue = new Queue('jobs', { connection: { url: redisServer.url } });
  try {
    for (let from = 0; from < count; from += JOBS_A_CALL)
      await queue.addBulk(
        Array.from({ length: Math.min(JOBS_A_CALL, count - from) }, (_, n) => ({
          name: 'job',
          data: bodyOf(from + n),
          opts: { removeOnComplete: true, delay: 7 * 86_400_000 },
        })),
      );
    return await redisBytes(redis);
  } finally {
    await queue.close();
    await redis.flushall();
  }
}

async function bytesOfGraphileJobs(
  { database, databaseUrl }: DeliveryWorld,
  count: number,
  data: object,
): Promise<number> {
  await sql`drop schema if exists graphile_worker cascade`.execute(database);
  await runMigrations({ connectionString: databaseUrl });
  await addEventJobs(database, count, { data, isLater: true });
  return tableBytes(database, 'graphile_worker', ['_private_jobs']);
}
