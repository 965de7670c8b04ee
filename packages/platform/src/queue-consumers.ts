/**
 * The taking side of the broker: BullMQ workers for every shard and for the lanes.
 *
 * Each shard has global concurrency 1, so its envelopes run one at a time and in order, whichever
 * process takes them. A job that cannot be done yet (Postgres away) is tried again *in place*:
 * BullMQ's own retry moves it to "delayed", where the next envelope would overtake it.
 *
 * Before: `queue.ts`. After: `worker/src/process-envelope.ts`, `worker/src/deliver-webhook.ts`.
 */
import type { Queue } from 'bullmq';
import { connectionWarnings } from './connection-warnings.ts';
import { openTakingSide } from './queue-taking.ts';
import { QueueWatch, type WatchReport } from './queue-watch.ts';
import {
  LANE_QUEUE_NAME,
  PURCHASE_QUEUE_NAME,
  shardQueueName,
  type BrokerOptions,
  type LaneKey,
  type RunKey,
  VENDOR_EVENTS_JOB,
} from './queue.ts';
import { repeat } from './repeat.ts';
import { ShardBehind } from './queue-behind.ts';
import {
  retryFailed,
  runShardJob,
  type JobOutcome,
  type ProcessEnvelope,
} from './queue-shard-job.ts';
import { WatchedQueue, type ProcessJob } from './watched-queue.ts';
import { within } from './within.ts';

const STALLED_AFTER_MS = 15_000;
const HUNG_AFTER_MS = 60_000;
/** How often a lane's try begins anew in the time after which it would count as hung. */
const BEGINS_A_TRY = 10;
/** A stalled envelope is never given up: BullMQ's default of 1 would fail it for good. */
const STALLED_COUNT_MAX = 1_000_000;
const LOOK_INTERVAL_MS_MAX = 1_000;
const STATEMENT_DEADLINE_MS_MIN = 5_000;
const LEAVE_DEADLINE_MS = 3_000;
/**
 * BullMQ workers that take lanes, on Redis. One fetches a job a round trip until its places are full, before
 * it begins the first: with 1,000 lanes woken a second the middle one waited 147 ms and more, and 47 ms with
 * eight, each with an eighth of the places (`npm run bench -- fairness`). On Postgres each would hold a
 * connection, and each sign of a job would have all of them ask for it.
 */
const LANE_TAKERS = 8;
const FAILED_RETRY_INTERVAL_MS = 10_000;
/** Where no job has failed here: they are looked for each sixth time, for those of processes that are gone. */
const QUIET_RETRY_ROUNDS = 6;

export interface Processors {
  /**
   * @param readBehind - the envelopes that wait behind it: the processor may do the first of them too.
   */
  readonly processEnvelope: ProcessEnvelope;
  /**
   * Called for one wake-up a lane at a time in this process; `retry` is a no-op, the lane is swept later.
   *
   * @param isPlaceWanted - true while others may wait for its place among `laneConcurrency`, and once
   * no more are taken. Who asks does not hang.
   */
  readonly wakeLane: (lane: LaneKey, isPlaceWanted: () => boolean) => Promise<JobOutcome>;
  /** Absent: this process takes no purchases. */
  readonly purchases?: PurchaseProcessors;
  /** Lanes drained at the same time by this process. */
  readonly laneConcurrency: number;
  readonly now: () => number;
  /** One try of a job has not ended for so long; it cannot be ended from outside. */
  readonly onHung?: (queue: string, jobId: string) => void;
}

export interface ConsumerOptions extends BrokerOptions {
  /** A try that takes so long counts as hung. 60 s unless told. */
  readonly hungAfterMs?: number;
  /** How often envelopes that ended badly are looked for. 10 s unless told. */
  readonly failedRetryIntervalMs?: number;
}

/** What these leave undone is found in Postgres and swept later. */
export interface PurchaseProcessors {
  readonly advanceRun: (run: RunKey) => Promise<void>;
  readonly settleVendorEvents: () => Promise<void>;
  /** Purchases worked on at the same time by this process. */
  readonly concurrency: number;
}

export interface Consumers {
  /** What the watch over the queues has found. */
  report(): WatchReport;
  /** Takes no new job, waits for those in hand. One that waits to be tried again goes back to the head of its queue. May be called twice. */
  close(): Promise<void>;
}

/** Starts taking jobs of every shard and of the lanes. Sets each shard's global concurrency to 1 first. */
export async function startConsumers(
  options: ConsumerOptions,
  processors: Processors,
): Promise<Consumers> {
  const { logger, stalledAfterMs = STALLED_AFTER_MS } = options;
  const warnOfConnection = connectionWarnings(logger);
  const side = openTakingSide(
    options,
    options.shardCount + 2,
    warnOfConnection,
    // A statement that a broken network swallowed must end before the stall time does.
    Math.max(STATEMENT_DEADLINE_MS_MIN, Math.round(stalledAfterMs / 2)),
  );
  const isRedis = side.kind === 'redis';
  const closing = new AbortController();
  let roundsToRetry = 0;

  const openQueue = async (name: string): Promise<Queue> => {
    const queue = side.openQueue(name);
    queue.on('error', (error) => warnOfConnection(error, name));
    await goOneAtATime(queue);
    return queue;
  };

  const openWatched = (
    name: string,
    concurrency: number,
    process: ProcessJob,
    openWorker = side.openWorker,
  ): WatchedQueue =>
    new WatchedQueue({
      name,
      concurrency,
      process,
      now: processors.now,
      logger,
      endWait: side.endWait,
      openWorker(processor) {
        const worker = openWorker(name, processor, {
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
          // Where the sign got lost, the watch nudges or replaces the worker long before.
          drainDelay: Math.min(stalledAfterMs * 16, side.waitMsMax) / 1_000,
        });
        worker.on('error', (error) => warnOfConnection(error, name));
        worker.on('failed', (job, error) => {
          roundsToRetry = 0;
          logger.error({ error, queue: name, jobId: job?.id }, 'job failed');
        });
        return worker;
      },
    });

  const { processEnvelope } = processors;
  const shardProcessor = (name: string): ProcessJob => {
    const waiting = side.waitingIn(name);
    const behind = new ShardBehind({ waiting, now: processors.now, logger });
    const shard = { behind, processEnvelope, closing: closing.signal, logger };
    return (job, token, trying) =>
      runShardJob(shard, job, token, trying).finally(() => behind.end());
  };

  const isPlaceWanted = (): boolean =>
    closing.signal.aborted || laneQueues.every((queue) => !queue.isIdle);
  const hungAfterMs = options.hungAfterMs ?? HUNG_AFTER_MS;
  const wakeLane: ProcessJob = async (job, _, trying) => {
    let begunAtMs = processors.now();
    trying.begin();
    await processors.wakeLane(job.data as LaneKey, () => {
      // A thousand lanes ask, each as often as it sends.
      if (processors.now() - begunAtMs >= hungAfterMs / BEGINS_A_TRY) {
        begunAtMs = processors.now();
        trying.begin();
      }
      return isPlaceWanted();
    });
  };

  const buying = processors.purchases;
  // Each call of the vendor has a deadline of its own, so none of these counts as hung.
  const buyOrSettle: ProcessJob = async (job) => {
    await (job.name === VENDOR_EVENTS_JOB
      ? buying?.settleVendorEvents()
      : buying?.advanceRun(job.data as RunKey));
  };

  const names = Array.from({ length: options.shardCount }, (_, shard) => shardQueueName(shard));
  const shardQueues = await Promise.all(names.map(openQueue));
  const { laneConcurrency } = processors;
  const takerCount = Math.min(isRedis ? LANE_TAKERS : 1, laneConcurrency);
  const laneQueues = Array.from({ length: takerCount }, (_, taker) =>
    openWatched(LANE_QUEUE_NAME, Math.ceil((laneConcurrency - taker) / takerCount), wakeLane),
  );
  const queues = [
    ...names.map((name) => openWatched(name, 1, shardProcessor(name), side.openShardWorker)),
    ...laneQueues,
    ...(buying ? [openWatched(PURCHASE_QUEUE_NAME, buying.concurrency, buyOrSettle)] : []),
  ];

  const watch = new QueueWatch({
    queues,
    readHeads: side.readHeads,
    stalledAfterMs,
    // As long as a lock: whoever died in the meantime is found no later than by looks each period. One
    // statement asks for all heads on Postgres, and each worker that waits would have to ask for its own.
    seldomAfterMs: isRedis ? (stalledAfterMs * 2) / 3 : stalledAfterMs / 3,
    hungAfterMs,
    now: processors.now,
    reconnect: () => side.reconnect(),
    onHung: (queue, jobId) => processors.onHung?.(queue, jobId),
    logger,
  });
  side.onClosed(() => watch.rouse());
  side.onReady(() => {
    Promise.all(shardQueues.map(goOneAtATime)).catch((error: Error) => warnOfConnection(error));
  });
  const looks = repeat(
    'look at the queues',
    Math.min(LOOK_INTERVAL_MS_MAX, stalledAfterMs / 15),
    logger,
    () => watch.look(),
  );
  const retries = repeat(
    'run failed envelopes again',
    options.failedRetryIntervalMs ?? FAILED_RETRY_INTERVAL_MS,
    logger,
    async () => {
      if (roundsToRetry-- > 0) return;
      roundsToRetry = QUIET_RETRY_ROUNDS;
      await within(stalledAfterMs, Promise.all(shardQueues.map(retryFailed))).catch((error) => {
        roundsToRetry = 0;
        throw error;
      });
    },
  );

  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    closing.abort();
    const closes = Promise.all([
      looks.stop(),
      retries.stop(),
      ...queues.map((queue) => queue.close()),
    ]);
    await Promise.all(queues.map((queue) => queue.emptyHanded()));
    // What is left is to tell the broker. BullMQ would wait for one that is away until it is back.
    await within(LEAVE_DEADLINE_MS, closes).catch(() => {
      logger.warn(
        {},
        'the broker does not hear that its workers leave; it finds out by their locks',
      );
    });
    side.leave();
    await within(LEAVE_DEADLINE_MS, closes).catch((error: unknown) => {
      logger.warn({ error }, 'a worker did not end');
    });
    await Promise.all(shardQueues.map((queue) => queue.close()));
    // A connection that a broken worker took along is not given back; it ends with the process.
    await within(LEAVE_DEADLINE_MS, side.close()).catch(() => undefined);
  };
  return { report: () => watch.report(), close: () => (closed ??= close()) };
}

/** Kept by the broker. It is read first: a Redis whose memory is full takes no setting, and the start must not end there. */
async function goOneAtATime(queue: Queue): Promise<void> {
  if ((await queue.getGlobalConcurrency()) !== 1) await queue.setGlobalConcurrency(1);
}
