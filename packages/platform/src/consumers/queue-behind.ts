/**
 * Reads the commit batches behind the one in progress in a shard. For a processor that can apply several at once.
 *
 * Safe without taking them as jobs: the shard's global concurrency of 1 keeps them in place while ours is in progress.
 * A worker may wrongly assume that: it was stopped until its lock ran out, or its own watch put the job back. Then the
 * one in progress waits itself, or another worker has it (all behind it wait), or it is applied, and its claim blocks
 * claims behind it (`database/src/events/commit-batches.ts`). Applied batches are removed; else they run again and
 * their claim is found.
 *
 * It reads the queue only right after a commit batch, so a shard that keeps up has no cost. It reads as many as were of
 * use the last time, and twice as many while all are, as a congestion window grows: commit batches may be large.
 *
 * Before: `queue-waiting.ts`. Made by `queue-processors.ts`, used by `queue-shard-job.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Logger } from '../process/logger.ts';
import type { WaitingCommitBatches } from './queue-waiting.ts';
import { within } from '../process/within.ts';

/** All batches behind the one in progress. For a processor that applies parts of them while that one waits. */
export interface FurtherBatches {
  /** As `WaitingCommitBatches.list`. @throws Error of the broker. */
  listFurther(count: number, skipped: number): Promise<readonly CommitBatch[]>;
  /** The batches are applied. If the broker refuses, a worker finds them applied. */
  removeFurther(envelopeIds: readonly string[]): Promise<void>;
}

export interface ShardBehindOptions {
  readonly waiting: WaitingCommitBatches;
  /** Milliseconds. */
  readonly now: () => number;
  readonly logger: Logger;
}

/** In progress and behind it: as much as one commit batch may hold (`intake/src/commit/batcher.ts`). */
const OPERATIONS_MAX = 1_000;
const COUNT_MIN = 4;
const COUNT_MAX = 128;
/** A broker that hangs must not hold the commit batch in progress, which does not need this read. */
const DEADLINE_MS = 1_000;
/** How recently the last one must have ended: after a longer pause there is no backlog. */
const BUSY_WITHIN_MS = 50;

export class ShardBehind implements FurtherBatches {
  readonly #options: ShardBehindOptions;
  #commitBatches: CommitBatch[] = [];
  #count = COUNT_MIN;
  #lastEndedAtMs = -Infinity;

  constructor(options: ShardBehindOptions) {
    this.#options = options;
  }

  /**
   * The next commit batches behind this one, in order. Empty if this one is large or waits too, or if the shard keeps
   * up.
   */
  async read(inProgress: CommitBatch): Promise<CommitBatch[]> {
    const { waiting: queued, now, logger } = this.#options;
    this.#commitBatches = [];
    let capacity = OPERATIONS_MAX - inProgress.operations.length;
    if (capacity < OPERATIONS_MAX / 2 || now() - this.#lastEndedAtMs > BUSY_WITHIN_MS) return [];
    try {
      const waiting = await within(DEADLINE_MS, queued.list(this.#count));
      if (waiting.some(({ id }) => id === inProgress.id)) return [];
      for (const commitBatch of waiting) {
        capacity -= commitBatch.operations.length;
        if (capacity < 0) break;
        this.#commitBatches.push(commitBatch);
      }
      const isAllOfUse = this.#commitBatches.length === waiting.length;
      this.#count = isAllOfUse
        ? Math.min(Math.max(this.#count, 2 * waiting.length), COUNT_MAX)
        : Math.max(this.#commitBatches.length, COUNT_MIN);
      return this.#commitBatches;
    } catch (error) {
      logger.warn(
        { error },
        'waiting jobs of a shard could not be read; the worker applies its commit batches one by one',
      );
      return [];
    }
  }

  /** The first `count` of the batches read are applied. */
  async remove(count: number): Promise<void> {
    const applied = this.#commitBatches.slice(0, count);
    this.#commitBatches = [];
    await this.removeFurther(applied.map(({ id }) => id));
  }

  listFurther(count: number, skipped: number): Promise<readonly CommitBatch[]> {
    return within(DEADLINE_MS, this.#options.waiting.list(count, skipped));
  }

  async removeFurther(envelopeIds: readonly string[]): Promise<void> {
    if (envelopeIds.length === 0) return;
    const removed = this.#options.waiting.remove(envelopeIds);
    await within(DEADLINE_MS, removed).catch((error: unknown) => {
      this.#options.logger.warn(
        { error },
        'applied commit batches stay queued; a worker will find them applied',
      );
    });
  }

  /** The one in progress has ended. */
  end(): void {
    this.#lastEndedAtMs = this.#options.now();
  }
}
