/**
 * ULIDs as ids of events and commit batches. By their specification both letter cases are the same; they are kept in
 * upper case. The first ten characters are the time.
 */
const ULID_IN_ANY_CASE = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i;
const TIME_LENGTH = 10;
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const isUlid = (text: string): boolean => text.length === 26 && ULID_IN_ANY_CASE.test(text);

/** How an event id is kept and compared: a ULID in upper case, any other text as it is. */
export function storedEventId(eventId: string): string {
  return isUlid(eventId) ? eventId.toUpperCase() : eventId;
}

/** When a ULID was made, Unix milliseconds; undefined for any other text. */
export function ulidTimeMs(text: string): number | undefined {
  if (!isUlid(text)) return undefined;
  let timeMs = 0;
  for (const digit of text.slice(0, TIME_LENGTH).toUpperCase())
    timeMs = timeMs * DIGITS.length + DIGITS.indexOf(digit);
  return timeMs;
}
