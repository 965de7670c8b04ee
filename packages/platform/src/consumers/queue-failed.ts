/**
 * Commit batches that BullMQ counts as failed, run again.
 *
 * BullMQ takes a connection that breaks while a job is completed for a failure of the job. Such a commit batch is
 * applied, or is not; running it again is right either way.
 *
 * Beside `queue-consumers.ts`.
 */
import type { Queue } from 'bullmq';
import type { Logger } from '../process/logger.ts';
import { repeat, type Repetition } from '../process/repeat.ts';
import { within } from '../process/within.ts';

/** Rounds left out while no job fails here. The others are for jobs of processes that are gone. */
const SKIPPED_ROUNDS = 6;
const JOBS_A_ROUND_MAX = 100;

export interface FailedCommitBatchesOptions {
  readonly queues: readonly Queue[];
  readonly intervalMs: number;
  /** How long the broker may take for one round. */
  readonly deadlineMs: number;
  readonly logger: Logger;
}

/** Looks for them at once, and then every `intervalMs` or every seventh time. */
export class FailedCommitBatches {
  readonly #rounds: Repetition;
  #roundsToSkip = 0;

  constructor({ queues, intervalMs, deadlineMs, logger }: FailedCommitBatchesOptions) {
    this.#rounds = repeat('run failed commit batches again', intervalMs, logger, async () => {
      if (this.#roundsToSkip-- > 0) return;
      this.#roundsToSkip = SKIPPED_ROUNDS;
      await within(deadlineMs, Promise.all(queues.map(retryFailed))).catch((error) => {
        this.#roundsToSkip = 0;
        throw error;
      });
    });
  }

  /** A job of this process has failed: the next round is not left out. */
  notice(): void {
    this.#roundsToSkip = 0;
  }

  stop(): Promise<void> {
    return this.#rounds.stop();
  }
}

async function retryFailed(queue: Queue): Promise<void> {
  for (const job of await queue.getFailed(0, JOBS_A_ROUND_MAX - 1)) await job.retry('failed');
}
