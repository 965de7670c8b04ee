/**
 * Instants as clients write them → Unix milliseconds. Track sends Unix seconds, Pipelines ISO 8601
 * (`ingestion-webhooks.md` §2). One rule reads both, because the two forms cannot be mistaken for one another.
 * - a number or a text of digits is Unix seconds, fractions kept to the millisecond. From 1e12 on it is milliseconds
 *   (as seconds it would be the year 33658).
 * - ISO 8601 to the millisecond, further digits cut. A text without a zone is UTC.
 * - a time or a float as Go and Ruby print it (`%v`, `to_s`), `2026-11-25 22:00:00.5 +0000 UTC`, `1.795644184e+09`.
 *
 * A value of the right form and of an absurd size is no time: `20261120`, `45981.5` (a spreadsheet's day) and `2026`
 * are some day of 1970 in Unix seconds, and no client sends events older than the first personal computers. A date far
 * ahead is refused as well, since it would stay the newest for as long.
 */
import { hasIsoForm, INSTANT_MS_MAX, isInstantMs, parseIsoMs } from './iso-instant.ts';
import { ABSENT, refused, trimmed, type Verdict } from './verdict.ts';

const MILLISECONDS_FROM = 1e12;
const DAY_MS = 86_400_000;

/** 10^8 seconds, 1973-03-03T09:46:40Z: a date as eight digits, taken for seconds, is below it. */
const EARLIEST_TIME_MS = 100_000_000_000;
/** How far ahead a time may be that decides which write is the latest: a clock may be wrong, or a zone left out. */
const ORDERING_AHEAD_MS_MAX = DAY_MS;

/** Unix milliseconds; a time outside of them is refused. */
export interface TimeBounds {
  readonly earliestMs: number;
  readonly latestMs: number;
}

export const isWithinBounds = (ms: number, { earliestMs, latestMs }: TimeBounds): boolean =>
  ms >= earliestMs && ms <= latestMs;

/** Of a time at which something happened: at most a year ahead, for clients plan. */
export function boundsOfEvents(nowMs: number): TimeBounds {
  // The items of a batch have one time of receipt, and a calendar costs as much as the rest of reading a time.
  if (lastBounds?.nowMs !== nowMs)
    lastBounds = {
      nowMs,
      bounds: { earliestMs: EARLIEST_TIME_MS, latestMs: sameDayNextYearMs(nowMs) },
    };
  return lastBounds.bounds;
}

let lastBounds: { readonly nowMs: number; readonly bounds: TimeBounds } | undefined;

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

/** For times by a client's clock, which may be wrong by any time. */
export const BOUNDS_OF_CLOCKS: TimeBounds = { earliestMs: 0, latestMs: INSTANT_MS_MAX };

/** Reads a time. */
export function judgeTime(value: unknown, bounds: TimeBounds): Verdict<number> {
  if (value === undefined || value === null) return ABSENT;
  if (typeof value === 'number') return judgeUnixTime(value, bounds);
  if (typeof value !== 'string') return refused(NO_TIME);
  const text = trimmed(value);
  if (text === '') return ABSENT;
  const isoMs = parseIsoMs(text, false);
  if (isoMs !== undefined) return withinBounds(isoMs, bounds, undefined);
  if (isUnixTimeText(text))
    return isRounded(text) ? refused(ROUNDED) : judgeUnixTime(Number(text), bounds);
  const printedMs = parsePrintedMs(text);
  if (printedMs !== undefined) return withinBounds(printedMs, bounds, undefined);
  return refused(
    hasIsoForm(text) ? 'names a day, a time of day or a zone that does not exist' : NO_TIME,
  );
}

/** ISO 8601 has forms that are not read (`2024-W18-3`, `2024-05-01T10`), so the text does not mention ISO 8601. */
const NO_TIME = 'must be Unix seconds or a date-time such as 2024-05-01T10:20:30Z';

/** True for digits, of which there may be a fraction and an exponent: the text of a Unix time. As many as a number may have in JSON. */
export const isUnixTimeText = (text: string): boolean =>
  /^-?\d{1,30}(?:\.\d{1,30})?(?:[eE]\+?\d{1,2})?$/.test(text);

/** A spreadsheet writes `1.79564E+09` for a cell that is too narrow: six digits of ten, so an hour or more is lost. */
function isRounded(text: string): boolean {
  const { fraction = '', exponent } =
    /(?:\.(?<fraction>\d+))?E\+(?<exponent>\d+)$/.exec(text)?.groups ?? {};
  return fraction.length < Number(exponent);
}

const ROUNDED = 'is rounded, as spreadsheets do in a narrow cell; give all of its digits';

/** A date, a time of day, and behind a blank the offset, the zone's name or both; Go's monotonic clock at the end. */
const PRINTED_TIME =
  /^(?<date>\d{4}-\d\d-\d\d) (?<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?: (?<offset>[+-]\d{4}))?(?: (?<zone>[A-Z]{1,5}|[+-]\d{2,4}))?(?: m=[+-]\d+\.\d+)?$/;

/** A zone's name alone has no meaning unless it is UTC's. */
function parsePrintedMs(text: string): number | undefined {
  const printed = PRINTED_TIME.exec(text)?.groups;
  if (!printed) return undefined;
  const { date, time, offset, zone } = printed;
  if (offset === undefined && zone !== 'UTC' && zone !== 'GMT') return undefined;
  return parseIsoMs(`${date}T${time}${offset ?? 'Z'}`, true);
}

function judgeUnixTime(value: number, bounds: TimeBounds): Verdict<number> {
  if (!Number.isFinite(value)) return refused('is no number');
  return value < MILLISECONDS_FROM
    ? withinBounds(Math.round(value * 1_000), bounds, 'seconds')
    : withinBounds(Math.floor(value), bounds, 'milliseconds');
}

function withinBounds(
  ms: number,
  bounds: TimeBounds,
  unit: 'seconds' | 'milliseconds' | undefined,
): Verdict<number> {
  if (isWithinBounds(ms, bounds)) {
    return unit === 'milliseconds'
      ? { outcome: 'read', value: ms, change: 'milliseconds' }
      : { outcome: 'read', value: ms };
  }
  const { earliestMs, latestMs } = bounds;
  const means = `means ${isInstantMs(ms) ? isoSecondOf(ms) : 'no year from 1970 to 9999'}${unit === undefined ? '' : ` as Unix ${unit}`}`;
  return refused(
    `${means}; a time here is from ${isoSecondOf(earliestMs)} to ${isoSecondOf(latestMs)}`,
    'out_of_range',
  );
}

function sameDayNextYearMs(nowMs: number): number {
  const date = new Date(nowMs);
  return date.setUTCFullYear(date.getUTCFullYear() + 1);
}

const isoSecondOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
