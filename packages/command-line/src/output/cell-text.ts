/** A value of the API in the words of a table. Documents (`--json`) are exact and do not come here. */
import { ageText, instantText } from '@sluice/console/sentences/time-text';
import { printable } from '@sluice/domain/values/printable';

/** Before it a number is no time of ours: the year 2001 in Unix seconds. */
const SECONDS_MIN = 1_000_000_000;

/** @param name - of the member: one that ends in `_at` or `_at_ms`, or is `since`, `until` or `timestamp`, is a time. */
export function cellText(name: string, value: unknown, nowMs: number): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'object' && Object.keys(value).length === 0) return '-';
  const atMs = timeOf(name, value);
  if (atMs !== undefined) return timeText(atMs, nowMs);
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

/** `2026-11-25 18:37:10 UTC (in 59 min)`. */
const timeText = (atMs: number, nowMs: number): string =>
  `${instantText(atMs, { isWhole: true })} (${ageText(atMs, nowMs)})`;

/** In Unix milliseconds; undefined for a value that is no time. The API has Unix seconds, `…_ms` and ISO 8601. */
function timeOf(name: string, value: unknown): number | undefined {
  if (/(?:^|_)at_ms$/.test(name) && typeof value === 'number')
    return value >= SECONDS_MIN * 1_000 ? value : undefined;
  if (!/(?:^|_)at$|^(?:since|until|timestamp)$/.test(name)) return undefined;
  if (typeof value === 'number') return value >= SECONDS_MIN ? value * 1_000 : undefined;
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT/.test(value)) return undefined;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : atMs;
}
