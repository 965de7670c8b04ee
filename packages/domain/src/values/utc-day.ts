/**
 * UTC days as texts, `2026-03-31`, for usage. No function here knows a time zone: months are counted as year × 12 +
 * month, days as whole days since 1970 (`account-conventions.md` §2, `usage start default`).
 */

/** `YYYY-MM-DD`, a day that exists. Days compare as texts do. */
export type UtcDay = string;

const DAY_MS = 86_400_000;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
/** No usage is older, and Postgres has no year 0 to count back to. */
const FIRST_DAY: UtcDay = '1970-01-01';

/** The day that a moment belongs to. @param atMs - Unix milliseconds. */
export const utcDayOf = (atMs: number): UtcDay => new Date(atMs).toISOString().slice(0, 10);

/** Undefined if it is not written so, there is no such day, or it is before 1970. */
export function parseUtcDay(text: string): UtcDay | undefined {
  if (!DAY.test(text) || text < FIRST_DAY) return undefined;
  // `Date.parse` rolls 2026-02-30 over into March.
  const atMs = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(atMs) && utcDayOf(atMs) === text ? text : undefined;
}

/** @param days - may be negative. */
export const addDays = (day: UtcDay, days: number): UtcDay =>
  utcDayOf(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS);

/** How many days `last` is after `first`. */
export const daysBetween = (first: UtcDay, last: UtcDay): number =>
  (Date.parse(`${last}T00:00:00Z`) - Date.parse(`${first}T00:00:00Z`)) / DAY_MS;

/** The first day of the month that is `months` after the month of `day`. @param months - may be negative. */
export function firstOfMonth(day: UtcDay, months = 0): UtcDay {
  const count = Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1 + months;
  const year = String(Math.floor(count / 12)).padStart(4, '0');
  return `${year}-${String((count % 12) + 1).padStart(2, '0')}-01`;
}

/** The Monday of the day's ISO week. */
export function mondayOf(day: UtcDay): UtcDay {
  const daysSinceMonday = (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;
  return addDays(day, -daysSinceMonday);
}

/** Both ends included. */
export interface DayRange {
  readonly start: UtcDay;
  readonly end: UtcDay;
}

/** Six whole calendar months, the one of `end` included. */
const DEFAULT_MONTHS_BEFORE = 5;

/**
 * The range that is asked for (`account-billing.md` §4, Inbox previews). A future day counts as today. Without a start
 * it is six calendar months.
 *
 * @returns undefined if it begins after it ends.
 */
export function usageRange(
  given: { readonly start?: UtcDay | undefined; readonly end?: UtcDay | undefined },
  today: UtcDay,
): DayRange | undefined {
  const end = given.end === undefined || given.end > today ? today : given.end;
  const start = given.start ?? firstOfMonth(end, -DEFAULT_MONTHS_BEFORE);
  return start > end ? undefined : { start, end };
}
