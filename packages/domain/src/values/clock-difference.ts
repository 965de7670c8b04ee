/**
 * Difference of a process' clock from Postgres', and its consequence. All processes share Postgres' clock: by it they
 * agree, right or wrong. Pure.
 *
 * A worker's own clock decides when a failing delivery is tried again and when it is given up, the time in its
 * signature, and when a purchase has expired. Leases go by Postgres'.
 */
import { AppError } from './errors.ts';

export interface ClockDifference {
  /** This process' clock less Postgres', in milliseconds; negative if it is behind. */
  readonly aheadMs: number;
  /** It may be so much more or less; never negative. */
  readonly uncertaintyMs: number;
}

/** More than machines that follow a time server differ, and than a loaded one delays an answer. */
const TOLD_MS = 5_000;
/**
 * Receivers refuse a signature whose time is five minutes off (`ingestion-conventions.md` §4.5), and a delivery is on its way
 * for up to a minute.
 */
const REFUSED_MS = 120_000;
/**
 * An attempt that has ended is kept for as long as its lane's lease lasts while Postgres is away: three minutes at the
 * longest time-out. Its delivery has days, so these minutes are no matter.
 */
const KEPT_WITHIN_MS = 600_000;
/** A measurement that took longer is too uncertain. */
const UNCERTAIN_MS = 1_000;

/** `unclear`: measure again. `unusable`: too far to deliver by. */
export type ClockVerdict = 'unclear' | 'alike' | 'different' | 'unusable';

export function judgeClock({ aheadMs, uncertaintyMs }: ClockDifference): ClockVerdict {
  if (uncertaintyMs > UNCERTAIN_MS) return 'unclear';
  const apartMs = Math.abs(aheadMs);
  if (apartMs > REFUSED_MS) return 'unusable';
  return apartMs > TOLD_MS ? 'different' : 'alike';
}

/**
 * For a worker, before it takes anything and while it runs.
 *
 * @throws AppError CLOCK_WRONG if it would deliver by a clock that is too far from Postgres'.
 */
export function requireUsableClock(difference: ClockDifference): void {
  if (judgeClock(difference) === 'unusable') throw clockWrong(difference);
}

/** The error with which a worker ends. */
export const clockWrong = (difference: Pick<ClockDifference, 'aheadMs'>): AppError =>
  new AppError(
    'CLOCK_WRONG',
    `the clock of this machine is ${describeDifference(difference)} the clock of Postgres, so this worker ends: its retries and signatures would have wrong times. No data are lost: other workers acquire its work. Synchronize both machines with a time server, then start it again`,
  );

/**
 * Judges the clock by which a delivery's days were over. A delivery that is given up is lost, so the clock must be
 * certain. A clock that was behind gives up too late, which loses no delivery.
 *
 * @param endedAtMs - when its last attempt ended, by this process' clock as it was then.
 * @param nowMs - by the same clock, when `difference` was measured.
 */
export function judgeGivingUp(
  { aheadMs, uncertaintyMs }: ClockDifference,
  endedAtMs: number,
  nowMs: number,
): 'right' | 'unclear' | 'ahead' {
  // No attempt ends later than the present time of Postgres, also if the clock was corrected since.
  const endedAheadMs = endedAtMs - (nowMs - aheadMs);
  if (endedAheadMs + uncertaintyMs <= REFUSED_MS) return 'right';
  return endedAheadMs - uncertaintyMs > REFUSED_MS ? 'ahead' : 'unclear';
}

/**
 * Whether the end of an attempt that failed may be kept: a delivery's days count from its first, and one that seems
 * days old would be given up at its second.
 *
 * @param endedAtMs - by the clock of the process that made it, as it was then.
 * @param nowMs - by a clock that is right.
 */
export const isEndBelieved = (endedAtMs: number, nowMs: number): boolean =>
  endedAtMs >= nowMs - KEPT_WITHIN_MS;

/** `12 s ahead of`, to be followed by whose. */
export const describeDifference = ({ aheadMs }: Pick<ClockDifference, 'aheadMs'>): string =>
  `${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs < 0 ? 'behind' : 'ahead of'}`;
