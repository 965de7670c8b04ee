/**
 * The ids that the service itself gives: `a3000001` for person 1, `ob000001` for object 1.
 *
 * Each is its number written differently, so it needs no storage and no look-up. It never changes and never comes back:
 * numbers are not used twice.
 */

const PERSON_PREFIX = 'a3';
const OBJECT_PREFIX = 'ob';
const DIGIT_COUNT_MIN = 6;
/** Below 2^52, so every number of this many digits is exact. */
const DIGIT_COUNT_MAX = 13;

/** A person's svc_id. */
export function svcId(personId: number): string {
  return PERSON_PREFIX + personId.toString(16).padStart(DIGIT_COUNT_MIN, '0');
}

/** The person that a svc_id means; undefined for text that no svc_id looks like. */
export function personIdOf(text: string): number | undefined {
  return numberOf(PERSON_PREFIX, text);
}

/** An object's svc object id. */
export function svcObjectId(objectNumber: number): string {
  return OBJECT_PREFIX + objectNumber.toString(16).padStart(DIGIT_COUNT_MIN, '0');
}

/** The object that a svc object id means; undefined for text of another form. */
export function objectNumberOf(text: string): number | undefined {
  return numberOf(OBJECT_PREFIX, text);
}

/** Only the one spelling that we write is read, so that two texts are never the same person. */
function numberOf(prefix: string, text: string): number | undefined {
  const digits = text.slice(prefix.length);
  if (!text.startsWith(prefix) || digits.length > DIGIT_COUNT_MAX || !/^[0-9a-f]+$/.test(digits))
    return undefined;
  const number = Number.parseInt(digits, 16);
  const isCanonical = number > 0 && digits === number.toString(16).padStart(DIGIT_COUNT_MIN, '0');
  return isCanonical ? number : undefined;
}
