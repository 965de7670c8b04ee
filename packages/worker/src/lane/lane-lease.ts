/**
 * Lease under which one drain sends, and its writes.
 *
 * A request is started only while the lease outlives its timeout, and every write names the lease's fencing number: two
 * workers never send one lane at the same time. (Except a machine that was suspended, whose monotonic clock stood
 * still: it sends until its next write is refused, and those deliveries come twice.) Results are stored in groups:
 * while one group is being written the next one gathers. So a busy lane writes few large groups, and a quiet one does
 * not wait.
 *
 * Part of `lane-drain.ts`; `lane-store.ts` writes.
 */
import type {
  AttemptRecord,
  LaneAfterProgress,
  LaneProgress,
} from '@sluice/database/delivery/lane-progress';
import { AppError } from '@sluice/domain/values/errors';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { EndedAttempts } from './ended-attempts.ts';
import type { LaneDrainDeps } from './lane-drain-deps.ts';

const KEEP_RETRY_DELAY_MS = 250;

export class LaneLease {
  readonly #deps: LaneDrainDeps;
  readonly #lane: LaneKey;
  readonly #fencing: number;
  readonly #ended: EndedAttempts;
  /** By the monotonic clock, and never later than the database's own time. */
  #endsAtMs: number;
  /** When the database was last asked for it, and gave it. */
  #confirmedAtMs: number;
  #isKeepFailing = false;
  #isFenced = false;

  /** @param onDue - called when the ended attempts must be stored because of their age. */
  constructor(
    deps: LaneDrainDeps,
    lane: LaneKey,
    claimed: { readonly fencing: number; readonly atMs: number },
    onDue: () => void,
  ) {
    this.#deps = deps;
    this.#lane = lane;
    this.#fencing = claimed.fencing;
    this.#endsAtMs = claimed.atMs + deps.leases.leaseMs;
    this.#confirmedAtMs = claimed.atMs;
    this.#ended = new EndedAttempts(onDue, deps.idleTime);
  }

  /** It was lost to another worker: no more progress is stored. */
  get isFenced(): boolean {
    return this.#isFenced;
  }

  /** It was lost, or has ended: another drain may take the lane. */
  isOver(nowMs: number): boolean {
    return this.#isFenced || nowMs >= this.#endsAtMs;
  }

  get isKeepingDue(): boolean {
    return this.#ended.isDue;
  }

  mayStart(nowMs: number): boolean {
    const { leases, presence } = this.#deps;
    if (this.#isFenced || this.#isKeepFailing || !presence.isShown) return false;
    // Taken for dead meanwhile: the next write shows whose the lane is.
    if (this.#confirmedAtMs < presence.shownSinceMs) return false;
    return nowMs + leases.timeoutMs < this.#endsAtMs;
  }

  /** To be kept with the next group. */
  add(attempt: AttemptRecord): void {
    this.#ended.add(attempt);
  }

  /**
   * Stores the ended attempts, and the position of the lane; undefined if the lease was lost.
   *
   * @throws if that did not work for as long as the lease lasts.
   */
  async keep(progress: Omit<LaneProgress, 'attempts'>): Promise<LaneAfterProgress | undefined> {
    const { store, leases, logger, monotonicNow, pause } = this.#deps;
    const attempts = this.#ended.take();
    for (;;) {
      const askedAtMs = monotonicNow();
      try {
        await this.#confirmTimes(attempts);
        const after = await store.keep({
          lane: this.#lane,
          fencing: this.#fencing,
          progress: { ...progress, attempts },
          leaseMs: leases.leaseMs,
        });
        if (after) {
          this.#endsAtMs = askedAtMs + after.leaseLeftMs;
          this.#confirmedAtMs = askedAtMs;
        } else {
          this.#isFenced = true;
          logger.warn(
            { ...this.#lane, attempts: attempts.length },
            'this worker lost a delivery queue: another worker took it over, its webhook was deleted, or an operator skipped its head. These attempts are not stored; their deliveries are sent again if they are still due',
          );
        }
        this.#isKeepFailing = false;
        return after;
      } catch (error) {
        // A delivery whose end is not stored is sent again, so it is worth trying for as long as the lane is ours.
        this.#isKeepFailing = true;
        // A time that was wrong does not become right.
        if (error instanceof AppError && error.code === 'CLOCK_WRONG') throw error;
        if (monotonicNow() + KEEP_RETRY_DELAY_MS >= this.#endsAtMs) throw error;
        logger.warn(
          { error, ...this.#lane },
          'progress of a delivery queue could not be stored; the worker tries again',
        );
        await pause(KEEP_RETRY_DELAY_MS);
      }
    }
  }

  /** Of those attempts whose times decide when a delivery is tried again, and when it is given up. */
  async #confirmTimes(attempts: readonly AttemptRecord[]): Promise<void> {
    const { confirmFailure, confirmGivingUp } = this.#deps;
    const endsOf = (isMeant: (attempt: AttemptRecord) => boolean): number[] =>
      attempts.filter(isMeant).map(({ startedAtMs, durationMs }) => startedAtMs + durationMs);
    const putOff = endsOf(({ outcome }) => outcome === 'retrying');
    const givenUp = endsOf(({ outcome }) => outcome === 'abandoned');
    if (putOff.length > 0) await confirmFailure(Math.min(...putOff));
    if (givenUp.length > 0) await confirmGivingUp(Math.max(...givenUp));
  }

  /** No attempt is added any more. */
  close(): void {
    this.#ended.close();
  }
}
