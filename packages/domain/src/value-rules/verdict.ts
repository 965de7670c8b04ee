/** Verdict of a rule of `value-rules.ts` about one value. */

/** `too_long` and `out_of_range`: of the right form, but of a size that is not taken. */
export type FaultCode = 'invalid' | 'too_long' | 'out_of_range';

export interface Fault {
  readonly outcome: 'refused';
  readonly code: FaultCode;
  /** Follows the field's name in a sentence: `must be a string`. */
  readonly because: string;
}

export type Verdict<Value> =
  /** Undefined, null, and text that is empty or blank. */
  | { readonly outcome: 'absent' }
  | {
      readonly outcome: 'read';
      readonly value: Value;
      /** Set if the value was changed, for a warning to its sender. */
      readonly change?: 'trimmed' | 'milliseconds';
    }
  | Fault;

export const ABSENT = { outcome: 'absent' } as const;

export const refused = (because: string, code: FaultCode = 'invalid'): Fault => ({
  outcome: 'refused',
  code,
  because,
});

/** True for undefined, null and blank text, which every entrance treats as absent. */
export const isAbsent = (value: unknown): value is undefined | null | string =>
  value === undefined || value === null || (typeof value === 'string' && isBlank(value));

/** The first unit decides for nearly every text, because it is beyond the blank. */
const isBlank = (text: string): boolean =>
  text === '' || (isBlankUnit(text.charCodeAt(0)) && trimmed(text) === '');

/**
 * Characters that are removed at both ends of a text. They are the ones that `String.prototype.trim` cuts, and the
 * separators of files and lines and NEL, which other languages cut as well. Characters without a width are among them
 * (zero width spaces, word joiners, soft hyphens, marks of direction), which come with text that was copied from a page
 * or a sheet.
 */
export const BLANKS =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\xad\u1680\u180e' +
  '\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f' +
  '\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u202f\u205f\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\u3000\ufeff';

/** The text without blanks and line breaks at its ends; the very text if it has no such ends. */
export function trimmed(text: string): string {
  // The unit behind either end of a text is NaN, which is not blank.
  let start = 0;
  let end = text.length;
  while (isBlankUnit(text.charCodeAt(start))) start++;
  while (isBlankUnit(text.charCodeAt(end - 1))) end--;
  return end - start === text.length ? text : text.slice(start, end);
}

const BLANK_UNITS: ReadonlySet<number> = new Set(
  Array.from(BLANKS, (blank) => blank.charCodeAt(0)),
);

/** Of ASCII only 0x20 and below are blank, so few texts need the set. */
const isBlankUnit = (unit: number): boolean =>
  (unit <= 0x20 || unit >= 0x7f) && BLANK_UNITS.has(unit);
