/**
 * `Retry-After` of an answer (RFC 9110 §10.2.3): whole seconds, or a date in any of the three forms of RFC 9110 §5.6.7.
 * Any other value is ignored.
 *
 * Step 12 of the walk. Before: `worker/src/lane/lane-attempts.ts`. After: `delivery-schedule.ts` bounds it.
 */

const FIELD = /^retry-after:(.*)/im;
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const TIME = String.raw`(\d\d):(\d\d):(\d\d)`;
/** `Sun, 06 Nov 1994 08:49:37 GMT`, the form that senders must write. */
const FIXED_DATE = new RegExp(String.raw`^[a-z]{3}, (\d\d) ([a-z]{3}) (\d{4}) ${TIME} gmt$`, 'i');
/** `Sunday, 06-Nov-94 08:49:37 GMT` */
const RFC_850_DATE = new RegExp(
  String.raw`^[a-z]{6,9}, (\d\d)-([a-z]{3})-(\d\d) ${TIME} gmt$`,
  'i',
);
/** `Sun Nov  6 08:49:37 1994` */
const ASCTIME_DATE = new RegExp(String.raw`^[a-z]{3} ([a-z]{3}) ([ \d]\d) ${TIME} (\d{4})$`, 'i');

/** More than `delivery-schedule.ts` ever grants. As many digits as a head may have would be no time, but infinite. */
const SECONDS_MAX = 1_000_000_000;

/**
 * The time of the next request that the receiver asks for, Unix milliseconds; undefined if the head has no readable
 * one.
 *
 * @param head - status line and header fields, a line each.
 * @param endedAtMs - the time from which seconds count.
 */
export function retryAfterMs(head: string, endedAtMs: number): number | undefined {
  const value = FIELD.exec(head)?.[1]?.trim();
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return endedAtMs + Math.min(Number(value), SECONDS_MAX) * 1000;
  return dateMs(value, endedAtMs);
}

function dateMs(value: string, nowMs: number): number | undefined {
  const fixed = FIXED_DATE.exec(value);
  if (fixed) return timeOf(fixed[3], fixed[2], fixed[1], fixed.slice(4));
  const ascii = ASCTIME_DATE.exec(value);
  if (ascii) return timeOf(ascii[6], ascii[1], ascii[2], ascii.slice(3, 6));
  const short = RFC_850_DATE.exec(value);
  if (!short) return undefined;
  // Two digits that would be more than 50 years ahead are of the century before.
  const year = new Date(nowMs).getUTCFullYear();
  const near = year - (year % 100) + Number(short[3]);
  return timeOf(String(near > year + 50 ? near - 100 : near), short[2], short[1], short.slice(4));
}

function timeOf(
  year: string | undefined,
  monthName: string | undefined,
  day: string | undefined,
  [hour, minute, second]: readonly string[],
): number | undefined {
  const month = MONTHS.indexOf((monthName ?? '').toLowerCase());
  if (month < 0) return undefined;
  const numbers = [day, hour, minute, second].map(Number) as [number, number, number, number];
  return Date.UTC(Number(year), month, ...numbers);
}
