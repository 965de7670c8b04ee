/**
 * The taking side of the broker: BullMQ workers for every shard and for the lanes.
 *
 * Each shard has global concurrency 1, so its envelopes run one at a time and in order, whichever
 * process takes them. A job that cannot be done yet (Postgres away) is tried again *in place*:
 * BullMQ's own retry moves it to "delayed", where the next envelope would overtake it.
 *
 * Before: `queue.ts`. After: `worker/src/process-envelope.ts`, `worker/src/deliver-webhook.ts`.
 */
import type { Envelope } from '@sluice/domain/operation';
import {
  createPostgresBackend,
  Queue,
  UnrecoverableError,
  WaitingError,
  withBackend,
  Worker,
  type Job,
} from 'bullmq';
import type pg from 'pg';
import {
  LANE_QUEUE_NAME,
  openQueuePool,
  PURCHASE_QUEUE_NAME,
  redisPrefix,
  shardQueueName,
  type BrokerOptions,
  type LaneKey,
  type RunKey,
  VENDOR_EVENTS_JOB,
} from './queue.ts';
import { connectWorker } from './redis.ts';
import { repeat } from './repeat.ts';

const STALLED_AFTER_MS = 15_000;
/** A stalled envelope is never given up: BullMQ's default of 1 would fail it for good. */
const STALLED_COUNT_MAX = 1_000_000;
const RETRY_DELAY_MS_MAX = 5_000;
const FAILED_RETRY_INTERVAL_MS = 10_000;
const FAILED_RETRY_COUNT_MAX = 100;
/** How the reason of a job begins that must not run again. */
const DISCARDED = 'discarded';

/** What a processor says of its job. */
export type JobOutcome =
  | { readonly outcome: 'done' }
  /** Not now: again after `afterMs`, before any later envelope of the shard. */
  | { readonly outcome: 'retry'; readonly afterMs: number; readonly reason: string }
  /** Never: kept among the failed jobs for the operator. */
  | { readonly outcome: 'discard'; readonly reason: string };

export interface Processors {
  /** Called for one envelope a shard at a time, in order. A throw counts as `retry`. */
  readonly processEnvelope: (envelope: Envelope) => Promise<JobOutcome>;
  /** Called for one wake-up a lane at a time in this process; `retry` is a no-op, the lane is swept later. */
  readonly wakeLane: (lane: LaneKey) => Promise<JobOutcome>;
  /** Absent: this process takes no purchases. */
  readonly purchases?: PurchaseProcessors;
  /** Lanes drained at the same time by this process. */
  readonly laneConcurrency: number;
  readonly now: () => number;
}

/** What these leave undone is found in Postgres and swept later. */
export interface PurchaseProcessors {
  readonly advanceRun: (run: RunKey) => Promise<void>;
  readonly settleVendorEvents: () => Promise<void>;
  /** Purchases worked on at the same time by this process. */
  readonly concurrency: number;
}

export interface Consumers {
  /** When a job of any queue last ended, by `now`. */
  lastProgressAtMs(): number;
  /** Takes no new job, waits for those in hand. One that waits to be tried again goes back to the head of its queue. May be called twice. */
  close(): Promise<void>;
}

/** Starts taking jobs of every shard and of the lanes. Sets each shard's global concurrency to 1 first. */
export async function startConsumers(
  options: BrokerOptions,
  processors: Processors,
): Promise<Consumers> {
  const { logger, stalledAfterMs = STALLED_AFTER_MS } = options;
  const redis = options.redisUrl ? connectWorker(options.redisUrl) : undefined;
  redis?.on('error', (error) => logger.warn({ error }, 'redis connection'));
  const pool = redis ? undefined : openQueuePool(options, options.shardCount + 2);
  const closing = new AbortController();
  let lastProgressAtMs = processors.now();

  const shardQueues: Queue[] = [];
  const open = async (
    name: string,
    concurrency: number,
    globalConcurrency: number | undefined,
    process: (job: Job, token?: string) => Promise<void>,
  ): Promise<Worker> => {
    const settings = {
      concurrency,
      lockDuration: stalledAfterMs,
      stalledInterval: stalledAfterMs / 3,
      maxStalledCount: STALLED_COUNT_MAX,
      autorun: false,
    };
    const connection = redis
      ? { connection: redis, prefix: redisPrefix(options.prefix, name) }
      : { connection: pool as pg.Pool };
    const classes = redis ? { Queue, Worker } : withBackend(createPostgresBackend);
    if (globalConcurrency !== undefined) {
      const queue = new (classes.Queue as typeof Queue)(name, connection);
      queue.on('error', (error) => logger.warn({ error, queue: name }, 'queue'));
      shardQueues.push(queue);
      await queue.setGlobalConcurrency(globalConcurrency);
    }
    const worker = new (classes.Worker as typeof Worker)(name, process, {
      ...settings,
      ...connection,
    });
    worker.on('error', (error) => logger.warn({ error, queue: name }, 'worker'));
    worker.on('failed', (job, error) =>
      logger.error({ error, queue: name, jobId: job?.id }, 'job failed'),
    );
    worker.on('completed', () => void (lastProgressAtMs = processors.now()));
    worker.run().catch((error: unknown) => logger.error({ error, queue: name }, 'worker stopped'));
    return worker;
  };

  const processShardJob = async (job: Job<Envelope>, token?: string): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      const outcome = await processors
        .processEnvelope(job.data)
        .catch((error: unknown): JobOutcome => {
          logger.error({ error, envelopeId: job.id, attempt }, 'envelope: tried again');
          return {
            outcome: 'retry',
            afterMs: Math.min(50 * 2 ** attempt, RETRY_DELAY_MS_MAX),
            reason: 'error',
          };
        });
      if (outcome.outcome === 'done') return;
      if (outcome.outcome === 'discard')
        throw new UnrecoverableError(`${DISCARDED}: ${outcome.reason}`);
      await pause(outcome.afterMs, closing.signal);
      if (closing.signal.aborted) {
        // Where it cannot be put back it stays active, and returns when its lock ends.
        await job.moveToWait(token).catch((error: unknown) => {
          logger.warn({ error, envelopeId: job.id }, 'an envelope could not be put back');
        });
        throw new WaitingError();
      }
    }
  };

  const shards = await Promise.all(
    Array.from({ length: options.shardCount }, (_, shard) =>
      open(shardQueueName(shard), 1, 1, (job, token) =>
        processShardJob(job as Job<Envelope>, token),
      ),
    ),
  );
  const lanes = await open(LANE_QUEUE_NAME, processors.laneConcurrency, undefined, async (job) => {
    await processors.wakeLane(job.data as LaneKey);
  });

  const buying = processors.purchases;
  const purchases = buying && [
    await open(PURCHASE_QUEUE_NAME, buying.concurrency, undefined, async (job) => {
      await (job.name === VENDOR_EVENTS_JOB
        ? buying.settleVendorEvents()
        : buying.advanceRun(job.data as RunKey));
    }),
  ];

  const retries = repeat('run failed envelopes again', FAILED_RETRY_INTERVAL_MS, logger, () =>
    Promise.all(shardQueues.map(retryFailed)),
  );

  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    closing.abort();
    await retries.stop();
    await Promise.all([...shards, lanes, ...(purchases ?? [])].map((worker) => worker.close()));
    await Promise.all(shardQueues.map((queue) => queue.close()));
    redis?.disconnect();
    await pool?.end();
  };
  return { lastProgressAtMs: () => lastProgressAtMs, close: () => (closed ??= close()) };
}

/**
 * BullMQ takes a broken connection at the moment of completing a job for a failure of the job. Such an
 * envelope is applied, or is not; running it again is right either way. What was discarded stays.
 */
async function retryFailed(queue: Queue): Promise<void> {
  for (const job of await queue.getFailed(0, FAILED_RETRY_COUNT_MAX - 1)) {
    if (!job.failedReason?.startsWith(DISCARDED)) await job.retry('failed');
  }
}

/** Waits; returns at once when `signal` is aborted. */
function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : durationMs);
    signal.addEventListener('abort', end);
  });
}
