/**
 * Instants as clients write them → Unix milliseconds, and ISO 8601 texts among attributes → Unix seconds.
 *
 * Track sends Unix seconds, Pipelines ISO 8601 (`ingestion-webhooks.md` §2); both are read by the same
 * rule, because the two forms cannot be mistaken for one another:
 * - a number or a text of digits: Unix seconds, fractions kept to the millisecond; from 1e12 on it
 *   is milliseconds (as seconds it would be the year 33658), converted with a warning;
 * - ISO 8601 to the millisecond, further digits cut; a text without a zone is UTC.
 * A date that does not exist, a time before 1970 or after 9999 and anything else is a warning and
 * `undefined`, never NaN: a wrong time must not cost the event.
 */
import type { CallDraft } from './parse.ts';
import { unitAt } from '../values/unit-at.ts';

const MILLISECONDS_FROM = 1e12;
/** The last millisecond of the year 9999, the last that ISO 8601 and Postgres write with four digits. */
const INSTANT_MS_MAX = 253_402_300_799_999;

/** True from 1970 to 9999. */
export const isInstantMs = (ms: number): boolean => ms >= 0 && ms <= INSTANT_MS_MAX;

/** What a warning says is done where a time could not be read. */
export type Otherwise = 'the time of receipt is used' | 'it is left out';

/** Reads a timestamp field. Null and an empty text count as absent. */
export function readInstantMs(
  draft: CallDraft,
  value: unknown,
  field: string,
  otherwise: Otherwise,
): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const instantMs =
    typeof value === 'string' ? readText(draft, value, field) : readNumber(draft, value, field);
  if (instantMs !== undefined && isInstantMs(instantMs)) return instantMs;
  draft.warn(
    'timestamp_invalid',
    field,
    `${field} is neither Unix seconds nor an ISO 8601 date-time between 1970 and 9999; ${otherwise}`,
    value,
  );
  return undefined;
}

/** Milliseconds taken for seconds → seconds, with a warning; any other value as it is. For attributes that hold Unix seconds. */
export function secondsFromMilliseconds(draft: CallDraft, value: number, field: string): number {
  if (value < MILLISECONDS_FROM || value > INSTANT_MS_MAX) return value;
  warnMilliseconds(draft, field, value);
  return Math.floor(value / 1_000);
}

function readText(draft: CallDraft, text: string, field: string): number | undefined {
  const isoMs = parseIsoMs(text, false);
  if (isoMs !== undefined) return isoMs;
  return /^\d{1,16}(?:\.\d{1,9})?$/.test(text) ? readNumber(draft, Number(text), field) : undefined;
}

function readNumber(draft: CallDraft, value: unknown, field: string): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  if (value < MILLISECONDS_FROM) return Math.round(value * 1_000);
  if (value > INSTANT_MS_MAX) return undefined;
  warnMilliseconds(draft, field, value);
  return Math.floor(value);
}

function warnMilliseconds(draft: CallDraft, field: string, value: number): void {
  draft.warn(
    'timestamp_in_milliseconds',
    field,
    `${field} is in milliseconds; it must be Unix seconds and was converted`,
    value,
  );
}

/**
 * Reads an ISO 8601 text without a regular expression or a `Date` (30 ns).
 *
 * With `mustBeInstant` only a full date-time with a zone is read: `2024-05-01T10:20:30.123Z`, seconds
 * and fraction optional, offsets `+02:00`, `+0200`, `+02`. Otherwise also a date alone, a space for
 * the `T` (RFC 3339) and a text without a zone. `undefined` for everything else.
 */
export function parseIsoMs(text: string, mustBeInstant: boolean): number | undefined {
  const { length } = text;
  if (length < 10 || length > 35 || unitAt(text, 4) !== 45 || unitAt(text, 7) !== 45)
    return undefined;
  const century = twoDigits(text, 0);
  const yearOfCentury = twoDigits(text, 2);
  const month = twoDigits(text, 5);
  const day = twoDigits(text, 8);
  if (century < 0 || yearOfCentury < 0 || month < 1 || month > 12 || day < 1) return undefined;
  const year = century * 100 + yearOfCentury;
  if (year === 0 || (day > 28 && day > daysInMonth(year, month))) return undefined;
  const dayMs = daysSinceEpoch(year, month, day) * 86_400_000;
  if (length === 10) return mustBeInstant ? undefined : dayMs;

  const separator = unitAt(text, 10);
  if (separator !== 84 && (mustBeInstant || separator !== 32)) return undefined;
  const hour = twoDigits(text, 11);
  const minute = twoDigits(text, 14);
  if (unitAt(text, 13) !== 58 || hour < 0 || hour > 23 || minute < 0 || minute > 59)
    return undefined;
  let at = 16;
  let second = 0;
  let milliseconds = 0;
  if (unitAt(text, at) === 58) {
    second = twoDigits(text, 17);
    if (second < 0 || second > 59) return undefined;
    at = 19;
    if (unitAt(text, at) === 46) {
      let scale = 100;
      const first = ++at;
      for (; at < length; at++) {
        const digit = unitAt(text, at) - 48;
        if (digit < 0 || digit > 9) break;
        milliseconds += digit * scale;
        scale = scale === 100 ? 10 : scale === 10 ? 1 : 0;
      }
      if (at === first || at > first + 9) return undefined;
    }
  }
  const localMs = dayMs + (hour * 60 + minute) * 60_000 + second * 1_000 + milliseconds;
  if (at === length) return mustBeInstant ? undefined : localMs;
  if (unitAt(text, at) === 90) return at + 1 === length ? localMs : undefined;
  const offsetMinutes = readOffsetMinutes(text, at);
  return offsetMinutes === undefined ? undefined : localMs - offsetMinutes * 60_000;
}

/** `+02:00`, `+0200` or `+02` from `at` to the end. */
function readOffsetMinutes(text: string, at: number): number | undefined {
  const sign = unitAt(text, at) === 43 ? 1 : unitAt(text, at) === 45 ? -1 : 0;
  const hours = twoDigits(text, at + 1);
  if (sign === 0 || hours < 0 || hours > 23) return undefined;
  const rest = text.length - at;
  if (rest === 3) return sign * hours * 60;
  const hasColon = unitAt(text, at + 3) === 58;
  if (rest !== (hasColon ? 6 : 5)) return undefined;
  const minutes = twoDigits(text, at + (hasColon ? 4 : 3));
  return minutes < 0 || minutes > 59 ? undefined : sign * (hours * 60 + minutes);
}

/** The number in two digits, or a negative one where they are not digits or not there. */
function twoDigits(text: string, at: number): number {
  const tens = unitAt(text, at) - 48;
  const ones = unitAt(text, at + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Days from 1970-01-01 in the Gregorian calendar, counted in years that begin in March, so that the leap day is the last. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const marchMonth = month > 2 ? month - 3 : month + 9;
  const leapDays =
    Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  // 719,468 days lie between 0000-03-01 and 1970-01-01.
  return marchYear * 365 + leapDays + Math.floor((153 * marchMonth + 2) / 5) + day - 1 - 719_468;
}
