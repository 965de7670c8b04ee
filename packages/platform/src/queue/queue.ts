/**
 * Broker: BullMQ on Redis or on Postgres, by one setting, with the same code above it (step 7).
 *
 * A job of `events-<shard>` is one commit batch, in the order of the commits. A job of `purchases` is one wake-up of a
 * purchase workflow, or of the payment provider's events. A job of `webhooks` is one wake-up of a lane, at most one waiting
 * a lane. A job of `webhook-ranges` is one wake-up of a range of lanes (`domain/src/wake-ups/lane-ranges.ts`). Losing a
 * wake-up has no effect, because the work is found in Postgres and woken again. BullMQ is at least once: a stalled job
 * runs again on another worker. The commit batch's claim (`database/src/events/commit-batches.ts`) and the lane's lease
 * make effects once. Tasks by the clock (exports, days of usage) have queues of their own: `queue-tasks.ts`.
 *
 * This file adds, by `queue-adding.ts` and `queue-wake-ups.ts`; `queue-consumers.ts` takes, by `queue-taking.ts`. Only
 * files of the queue import `bullmq`. Before: `intake/src/commit/batch-committer.ts`. After: `queue-consumers.ts`.
 */
import { FILL_PERCENT_MAX } from '@sluice/domain/operations/broker-fill';
import { AppError } from '@sluice/domain/values/errors';
import { Cluster } from 'ioredis';
import type pg from 'pg';
import { connectionWarnings } from '../redis/connection-warnings.ts';
import type { BrokerOptions } from './broker-options.ts';
import { AddingQueues, type AddingQueue } from './queue-adding.ts';
import {
  addingByScript,
  addingByShard,
  addInTransaction,
  sizeBytesOf,
  type AddCommitBatches,
  type ShardCommitBatch,
} from './queue-commit-batches.ts';
import {
  postgresHeads,
  postgresQueued,
  redisHeads,
  redisQueued,
  type ListQueued,
  type QueueHead,
} from './queue-heads.ts';
import { openQueuePool, readPostgresDurability } from './queue-pool.ts';
import { ANYBODY, NOT_NEW, type AddOutcome, type FlushOwner } from './hold-back.ts';
import { moveStaged, type FlushStage } from './staged-flushes.ts';
import { postgresStage } from './staged-on-postgres.ts';
import { redisStage } from './staged-on-redis.ts';
import {
  createProducerWakeUps,
  LANE_QUEUE_NAME,
  PURCHASE_QUEUE_NAME,
  RANGE_QUEUE_NAME,
  type WakeUps,
} from './queue-wake-ups.ts';
import { DurabilityGate, undurable } from '../redis/durability-gate.ts';
import { readRedisDurability, type Durability } from '../redis/redis-durability.ts';
import { ReplicaConfirmation } from '../redis/replica-confirmation.ts';
import { refusalOf } from '../redis/redis-refusal.ts';
import { RedisCapacity, type BrokerFill } from '../redis/redis-capacity.ts';
import { defaultReplicasMin, parseRedisUrl } from '../settings/redis-url.ts';
import type { RedisClient } from '../redis/redis-client.ts';
import { connectProducer } from '../redis/redis.ts';

export { migrateQueues } from './queue-tables.ts';
export type { ShardCommitBatch } from './queue-commit-batches.ts';
export {
  LANE_QUEUE_NAME,
  PROVIDER_EVENTS_JOB,
  PURCHASE_QUEUE_NAME,
  RANGE_QUEUE_NAME,
  type PurchaseKey,
} from './queue-wake-ups.ts';

/** Replicas that an acknowledgement waits for, if a replica may take a master's place. */
export interface ReplicaOptions {
  /**
   * Replicas that must have a commit batch before it counts as confirmed; by default 1 with Sentinels or a Cluster, else 0.
   */
  readonly replicasMin?: number | undefined;
  /** Time that a Cluster's master must have been without them before its own confirmation is enough. 15 s by default. */
  readonly graceMs?: number | undefined;
}

/** Conditions for adding commit batches. */
export interface AddingOptions extends ReplicaOptions {
  /** No batch is added to a broker whose settings can lose confirmed writes. */
  readonly requiresDurability?: boolean;
  /** Percent of its `maxmemory` at which Redis gets no more commit batches; 90 by default. */
  readonly fillPercentMax?: number | undefined;
}

export interface Producer extends WakeUps {
  readonly kind: 'redis' | 'postgres';
  /** False on a Redis Cluster. */
  readonly isAtomicAcrossShards: boolean;
  /**
   * Adds commit batches atomically, a shard's in the order given; on a Redis Cluster atomically for each shard. Resolves
   * once the broker has them all. Each commit batch id is added once, so the call may be repeated when the outcome is
   * unknown.
   *
   * @throws AppError BROKER_UNAVAILABLE when not all were confirmed.
   * @throws AppError BROKER_FULL before sending, because the rest of the broker's memory is for the workers.
   * @throws AppError BROKER_UNDURABLE before sending, because the broker's settings could lose them.
   */
  addCommitBatches(commitBatches: readonly ShardCommitBatch[]): Promise<void>;
  /**
   * As `addCommitBatches`, for calls that are answered next: adds no batch if earlier calls may be on the disk of an
   * intake, or wait in `stage`.
   *
   * @param intakeId - of its report: adds no batch either if the broker does not know the intake.
   */
  addFlush(commitBatches: readonly ShardCommitBatch[], intakeId?: string): Promise<AddOutcome>;
  /** Flushes that must wait for earlier ones, and the state of the intakes' disks. */
  readonly stage: FlushStage;
  /** Moves staged flushes into the queues, as many as may be moved. @returns how many. */
  moveStaged(moverId: string): Promise<number>;
  /** Commit batches waiting or running, a number a shard. */
  commitBatchCounts(): Promise<number[]>;
  /** The added commit batches that are not applied. */
  readonly listQueued: ListQueued;
  /** Head of each shard's queue. */
  shardHeads(): Promise<readonly QueueHead[]>;
  /** Commit batches that ended badly, all shards: run again by the workers. */
  failedCount(): Promise<number>;
  /** Time at which the oldest waiting or running commit batch was added, Unix milliseconds; undefined without one. */
  oldestCommitBatchAtMs(): Promise<number | undefined>;
  /**
   * @throws Error with the failure of the connection; AppError BROKER_LOGIN_REFUSED if Redis does not take the password.
   */
  durability(): Promise<Durability>;
  /** Why a broker of this durability gets no commit batches; undefined if it gets them. */
  durabilityRefusal(found: Durability): AppError | undefined;
  /** How much of its memory the broker uses; always 0 on Postgres, which has no such bound. */
  fill(): Promise<BrokerFill>;
  close(): Promise<void>;
}

export const shardQueueName = (shard: number): string => `events-${shard}`;
const REPLICA_GRACE_MS = 15_000;
/** Redis Cluster keeps a queue's keys together only under a hash tag; each queue has its own, so queues spread. */
export const redisPrefix = (prefix: string, queueName: string): string =>
  `{${prefix}-${queueName}}`;

/** The log of pending batches (`pending-log.ts`). */
export const pendingLogKey = (prefix: string): string => `{${prefix}-events}:pending`;

/** Opens the adding side. A broker that is away makes each add fail, not the start. */
export async function openProducer(
  options: BrokerOptions,
  addTimeoutMs = 5_000,
  addingOptions: AddingOptions = {},
): Promise<Producer> {
  const redis = options.redisUrl
    ? await connectProducer(options.redisUrl, addTimeoutMs)
    : undefined;
  const warnOfConnection = connectionWarnings(options.logger);
  redis?.on('error', (error) => warnOfConnection(error));
  const pool = redis
    ? undefined
    : openQueuePool(options, { listenerCount: 0, timeoutMs: addTimeoutMs });
  const replicasMin = replicasMinOf(options, addingOptions);
  const replicas =
    redis && replicasMin > 0
      ? new ReplicaConfirmation({
          redis,
          replicasMin,
          graceMs: addingOptions.graceMs ?? REPLICA_GRACE_MS,
          timeoutMs: addTimeoutMs / 2,
          monotonicNow: () => performance.now(),
          logger: options.logger,
        })
      : undefined;
  const gate = redis && addingOptions.requiresDurability ? new DurabilityGate(redis) : undefined;
  const monotonicNow = () => performance.now();
  const { logger } = options;
  const fillPercentMax = addingOptions.fillPercentMax ?? FILL_PERCENT_MAX;
  const capacity = redis && new RedisCapacity({ redis, fillPercentMax, monotonicNow, logger });
  const expectReady = async (): Promise<void> => {
    if (gate && !gate.isOpen) await gate.open();
    if (capacity?.isFull) await capacity.expectCapacity();
  };

  const shards = Array.from({ length: options.shardCount }, (_, shard) => shardQueueName(shard));
  const queues = new AddingQueues(
    { redis, pool, prefixOf: (name) => redisPrefix(options.prefix, name), warnOfConnection },
    [...shards, LANE_QUEUE_NAME, RANGE_QUEUE_NAME, PURCHASE_QUEUE_NAME],
  );
  const shardQueues = () => shards.map((name) => queues.get(name));
  const keyOf = (name: string, part: string) =>
    `${redisPrefix(options.prefix, name)}:${name}:${part}`;
  const readHeads = redis ? redisHeads(redis, keyOf) : postgresHeads(pool as pg.Pool);
  const listQueued = redis
    ? redisQueued(redis, (shard, id) => keyOf(shardQueueName(shard), id))
    : postgresQueued(pool as pg.Pool);

  const addAll = addingTo(redis, options.prefix);
  const confirm = <Result>(work: () => Promise<Result>): Promise<Result> =>
    replicas ? replicas.confirm(work) : work();
  const stage = redis ? redisStage(redis, options.prefix, confirm) : postgresStage(pool as pg.Pool);
  const add = async (
    commitBatches: readonly ShardCommitBatch[],
    owner: FlushOwner,
  ): Promise<AddOutcome> => {
    try {
      return await queues.use(() => confirm(() => addAll(shardQueues(), commitBatches, owner)));
    } catch (error) {
      capacity?.noticeFailure();
      throw unconfirmed(redis, error);
    }
  };
  const addWithin = async (
    commitBatches: readonly ShardCommitBatch[],
    owner: FlushOwner,
  ): Promise<AddOutcome> => {
    await expectReady();
    const outcome = await add(commitBatches, owner);
    if (outcome === 'added') capacity?.noticeAdded(sizeBytesOf(commitBatches));
    return outcome;
  };

  return {
    kind: redis ? 'redis' : 'postgres',
    isAtomicAcrossShards: !(redis instanceof Cluster),

    async addCommitBatches(commitBatches) {
      await addWithin(commitBatches, NOT_NEW);
    },

    addFlush: (commitBatches, intakeId = ANYBODY) => addWithin(commitBatches, intakeId),

    stage: {
      ...stage,
      async put(flushes, intakeId) {
        await expectReady();
        try {
          await stage.put(flushes, intakeId);
        } catch (error) {
          capacity?.noticeFailure();
          throw unconfirmed(redis, error);
        }
      },
    },

    // The broker has their bytes already, so a full one must not keep them.
    moveStaged: (moverId) =>
      moveStaged(stage, async (commitBatches) => void (await add(commitBatches, NOT_NEW)), moverId),

    ...createProducerWakeUps(queues, pool !== undefined),

    commitBatchCounts: () => queues.use(() => Promise.all(shardQueues().map(countUnfinished))),

    listQueued,

    shardHeads: () => readHeads(shards),

    async failedCount() {
      const counts = await Promise.all(shardQueues().map((queue) => queue.getJobCounts('failed')));
      return counts.reduce((sum, { failed = 0 }) => sum + failed, 0);
    },

    async oldestCommitBatchAtMs() {
      const oldest = await Promise.all(
        shardQueues().map((queue) => queue.getJobs(['active', 'wait'], 0, 0, true)),
      );
      const addedAtMs = oldest.flat().map((job) => job.timestamp);
      return addedAtMs.length === 0 ? undefined : Math.min(...addedAtMs);
    },

    async durability() {
      if (!redis) return readPostgresDurability(pool as pg.Pool);
      try {
        return await readRedisDurability(redis, replicasMin);
      } catch (error) {
        throw refusalOf(redis, error);
      }
    },

    durabilityRefusal: (found) =>
      addingOptions.requiresDurability ? undurable(redis ? 'redis' : 'postgres', found) : undefined,

    fill: () => capacity?.look() ?? Promise.resolve({ ratio: 0, isFull: false }),

    async close() {
      await queues.close();
      await replicas?.stop();
      redis?.disconnect();
      await pool?.end();
    },
  };
}

const unconfirmed = (redis: RedisClient | undefined, error: unknown): AppError =>
  new AppError(
    'BROKER_UNAVAILABLE',
    'the broker did not confirm the commit batches; check that it runs and answers',
    {
      cause: redis ? refusalOf(redis, error) : error,
    },
  );

function addingTo(redis: RedisClient | undefined, prefix: string): AddCommitBatches {
  if (redis === undefined) return addInTransaction;
  const adding = redis instanceof Cluster ? addingByShard : addingByScript;
  return adding(redis, pendingLogKey(prefix), prefix);
}

function replicasMinOf({ redisUrl }: BrokerOptions, { replicasMin }: ReplicaOptions): number {
  return replicasMin ?? (redisUrl ? defaultReplicasMin(parseRedisUrl(redisUrl)) : 0);
}

async function countUnfinished(queue: AddingQueue): Promise<number> {
  const counts = await queue.getJobCounts('wait', 'active', 'delayed');
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
