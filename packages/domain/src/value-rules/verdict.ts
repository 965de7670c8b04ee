/** What a rule of `value-rules.ts` says of one value. */

/** `too_long` and `out_of_range`: of the right form, but of a size that is not taken. */
export type FaultCode = 'invalid' | 'too_long' | 'out_of_range';

export interface Fault {
  readonly outcome: 'refused';
  readonly code: FaultCode;
  /** Follows the field's name in a sentence: `must be a string`. */
  readonly because: string;
}

export type Verdict<Value> =
  /** Undefined, null, and text with nothing but blanks in it. */
  | { readonly outcome: 'absent' }
  | {
      readonly outcome: 'read';
      readonly value: Value;
      /** Set where it means something else than it says, for its sender to be told. */
      readonly change?: 'trimmed' | 'milliseconds';
    }
  | Fault;

export const ABSENT = { outcome: 'absent' } as const;

export const refused = (because: string, code: FaultCode = 'invalid'): Fault => ({
  outcome: 'refused',
  code,
  because,
});

/** True for undefined, null and blank text: what every door takes for nothing. */
export const isAbsent = (value: unknown): value is undefined | null | string =>
  value === undefined || value === null || (typeof value === 'string' && isBlank(value));

/** Nearly every text is told by its first unit, which is beyond the blank. */
const isBlank = (text: string): boolean =>
  text === '' || ((text.charCodeAt(0) <= 0x20 || text.charCodeAt(0) >= 0x7f) && text.trim() === '');

/** The text without blanks and line breaks at its ends; the very text where there are none. */
export function trimmed(text: string): string {
  const first = text.charCodeAt(0);
  const last = text.charCodeAt(text.length - 1);
  // Of ASCII only 0x20 and below are blank; no text begins and ends so but few.
  return first > 0x20 && first < 0x7f && last > 0x20 && last < 0x7f ? text : text.trim();
}
