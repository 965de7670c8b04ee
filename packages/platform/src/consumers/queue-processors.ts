/**
 * Maps each job of each kind of queue to its processor's call.
 *
 * Before: `queue-workers.ts` has BullMQ call these. After: `worker/src/events/process-commit-batch.ts`,
 * `worker/src/delivery/deliver-webhook.ts`, `worker/src/purchases/advance-purchase-workflow.ts`.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import type { Logger } from '../process/logger.ts';
import type { FailingTries } from '../process/failing-tries.ts';
import { ShardBehind } from './queue-behind.ts';
import { runShardJob, type JobOutcome, type ProcessCommitBatch } from './queue-shard-job.ts';
import type { PendingBatches } from './pending-batches.ts';
import type { WaitingCommitBatches } from './queue-waiting.ts';
import { PROVIDER_EVENTS_JOB, type PurchaseKey } from '../queue/queue.ts';
import type { ProcessJob } from './watched-queue.ts';

/** How many times a lane's try begins anew within the time after which it would count as hung. */
const TRIES_BEFORE_HUNG = 10;

export interface Processors {
  /** @param readBehind - the commit batches that wait behind this one: the processor may do the first of them too. */
  readonly processCommitBatch: ProcessCommitBatch;
  /**
   * Called for a wake-up of a lane, for one at a time of each lane in this process. `retry` has no effect: the
   * reconciliation loop finds the lane later.
   *
   * @param isPlaceWanted - true while others may wait for its place among `laneConcurrency`, and once the process
   *   takes no more. Asking also shows that the lane has not hung.
   */
  readonly wakeLane: (lane: LaneKey, isPlaceWanted: () => boolean) => Promise<JobOutcome>;
  /**
   * Called for a wake-up of a range of lanes. It resolves once their drains have begun, and an error has no effect but a
   * log line: the reconciliation loop finds the lanes later. Absent: this process takes no ranges.
   */
  readonly wakeRange?: (range: LaneRange) => Promise<void>;
  /** Absent: this process takes no purchases. */
  readonly purchases?: PurchaseProcessors;
  /** Lanes drained at the same time by this process. */
  readonly laneConcurrency: number;
  /** Milliseconds, of a monotonic clock, for durations. */
  readonly now: () => number;
  /** One try of a job has not ended for so long; it cannot be ended from outside. */
  readonly onHung?: (queue: string, jobId: string) => void;
}

/** The reconciliation loop finds their unfinished work in Postgres later. */
export interface PurchaseProcessors {
  readonly advancePurchaseWorkflow: (workflow: PurchaseKey) => Promise<void>;
  readonly settleProviderEvents: () => Promise<void>;
  /** Purchases worked on at the same time by this process. */
  readonly concurrency: number;
}

export interface ShardProcessOptions {
  readonly waiting: WaitingCommitBatches;
  /** Of all shards. */
  readonly pending: PendingBatches;
  readonly failing: FailingTries;
  /** Aborted: an unfinished job goes back to the head of its queue. */
  readonly closing: AbortSignal;
  readonly logger: Logger;
}

/** The commit batches of one shard. */
export function shardProcess(
  { processCommitBatch, now }: Processors,
  { waiting, pending, failing, closing, logger }: ShardProcessOptions,
): ProcessJob {
  const behind = new ShardBehind({ waiting, now, logger });
  const shard = { behind, pending, processCommitBatch, failing, closing, logger };
  return (job, token, trying) => runShardJob(shard, job, token, trying).finally(() => behind.end());
}

/** Wake-ups of lanes. */
export function laneProcess(
  { wakeLane, now }: Processors,
  isPlaceWanted: () => boolean,
  hungAfterMs: number,
): ProcessJob {
  return async (job, _, trying) => {
    let begunAtMs = now();
    trying.begin();
    await wakeLane(job.data as LaneKey, () => {
      // Not at each call: a thousand lanes ask, each as often as it sends.
      if (now() - begunAtMs >= hungAfterMs / TRIES_BEFORE_HUNG) {
        begunAtMs = now();
        trying.begin();
      }
      return isPlaceWanted();
    });
  };
}

/** Wake-ups of ranges of lanes. */
export function rangeProcess(wakeRange: NonNullable<Processors['wakeRange']>): ProcessJob {
  return async (job, _, trying) => {
    trying.begin();
    await wakeRange(job.data as LaneRange);
  };
}

/**
 * Wake-ups of purchase workflows and of the payment provider's events. They never count as hung: each call of the
 * payment provider has its own deadline.
 */
export function purchaseProcess({
  advancePurchaseWorkflow,
  settleProviderEvents,
}: PurchaseProcessors): ProcessJob {
  return (job) =>
    job.name === PROVIDER_EVENTS_JOB
      ? settleProviderEvents()
      : advancePurchaseWorkflow(job.data as PurchaseKey);
}
