/**
 * The lease of this intake in the broker (`platform/src/queue/staged-flushes.ts`).
 *
 * By it other intakes know that no acknowledged call is on this one's disk, or how old the oldest is.
 *
 * - It reports at short intervals. A report renews the lease and has the time of the oldest flush in the disk buffer.
 * - Before the first flush is answered from the disk, the broker knows of it, or the lease has ended by the broker's
 *   clock. The lease is counted from when a report was sent, so it ends there no later than here.
 * - The answers have the broker's time (`broker-clock.ts`), which flushes in the disk buffer get. So flushes of several
 *   intakes can be put in order, however wrong the intakes' own clocks are.
 * - It moves staged flushes of any intake into the queues when some may be moved. Beside `batch-committer.ts`.
 */
import {
  LOST_AFTER_MS,
  type FlushStage,
  type Standing,
} from '@sluice/platform/queue/staged-flushes';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat, type Repetition } from '@sluice/platform/process/repeat';
import { within } from '@sluice/platform/process/within';
import { BrokerClock } from './broker-clock.ts';
import type { DiskBuffer } from './disk-buffer.ts';

export interface IntakeLeaseOptions {
  readonly stage: Pick<FlushStage, 'report' | 'renew' | 'readClock' | 'leave'>;
  readonly moveStaged: (moverId: string) => Promise<number>;
  readonly diskBuffer: Pick<
    DiskBuffer,
    'id' | 'formerIds' | 'forgetFormerIds' | 'isEmpty' | 'firstWrittenAtMs'
  >;
  /** How long a call may wait for the broker. */
  readonly deadlineMs: number;
  /** Milliseconds, of a clock that is never set. */
  readonly monotonicNow: () => number;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly pause: (durationMs: number) => Promise<void>;
  readonly logger: Logger;
}

/** Of the deadline: a flush that was not confirmed in time need not wait longer for the end of the lease. */
const LEASE_SHARE = 0.8;
/** Less, and a busy machine loses it. */
const LEASE_MS_MIN = 200;
const LEASE_MS_MAX = LOST_AFTER_MS / 2;
const RENEWALS_PER_LEASE = 3;
/** While something is staged or on the disk. */
const BUSY_INTERVAL_MS = 25;
const AWAY_INTERVAL_MS_MAX = 100;
/** Between two reports without news: they find intakes that are gone. */
const REPORT_INTERVAL_MS = 10_000;

export class IntakeLease {
  readonly #options: IntakeLeaseOptions;
  readonly #leaseMs: number;
  #reporting: Promise<Standing> | undefined;
  #renewing: Promise<unknown> = Promise.resolve();
  #repetition: Repetition | undefined;
  #moving: Promise<void> | undefined;
  readonly #clock: BrokerClock;
  /** The least that the broker's clock can be ahead of the monotonic one, by the last report. */
  #differenceMsMin: number | undefined;
  /** By the monotonic clock: a later reader finds that the lease has ended. */
  #endsAtMs: number;
  /** When the flush that is about to be kept was written, by the broker's clock. */
  #aboutToKeepAtMs: number | undefined;
  /** A flush in the disk buffer that is in the broker too, most likely; it is no reason to wait. */
  #uncountedPosition = 0;
  #stagedCount = 0;
  #isLate = false;
  #isAway = false;
  /** The last report and the state of the broker had no news. */
  #isClear = false;
  #reportedAtMs = -Infinity;

  constructor(options: IntakeLeaseOptions) {
    this.#options = options;
    this.#leaseMs = Math.min(
      LEASE_MS_MAX,
      Math.max(LEASE_MS_MIN, LEASE_SHARE * options.deadlineMs),
    );
    const { stage, monotonicNow } = options;
    this.#clock = new BrokerClock({ readClock: () => stage.readClock(), monotonicNow });
    // A process before this one may have reported a moment ago.
    this.#endsAtMs = options.monotonicNow() + this.#leaseMs;
  }

  /** Flushes that are staged in the broker, as far as is known. */
  get stagedCount(): number {
    return this.#stagedCount;
  }

  /** Flushes in the disk buffer come too late for their place: others have not waited for them. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Resolves when a report that begins now is answered. Await it after an outage, before {@link isLate} is read. */
  async reported(): Promise<void> {
    await this.#report();
  }

  /** Resolves when the broker has the first report, or after half of a lease without an answer. */
  async start(): Promise<void> {
    const report = async (): Promise<void> => {
      await this.#report();
      await this.#clock.measure();
    };
    await within(this.#leaseMs / 2, report()).catch(() => undefined);
    const { logger } = this.#options;
    this.#repetition = repeat(
      'report to the broker',
      () => this.#intervalMs(),
      logger,
      () => this.#look(),
    );
  }

  /** Ends the lease, unless something is left on the disk. */
  async stop(): Promise<void> {
    await this.#repetition?.stop();
    await this.#moving;
    const { stage, diskBuffer } = this.#options;
    if (diskBuffer.isEmpty && this.#differenceMsMin !== undefined)
      await within(this.#leaseMs, stage.leave(diskBuffer.id)).catch(() => undefined);
  }

  /** The latest time that it can be by the broker's clock, as far as that is known; else by the machine's. */
  brokerNow(): number {
    return this.#clock.latest() ?? this.#options.now();
  }

  /**
   * Resolves when it can be no earlier than the last result of {@link brokerNow}. Await it before a flush on the disk
   * is answered.
   */
  async untilPassed(): Promise<void> {
    const waitMs = this.#clock.waitMs();
    if (waitMs > 0) await this.#options.pause(Math.ceil(waitMs));
  }

  /**
   * Call it before a flush is answered from an empty disk buffer; then write the flush and call {@link kept}. Resolves
   * when the broker knows of it, or takes the lease for ended.
   */
  async beforeKeeping(): Promise<void> {
    this.#aboutToKeepAtMs = this.brokerNow();
    const { monotonicNow, pause } = this.#options;
    const told = this.#report();
    const waitMs = this.#endsAtMs - monotonicNow();
    const ended = waitMs > 0 ? pause(waitMs) : Promise.resolve();
    await Promise.race([told.catch(() => ended), ended]);
  }

  /** The flush of {@link beforeKeeping} is in the disk buffer, or will never be. */
  kept(): void {
    this.#aboutToKeepAtMs = undefined;
  }

  /** @param position - in the disk buffer; if absent, all count. */
  leaveUncounted(position = 0): void {
    this.#uncountedPosition = position;
  }

  /** A flush was staged: reports it, and moves it soon. */
  staged(): void {
    this.#stagedCount++;
    this.#isClear = false;
    this.#repetition?.wake();
  }

  #intervalMs(): number {
    const renewalMs = this.#leaseMs / RENEWALS_PER_LEASE;
    if (this.#isAway) return Math.min(AWAY_INTERVAL_MS_MAX, renewalMs);
    const isBusy = this.#stagedCount > 0 || this.#oldestMs() !== undefined;
    return isBusy ? BUSY_INTERVAL_MS : renewalMs;
  }

  #oldestMs(): number | undefined {
    if (this.#options.diskBuffer.isEmpty) return this.#aboutToKeepAtMs;
    return (
      this.#options.diskBuffer.firstWrittenAtMs(this.#uncountedPosition) ?? this.#aboutToKeepAtMs
    );
  }

  async #look(): Promise<void> {
    // Other code logs that the broker is away.
    const isRenewed = await within(this.#leaseMs, this.#renew()).catch(() => false);
    if (isRenewed) return;
    const { monotonicNow } = this.#options;
    const wasLongAgo = monotonicNow() - this.#reportedAtMs >= REPORT_INTERVAL_MS;
    const standing = await within(this.#leaseMs, this.#report()).catch(() => undefined);
    // After an outage too: another server may have taken the place, with a clock of its own.
    if (standing && (wasLongAgo || this.#isAway))
      await within(this.#leaseMs / RENEWALS_PER_LEASE, this.#clock.measure()).catch(
        () => undefined,
      );
    this.#isAway = standing === undefined;
    // Not awaited: much to move takes longer than a lease.
    if (standing?.isMovable === true) this.#moving ??= this.#move();
  }

  async #move(): Promise<void> {
    const { moveStaged, diskBuffer, logger } = this.#options;
    try {
      await moveStaged(diskBuffer.id);
    } catch (error) {
      logger.warn({ error }, 'staged flushes could not be moved into the queues; intake retries');
    }
    this.#moving = undefined;
  }

  /** @returns false if a report is due. */
  async #renew(): Promise<boolean> {
    const { stage, diskBuffer, monotonicNow } = this.#options;
    const sentAtMs = monotonicNow();
    const isDue = sentAtMs - this.#reportedAtMs >= REPORT_INTERVAL_MS;
    if (isDue || !this.#isClear || this.#reporting || this.#oldestMs() !== undefined) return false;
    this.#extendTo(sentAtMs + this.#leaseMs);
    const renewing = stage.renew(
      diskBuffer.id,
      sentAtMs + (this.#differenceMsMin ?? 0) + this.#leaseMs,
    );
    // No report is sent before its end: one with more news must come after it.
    this.#renewing = renewing.catch(() => false);
    return renewing;
  }

  /** Before it is sent: the broker may have a report that is never answered. */
  #extendTo(atMs: number): void {
    this.#endsAtMs = Math.max(this.#endsAtMs, atMs);
  }

  /** One after another: a later report has later facts. */
  #report(): Promise<Standing> {
    const before = this.#reporting?.catch(() => undefined) ?? this.#renewing;
    const reporting = before.then(() => this.#reportNow());
    this.#reporting = reporting;
    const done = (): void => {
      if (this.#reporting === reporting) this.#reporting = undefined;
    };
    reporting.then(done, done);
    return reporting;
  }

  async #reportNow(): Promise<Standing> {
    const { stage, diskBuffer, monotonicNow, logger } = this.#options;
    const oldestMs = this.#oldestMs();
    const { formerIds } = diskBuffer;
    const sentAtMs = monotonicNow();
    const differenceMs = this.#differenceMsMin;
    // A report with a flush on the disk lets no other intake go on.
    if (oldestMs === undefined) this.#extendTo(sentAtMs + this.#leaseMs);
    const standing = await stage.report({
      intakeId: diskBuffer.id,
      formerIds,
      leaseEndMs: differenceMs === undefined ? undefined : sentAtMs + differenceMs + this.#leaseMs,
      leaseMs: this.#leaseMs,
      oldestMs,
    });
    const answeredAtMs = monotonicNow();
    // Without the broker's time, the lease began when the report came there.
    if (oldestMs === undefined && differenceMs === undefined)
      this.#extendTo(answeredAtMs + this.#leaseMs);
    this.#differenceMsMin = standing.nowMs - answeredAtMs;
    this.#clock.noticeAnswer(standing.nowMs, sentAtMs, answeredAtMs);
    this.#stagedCount = standing.stagedCount;
    this.#isClear = standing.isClear && oldestMs === undefined;
    this.#reportedAtMs = sentAtMs;
    if (formerIds.length > 0) diskBuffer.forgetFormerIds();
    if (oldestMs === undefined) this.#isLate = false;
    else if (!standing.wasKnown && !this.#isLate) {
      this.#isLate = true;
      logger.warn(
        {},
        'other intake processes did not wait for the calls in the local disk buffer; all are kept, but later calls may have been applied before them',
      );
    }
    return standing;
  }
}
