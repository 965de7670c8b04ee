/**
 * One job of a shard, from BullMQ's hand-over to its end. It is tried in place until it is done, so that no later
 * commit batch of the shard overtakes it.
 *
 * Before: `queue-processors.ts`, which has one of these a shard. After: `worker/src/events/process-commit-batch.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { WaitingError, type Job } from 'bullmq';
import type { Logger } from '../process/logger.ts';
import type { FailingTries } from '../process/failing-tries.ts';
import type { FurtherBatches, ShardBehind } from './queue-behind.ts';
import type { PendingBatches } from './pending-batches.ts';
import type { Trying } from './watched-queue.ts';
import { within } from '../process/within.ts';

const RETRY_DELAY_MS_MAX = 5_000;
const PUT_BACK_DEADLINE_MS = 2_000;

/** Outcome of a job, from its processor. */
export type JobOutcome =
  /** `behind`: so many of the commit batches behind this one are done with it. */
  | { readonly outcome: 'done'; readonly behind?: number }
  /** Not now: again after `afterMs`, before any later commit batch of the shard. */
  | {
      readonly outcome: 'retry';
      readonly afterMs: number;
      readonly reason: string;
      /** Operations of it, or of batches behind it, were applied. */
      readonly isProgress?: boolean;
      /** It waits for the end of this error, without progress. */
      readonly failure?: unknown;
    };

/** Called for one commit batch a shard at a time, in order. A throw counts as `retry`. */
export type ProcessCommitBatch = (
  commitBatch: CommitBatch,
  readBehind: () => Promise<readonly CommitBatch[]>,
  pending: PendingBatches,
  further?: FurtherBatches,
) => Promise<JobOutcome>;

export interface ShardJobOptions {
  readonly behind: ShardBehind;
  readonly pending: PendingBatches;
  readonly processCommitBatch: ProcessCommitBatch;
  /** Of all shards. */
  readonly failing: FailingTries;
  /** Aborted: an unfinished job goes back to the head of its queue. */
  readonly closing: AbortSignal;
  readonly logger: Logger;
}

/** @throws WaitingError of BullMQ: the job was put back. */
export async function runShardJob(
  { behind, pending, processCommitBatch, failing, closing, logger }: ShardJobOptions,
  job: Job<CommitBatch>,
  token: string | undefined,
  trying: Trying,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    trying.begin();
    const outcome = await processCommitBatch(
      job.data,
      () => behind.read(job.data),
      pending,
      behind,
    ).catch((error: unknown): JobOutcome => {
      logger.error(
        { error, envelopeId: job.id, attempt },
        'a commit batch failed; the worker tries it again',
      );
      const afterMs = Math.min(50 * 2 ** attempt, RETRY_DELAY_MS_MAX);
      return { outcome: 'retry', afterMs, reason: 'error', failure: error };
    });
    trying.end();
    if (outcome.outcome === 'retry' && outcome.failure !== undefined)
      failing.failed(outcome.failure);
    if (outcome.outcome === 'retry' && outcome.isProgress) failing.succeeded();
    if (outcome.outcome === 'done') {
      failing.succeeded();
      return behind.remove(outcome.behind ?? 0);
    }
    await pause(outcome.afterMs, closing);
    if (closing.aborted) {
      // If it cannot be put back it stays active, and returns when its lock ends.
      await within(PUT_BACK_DEADLINE_MS, job.moveToWait(token)).catch((error: unknown) => {
        logger.warn(
          { error, envelopeId: job.id },
          'a commit batch could not be returned to its queue; it returns when its lock ends',
        );
      });
      throw new WaitingError();
    }
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
