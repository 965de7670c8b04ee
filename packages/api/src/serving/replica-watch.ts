/**
 * Age of a replica's data, as far as this process knows.
 *
 * It asks the primary for its position in the log and remembers the time of the question. Once the replica has applied
 * the log up to there, all that was confirmed at that time is on the replica. This knowledge grows older by itself: a
 * replica that hangs, is cut off, or does not get on is not read any more once the bound is over. One whose connection
 * fails is not read until it has answered again.
 */
import type { LogPosition } from '@sluice/database/connection/read-replica';
import { reasonOf } from '@sluice/domain/values/errors';
import type { Logger } from '@sluice/platform/process/logger';

export interface ReplicaWatchOptions {
  /** Milliseconds. */
  readonly stalenessMsMax: number;
  readonly readPrimaryPosition: () => Promise<LogPosition>;
  readonly readReplicaPosition: () => Promise<LogPosition>;
  readonly monotonicNow: () => number;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

interface Sample {
  /** When the primary was asked. */
  readonly atMs: number;
  readonly position: bigint;
}

export class ReplicaWatch {
  readonly #options: ReplicaWatchOptions;
  /** Of the primary, oldest first, that the replica had not reached when it was last asked. */
  #samples: Sample[] = [];
  /** All that was confirmed before is on the replica. */
  #freshAsOfMs = -Infinity;
  /** The fault, if the replica's state is not known. Undefined: it is a replica that answers. */
  #problem: string | undefined = 'was not asked yet';
  #told: string | undefined;

  constructor(options: ReplicaWatchOptions) {
    this.#options = options;
  }

  /** Whether all that was confirmed `stalenessMsMax` ago is on the replica. */
  isFresh(): boolean {
    return this.#options.monotonicNow() - this.#freshAsOfMs <= this.#options.stalenessMsMax;
  }

  /** For `/readyz`. */
  describe(): string {
    if (this.#problem !== undefined) return `is not read: ${this.#problem}`;
    const behindMs = this.#options.monotonicNow() - this.#freshAsOfMs;
    if (behindMs === Infinity) return 'is not read: its age is not known yet';
    const behind = `at most ${Math.round(behindMs)} ms behind`;
    return this.isFresh() ? `is read: ${behind}` : `is not read: ${behind}`;
  }

  /** A statement, or an idle connection, of the replica failed. */
  noticeFailure(error: unknown): void {
    this.#distrust(reasonOf(error));
  }

  /** To be called again and again, several times within the bound. Never rejects. */
  async look(): Promise<void> {
    const { readPrimaryPosition, readReplicaPosition, monotonicNow } = this.#options;
    const atMs = monotonicNow();
    try {
      const [primary, replica] = await Promise.all([readPrimaryPosition(), readReplicaPosition()]);
      const problem = compare(primary, replica);
      if (problem !== undefined) this.#distrust(problem);
      else this.#notice({ atMs, position: primary.position as bigint }, replica.position as bigint);
    } catch (error) {
      this.#distrust(reasonOf(error));
    }
    this.#tell();
  }

  #notice(sample: Sample, applied: bigint): void {
    this.#samples.push(sample);
    const reached = this.#samples.findLast(({ position }) => position <= applied);
    if (reached) {
      this.#freshAsOfMs = Math.max(this.#freshAsOfMs, reached.atMs);
      this.#samples = this.#samples.filter(({ atMs }) => atMs > reached.atMs);
    }
    // A replica that does not get on must not fill the memory: it is not read before it has reached one of the last.
    this.#samples = this.#samples.slice(-SAMPLE_COUNT_MAX);
    this.#problem = undefined;
  }

  #distrust(problem: string): void {
    this.#samples = [];
    this.#freshAsOfMs = -Infinity;
    this.#problem = problem;
  }

  /** Changes only: the same failure comes with each look. */
  #tell(): void {
    const isRead = this.isFresh();
    const told = isRead ? 'read' : (this.#problem ?? 'lags');
    if (told === this.#told) return;
    this.#told = told;
    const { logger, stalenessMsMax } = this.#options;
    if (isRead) logger.info({ stalenessMsMax }, 'the replica is read');
    else
      logger.warn(
        { stalenessMsMax },
        `the replica ${this.describe()}; check the replica. The primary is read meanwhile`,
      );
  }
}

const SAMPLE_COUNT_MAX = 1_000;

/** Reason why one server is no replica of the other; undefined if it is. */
function compare(primary: LogPosition, replica: LogPosition): string | undefined {
  if (replica.position === undefined)
    return 'DATABASE_READ_URL leads to no streaming replica: it applies no log';
  if (primary.clusterId !== replica.clusterId || primary.databaseId !== replica.databaseId)
    return 'DATABASE_READ_URL leads to a replica of another database than DATABASE_URL';
  // After a failover its position may be beyond the new primary's, without any change of the new primary.
  if (primary.timeline !== replica.timeline)
    return `the replica has applied timeline ${replica.timeline} of the log, and the primary writes timeline ${primary.timeline}`;
  return undefined;
}
