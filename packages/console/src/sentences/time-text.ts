/** Times and durations in words. Pure. */

export interface InstantForm {
  /** In the zone of this machine. */
  readonly isLocal?: boolean;
  /** In this zone, such as `Europe/Berlin`. */
  readonly zone?: string | undefined;
  /** To the second. */
  readonly isWhole?: boolean;
}

/** `2026-11-25 17:37:10.959 UTC`. Times of another zone have their offset, `… +02:00`. */
export function instantText(
  atMs: number,
  { isLocal = false, zone, isWhole = false }: InstantForm = {},
): string {
  const localMinutes = isLocal ? -new Date(atMs).getTimezoneOffset() : 0;
  const offsetMinutes = zone === undefined ? localMinutes : offsetOf(zone, atMs);
  const iso = new Date(atMs + offsetMinutes * 60_000).toISOString();
  const text = iso.replace('T', ' ').slice(0, isWhole ? 19 : 23);
  const isUtc = offsetMinutes === 0 && (zone !== undefined || !isLocal);
  return `${text} ${isUtc ? 'UTC' : offsetText(offsetMinutes)}`;
}

/** By their zones: making one takes longer than the text of a row. */
const forms = new Map<string, Intl.DateTimeFormat>();

/** Minutes east of UTC; 0 for a zone that this browser does not know. */
function offsetOf(zone: string, atMs: number): number {
  try {
    const form =
      forms.get(zone) ??
      new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
    forms.set(zone, form);
    const name = form.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign = '+', hours = '0', minutes = '0'] = /^GMT([+-])(\d\d):(\d\d)/.exec(name) ?? [];
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
  } catch {
    return 0;
  }
}

function offsetText(minutes: number): string {
  const size = Math.abs(minutes);
  const two = (count: number): string => String(count).padStart(2, '0');
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** In the largest unit that fits twice, else once: `90 s`, `59 min`, `24 ms`. */
export function durationText(durationMs: number): string {
  for (const [unit, unitMs] of UNITS)
    if (durationMs >= 2 * unitMs || (unit === 's' && durationMs >= unitMs))
      return `${Math.round(durationMs / unitMs)} ${unit}`;
  return `${Math.max(0, Math.round(durationMs))} ms`;
}

export function ageText(atMs: number, nowMs: number): string {
  const ageMs = nowMs - atMs;
  if (Math.abs(ageMs) < 1_000) return 'now';
  return ageMs > 0 ? `${durationText(ageMs)} ago` : `in ${durationText(-ageMs)}`;
}
