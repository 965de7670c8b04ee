/**
 * The BullMQ workers of a process: one for each shard, some for the lanes, one for ranges of lanes, and one for purchases
 * if it takes any.
 *
 * Each is a queue that is watched (`watched-queue.ts`). They share the time that a job may be silent, and the log
 * lines.
 *
 * Before: `queue-consumers.ts`, which closes them. After: `queue-processors.ts`.
 */
import type { WorkerOptions } from 'bullmq';
import type { Logger } from '../process/logger.ts';
import type { FailingTries } from '../process/failing-tries.ts';
import type { PendingBatches } from './pending-batches.ts';
import {
  laneProcess,
  purchaseProcess,
  rangeProcess,
  shardProcess,
  type Processors,
} from './queue-processors.ts';
import type { TakingSide } from './queue-taking.ts';
import { LANE_QUEUE_NAME, PURCHASE_QUEUE_NAME, RANGE_QUEUE_NAME } from '../queue/queue.ts';
import { WatchedQueue, type ProcessJob } from './watched-queue.ts';

/** A stalled commit batch is never given up: BullMQ's default of 1 would fail it for good. */
const STALLED_COUNT_MAX = 1_000_000;
/**
 * BullMQ workers that take lanes, on Redis. One fetches a job a round trip until its places are full, before
 * it begins the first: with 1,000 lanes woken a second the median lane waited 147 ms and more, and 47 ms with
 * eight, each with an eighth of the places (`npm run bench -- fairness`). On Postgres each would hold a
 * connection, and each sign of a job would have all of them ask for it.
 */
const LANE_TAKERS = 8;
/**
 * Ranges of lanes that a process searches at a time, or holds while it has no capacity for their lanes. Others stay in
 * the queue for any process.
 */
const RANGES_AT_A_TIME = 4;

export interface QueueWorkersOptions {
  readonly side: TakingSide;
  readonly processors: Processors;
  /** Of all shards. */
  readonly pending: PendingBatches;
  readonly failing: FailingTries;
  readonly stalledAfterMs: number;
  /** A try that takes so long counts as hung. */
  readonly hungAfterMs: number;
  /** No job is taken from then on. */
  readonly closing: AbortSignal;
  /** A job has failed. */
  readonly onFailed: () => void;
  readonly warnOfConnection: (error: Error, queue: string) => void;
  readonly logger: Logger;
}

/** Opens them all; they begin to take at once. Each is the caller's to close. */
export function openWorkers(
  shardNames: readonly string[],
  options: QueueWorkersOptions,
): readonly WatchedQueue[] {
  const { side, processors, pending, failing, closing, logger } = options;
  const { purchases, laneConcurrency, wakeRange } = processors;
  const shards = shardNames.map((name) => {
    const shard = { waiting: side.waitingIn(name), pending, failing, closing, logger };
    const process = shardProcess(processors, shard);
    return openOne(options, name, 1, process, side.openShardWorker);
  });
  const isPlaceWanted = (): boolean => closing.aborted || lanes.every((queue) => !queue.isIdle);
  const wakeLane = laneProcess(processors, isPlaceWanted, options.hungAfterMs);
  const takerCount = Math.min(side.kind === 'redis' ? LANE_TAKERS : 1, laneConcurrency);
  const lanes = Array.from({ length: takerCount }, (_, taker) => {
    const places = Math.ceil((laneConcurrency - taker) / takerCount);
    return openOne(options, LANE_QUEUE_NAME, places, wakeLane);
  });
  const ranges = wakeRange
    ? [openOne(options, RANGE_QUEUE_NAME, RANGES_AT_A_TIME, rangeProcess(wakeRange))]
    : [];
  if (!purchases) return [...shards, ...lanes, ...ranges];
  const { concurrency } = purchases;
  const process = purchaseProcess(purchases);
  return [
    ...shards,
    ...lanes,
    ...ranges,
    openOne(options, PURCHASE_QUEUE_NAME, concurrency, process),
  ];
}

function openOne(
  options: QueueWorkersOptions,
  name: string,
  concurrency: number,
  process: ProcessJob,
  openWorker = options.side.openWorker,
): WatchedQueue {
  const { side, processors, stalledAfterMs, onFailed, warnOfConnection, logger } = options;
  return new WatchedQueue({
    name,
    concurrency,
    process,
    now: processors.now,
    logger,
    endWait: side.endWait,
    openWorker(processor) {
      const settings = workerSettings(concurrency, stalledAfterMs, side.waitMsMax);
      const worker = openWorker(name, processor, settings);
      worker.on('error', (error) => warnOfConnection(error, name));
      worker.on('failed', (job, error) => {
        onFailed();
        logger.error(
          { error, queue: name, jobId: job?.id },
          'a job failed; error has the reason, and its work is tried again, at the latest by a reconciliation loop',
        );
      });
      return worker;
    },
  });
}

/** BullMQ's options of a worker. Its times are parts of the stall time. */
const workerSettings = (
  concurrency: number,
  stalledAfterMs: number,
  waitMsMax: number,
): Omit<WorkerOptions, 'connection' | 'prefix'> => ({
  concurrency,
  autorun: false,
  // Of the stall time: two thirds until the lock of a dead process ends, a sixth until a look finds it.
  lockDuration: Math.round((stalledAfterMs * 2) / 3),
  stalledInterval: Math.round(stalledAfterMs / 6),
  maxStalledCount: STALLED_COUNT_MAX,
  skipStalledCheck: true,
  // BullMQ's 15 s would be a shard's rest after each broken statement.
  runRetryDelay: Math.round(stalledAfterMs / 15),
  // How long an idle worker waits for the sign of a new job before it looks for itself: nine commands.
  // If the sign got lost, the watch nudges or replaces the worker long before.
  drainDelay: Math.min(stalledAfterMs * 16, waitMsMax) / 1_000,
});
