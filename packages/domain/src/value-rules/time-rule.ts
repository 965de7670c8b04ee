/**
 * Instants as clients write them → Unix milliseconds.
 *
 * Track sends Unix seconds, Pipelines ISO 8601 (`ingestion-webhooks.md` §2); both are read by the same
 * rule, because the two forms cannot be mistaken for one another:
 * - a number or a text of digits: Unix seconds, fractions kept to the millisecond; from 1e12 on it
 *   is milliseconds (as seconds it would be the year 33658);
 * - ISO 8601 to the millisecond, further digits cut; a text without a zone is UTC.
 *
 * What is of the right form and of an absurd size is no time: `20261120`, `45981.5` (a spreadsheet's day) and `2026` are
 * some day of 1970 in Unix seconds, and nobody sends events from before the first personal computers. Nor is it a date
 * far ahead, which would stay the newest for as long.
 */
import { hasIsoForm, INSTANT_MS_MAX, isInstantMs, parseIsoMs } from './iso-instant.ts';
import { ABSENT, refused, trimmed, type Verdict } from './verdict.ts';

const MILLISECONDS_FROM = 1e12;
const DAY_MS = 86_400_000;

/** 10^8 seconds, 1973-03-03T09:46:40Z: a date as eight digits, taken for seconds, is below it. */
const EARLIEST_TIME_MS = 100_000_000_000;
/** How far ahead an event may be: clients plan. A leap year's days, so that the same day next year is within. */
const AHEAD_MS_MAX = 366 * DAY_MS;
/** How far ahead a time may be that decides which write is the latest: a clock may be wrong, or a zone left out. */
const ORDERING_AHEAD_MS_MAX = DAY_MS;

/** Unix milliseconds; a time outside of them is refused. */
export interface TimeBounds {
  readonly earliestMs: number;
  readonly latestMs: number;
}

/** Of a time at which something happened. */
export const boundsOfEvents = (nowMs: number): TimeBounds => ({
  earliestMs: EARLIEST_TIME_MS,
  latestMs: nowMs + AHEAD_MS_MAX,
});

/** Of a time that decides which of two writes is the later. */
export const boundsOfOrdering = (nowMs: number): TimeBounds => ({
  earliestMs: EARLIEST_TIME_MS,
  latestMs: nowMs + ORDERING_AHEAD_MS_MAX,
});

/**
 * Whether a write of that time is older than the stored one. A stored time that is too far ahead, from before there was a
 * bound, is no order: it would keep everybody from writing for ever.
 */
export const isOlderWrite = (
  atMs: number | undefined,
  storedAtMs: number | null,
  nowMs: number,
): boolean =>
  atMs !== undefined &&
  storedAtMs !== null &&
  atMs < storedAtMs &&
  storedAtMs <= nowMs + ORDERING_AHEAD_MS_MAX;

/** Of what a client's clock shows, which may be wrong by any time. */
export const BOUNDS_OF_CLOCKS: TimeBounds = { earliestMs: 0, latestMs: INSTANT_MS_MAX };

/** Reads a time. */
export function judgeTime(value: unknown, bounds: TimeBounds): Verdict<number> {
  if (value === undefined || value === null) return ABSENT;
  if (typeof value === 'number') return judgeUnixTime(value, bounds);
  if (typeof value !== 'string') return refused('must be Unix seconds or an ISO 8601 date-time');
  const text = trimmed(value);
  if (text === '') return ABSENT;
  const isoMs = parseIsoMs(text, false);
  if (isoMs !== undefined) return withinBounds(isoMs, bounds, undefined);
  if (isUnixTimeText(text)) return judgeUnixTime(Number(text), bounds);
  return refused(
    hasIsoForm(text)
      ? 'is a date or a time of day that does not exist'
      : 'is neither Unix seconds nor an ISO 8601 date-time',
  );
}

/** True for digits, of which there may be a fraction: the text of a Unix time. */
export const isUnixTimeText = (text: string): boolean => /^-?\d{1,16}(?:\.\d{1,30})?$/.test(text);

function judgeUnixTime(value: number, bounds: TimeBounds): Verdict<number> {
  if (!Number.isFinite(value)) return refused('is no number');
  return value < MILLISECONDS_FROM
    ? withinBounds(Math.round(value * 1_000), bounds, 'seconds')
    : withinBounds(Math.floor(value), bounds, 'milliseconds');
}

function withinBounds(
  ms: number,
  { earliestMs, latestMs }: TimeBounds,
  unit: 'seconds' | 'milliseconds' | undefined,
): Verdict<number> {
  if (ms >= earliestMs && ms <= latestMs) {
    return unit === 'milliseconds'
      ? { outcome: 'read', value: ms, change: 'milliseconds' }
      : { outcome: 'read', value: ms };
  }
  const means = `means ${isInstantMs(ms) ? isoSecondOf(ms) : 'no year from 1970 to 9999'}${unit === undefined ? '' : ` as Unix ${unit}`}`;
  return refused(
    `${means}; a time here is from ${isoSecondOf(earliestMs)} to ${isoSecondOf(latestMs)}`,
    'out_of_range',
  );
}

const isoSecondOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
