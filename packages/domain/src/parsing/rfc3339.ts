/**
 * A time bound as RFC 3339 writes it → Unix milliseconds, exactly: a lower bound with digits beyond the
 * millisecond is rounded up, an upper one down, so that neither lets an entry through that it excludes.
 *
 * Stricter than `parseIsoMs`: seconds, zone and both colons are needed. One mistake is forgiven, for
 * every client makes it: in a query `+02:00` that was not percent-encoded arrives as ` 02:00`.
 */
import { parseIsoMs } from '../value-rules/iso-instant.ts';

const RFC_3339 =
  /^\d{4}-\d{2}-\d{2}[Tt ](?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.\d{3}(?<beyond>\d{1,30})|\.\d{1,3})?(?:[Zz]|[+ -]\d{2}:\d{2})$/;

/** Times are answered in UTC, and a zone may lead out of the years that RFC 3339 can write. */
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Undefined if it is not RFC 3339 or there is no such time. */
export function parseRfc3339Ms(text: string, rounding: 'up' | 'down'): number | undefined {
  const matched = RFC_3339.exec(text);
  if (!matched) return undefined;
  const iso = `${text.slice(0, 10)}T${text.slice(11).toUpperCase().replace(' ', '+')}`;
  const ms = parseIsoMs(iso, true);
  if (ms === undefined) return undefined;
  const isBeyond = /[1-9]/.test(matched.groups?.['beyond'] ?? '');
  const rounded = isBeyond && rounding === 'up' ? ms + 1 : ms;
  return rounded <= LAST_MS ? rounded : undefined;
}
