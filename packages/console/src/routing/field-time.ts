/**
 * Times in fields of the browser. A field has the zone of the times beside it: UTC, or local. The address and the API have
 * UTC. Pure, but for the zone of this machine.
 */

/** `2026-11-25T17:37`, with seconds or without. */
type FieldText = string;

/** @param text - of UTC; one that is no time is returned as it is. */
export function fieldText(text: FieldText, isLocal: boolean): FieldText {
  const at = new Date(`${text}Z`);
  if (!isLocal || Number.isNaN(at.getTime())) return text;
  return localText(at).slice(0, text.length);
}

/** The inverse of {@link fieldText}. */
export function utcText(field: FieldText, isLocal: boolean): FieldText {
  const at = new Date(field);
  if (!isLocal || Number.isNaN(at.getTime())) return field;
  return at.toISOString().slice(0, field.length);
}

/**
 * First or last millisecond of the day, as the API writes it.
 *
 * @param day - `2026-11-25`; the API refuses the bound of one that no calendar has.
 */
export function boundOfDay(day: string, end: 'first' | 'last', isLocal: boolean): string {
  const time = end === 'first' ? '00:00:00.000' : '23:59:59.999';
  const at = new Date(`${day}T${time}${isLocal ? '' : 'Z'}`);
  return Number.isNaN(at.getTime()) ? `${day}T${time}Z` : at.toISOString();
}

/** The day of a time, or of the bound of a day of UTC. @param text - `2026-11-25`, or with a time of UTC */
export function dayOf(text: string, end: 'first' | 'last', isLocal: boolean): string {
  const at = new Date(text.length === 10 ? boundOfDay(text, end, false) : text);
  if (Number.isNaN(at.getTime())) return '';
  return (isLocal ? localText(at) : at.toISOString()).slice(0, 10);
}

/** For a label. */
export const zoneLabel = (isLocal: boolean): string => (isLocal ? 'local' : 'UTC');

const localText = (at: Date): string =>
  new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
