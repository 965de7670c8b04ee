/**
 * Flushes that the broker has, but that are not queued yet: earlier calls may be on the disk of an intake. They bring
 * calls of the intakes' disks into the order of acknowledgement (`docs/design/decisions/0012-order-after-outages.md`).
 *
 * ```
 *   intake 1   disk buffer ──put──▶ ┌────────┐
 *   intake 2   disk buffer ──put──▶ │ staged │ ──move, oldest first──▶ queues and log
 *   intake 3   new flush ────put──▶ └────────┘
 * ```
 *
 * Used by `intake/src/commit/intake-lease.ts` and the worker (`acknowledged-calls.ts`). Implemented in `staged-on-redis.ts` and
 * `staged-on-postgres.ts`.
 */
import { commitBatchText } from './commit-batch-writer.ts';
import type { ShardCommitBatch } from './queue-commit-batches.ts';

/** An intake that has not reported for so long is waited for no more; its calls are late when it comes back. */
export const LOST_AFTER_MS = 5_000;
/** After an outage: for intakes that were started meanwhile, of which the broker has never heard. */
export const SETTLE_MS = 500;
/**
 * The time of an outage, without any possible report, is no absence. So much of it counts, so that an intake whose own lease
 * ends again and again does not wait for others for ever.
 */
export const REPORTING_MS_MIN = 100;
/** A process that moves staged flushes and does not go on for so long may have died. */
export const MOVER_LEASE_MS = 5_000;
/** So few staged flushes are moved in one step. New ones wait for that instead of being staged behind it. */
export const ENDING_COUNT_MAX = 128;
const MOVE_COUNT_MAX = 128;
const MOVE_SIZE_BYTES_MAX = 8 * 1_048_576;

export interface IntakeReport {
  readonly intakeId: string;
  /** Former ids of the flushes in its disk buffer; forgotten. */
  readonly formerIds: readonly string[];
  /** When the lease ends at the latest, by the broker's clock in milliseconds; undefined if that clock is unknown. */
  readonly leaseEndMs: number | undefined;
  readonly leaseMs: number;
  /** The time of the oldest flush in the disk buffer, by the broker's clock; undefined if the buffer is empty. */
  readonly oldestMs: number | undefined;
}

export interface Standing {
  /** The broker's clock, milliseconds with fractions. */
  readonly nowMs: number;
  /** The broker knew the intake, or one of its former ids. */
  readonly wasKnown: boolean;
  readonly stagedCount: number;
  /** Some staged flushes may be moved. */
  readonly isMovable: boolean;
  /** New flushes are added at once. */
  readonly isClear: boolean;
}

export interface StagedDraft {
  /** By the broker's clock; undefined for the current time. */
  readonly atMs: number | undefined;
  /** `writeFlush`. */
  readonly text: string;
}

export interface StagedFlush {
  readonly id: string;
  readonly text: string;
}

/**
 * Every intake holds a lease in the broker and renews it. It answers a call from its disk only when the broker knows of
 * that, or its lease has ended by the broker's clock. So while all leases hold and no flush is staged, no acknowledged call
 * is on a disk, and a flush goes to the queues at once. Else it is staged. A staged flush is moved when no intake can have
 * an earlier one: each has reported the age of its oldest flush, or has been silent for `LOST_AFTER_MS`.
 *
 * The broker's clock alone counts. Intakes write its time into their disk buffers, as they know it from their reports.
 */
export interface FlushStage {
  /**
   * Renews a lease, with the state of the intake's disk. A report that arrives after the end of its own lease has no effect.
   */
  report(report: IntakeReport): Promise<Standing>;
  /**
   * Renews a lease without a report. It takes a fraction of a report's commands, and an intake renews all day.
   *
   * @returns false without a lease that could be renewed.
   */
  renew(intakeId: string, leaseEndMs: number): Promise<boolean>;
  /** The broker's clock, milliseconds with fractions. It reads only the clock, so it is answered at once. */
  readClock(): Promise<number>;
  /** True if every call that was acknowledged before is in the queues: no call is staged, and no call can be on a disk. */
  isEmpty(): Promise<boolean>;
  /** Ends a lease. Call it only with an empty disk buffer. */
  leave(intakeId: string): Promise<void>;
  /**
   * Stages flushes; durable when it resolves.
   *
   * @param intakeId - of its report.
   * @throws Error if the broker does not know the intake (`FlushOwner` of `hold-back.ts`). Then the flushes are not staged.
   */
  put(flushes: readonly StagedDraft[], intakeId?: string): Promise<void>;
  /** The oldest flushes that may be moved; empty if another process moves them. */
  take(moverId: string, countMax: number, sizeBytesMax: number): Promise<readonly StagedFlush[]>;
  /** Forgets flushes that are in the queues. */
  remove(moverId: string, ids: readonly string[]): Promise<void>;
}

/** Others went on without the intake. Its next report shows whether its flushes are late. */
export const unknownIntake = (): Error =>
  new Error('the broker has missed this intake for too long; its next report makes it known again');

/** As the disk buffer and the broker keep a flush: `[{"shard":0,"envelope":{…}}, …]`. */
export function writeFlush(commitBatches: readonly ShardCommitBatch[]): string {
  const entries = commitBatches.map(
    ({ shard, envelope: commitBatch }) =>
      `{"shard":${shard},"envelope":${commitBatchText(commitBatch)}}`,
  );
  return `[${entries.join(',')}]`;
}

/** Reads the output of {@link writeFlush}. */
export const readFlush = (text: string): ShardCommitBatch[] =>
  JSON.parse(text) as ShardCommitBatch[];

/**
 * Moves staged flushes into the queues as long as some may be moved. One that was moved and not forgotten is moved once
 * more: the worker's claim drops the second copy.
 *
 * @returns how many were moved.
 */
export async function moveStaged(
  stage: Pick<FlushStage, 'take' | 'remove'>,
  add: (commitBatches: readonly ShardCommitBatch[]) => Promise<void>,
  moverId: string,
): Promise<number> {
  for (let movedCount = 0; ;) {
    const flushes = await stage.take(moverId, MOVE_COUNT_MAX, MOVE_SIZE_BYTES_MAX);
    if (flushes.length === 0) return movedCount;
    await add(flushes.flatMap(({ text }) => readFlush(text)));
    await stage.remove(
      moverId,
      flushes.map(({ id }) => id),
    );
    movedCount += flushes.length;
  }
}
