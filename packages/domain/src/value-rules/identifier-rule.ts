/**
 * Identifiers: texts that are compared exactly (ids, tokens, event ids), and emails.
 *
 * Blanks and line breaks at the ends are removed: they come from cells, forms and files, and would make two people
 * whose difference is invisible. Apart from that an identifier is kept exactly or refused, never mended.
 */
import { isLongerThan, isStorableText, utf8SizeBytes } from '../values/storable-text.ts';
import { ABSENT, refused, trimmed, type Verdict } from './verdict.ts';

/**
 * One `@`; a local part and a domain with a dot; no spaces, quotes, brackets or list signs. Of characters without a
 * width it allows only the joiners of some scripts' letters. Linear: no two parts can share a character.
 */
const EMAIL =
  /^[^\s\p{Cc}\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"(),:;<>@[\\\]]+@(?:[\p{L}\p{N}\p{M}-]+\.)+[\p{L}\p{N}\p{M}-]{2,}$/u;

/**
 * True for texts that the service takes for an email address without a further hint. Deliberately plainer than RFC
 * 5322: quoted local parts and literal addresses are ids here.
 */
export function isEmail(text: string): boolean {
  return text.includes('@') && EMAIL.test(text);
}

const CAPITALS = /[A-Z]+/g;

/**
 * An email as it is compared: A to Z count as a to z. No other letter is changed. Letters that Unicode folds together
 * (the Kelvin sign and `k`) are different mailboxes, and the owner of one must not pass for the other.
 */
export const foldEmail = (email: string): string =>
  // Nearly all are folded already, and V8 then gives back the same text.
  email.toLowerCase() === email
    ? email
    : email.replace(CAPITALS, (letters) => letters.toLowerCase());

/** Null, undefined and blank are absent; a number is its digits. */
export function judgeIdentifier(
  value: unknown,
  sizeBytesMax: number,
  mayBeUnstorable = true,
): Verdict<string> {
  if (value === undefined || value === null) return ABSENT;
  if (typeof value === 'number') return judgeNumber(value);
  if (typeof value !== 'string') return refused('must be a string');
  const text = trimmed(value);
  if (text === '') return ABSENT;
  if (mayBeUnstorable && !isStorableText(text))
    return refused('holds U+0000 or half of a surrogate pair, which cannot be stored');
  if (isLongerThan(text, sizeBytesMax))
    return refused(
      `is ${utf8SizeBytes(text)} bytes long; the bound is ${sizeBytesMax}`,
      'too_long',
    );
  return text.length === value.length
    ? { outcome: 'read', value: text }
    : { outcome: 'read', value: text, change: 'trimmed' };
}

/** An identifier that must be an email address; as it was written, `foldEmail` is for comparing. */
export function judgeEmail(
  value: unknown,
  sizeBytesMax: number,
  mayBeUnstorable = true,
): Verdict<string> {
  const verdict = judgeIdentifier(value, sizeBytesMax, mayBeUnstorable);
  return verdict.outcome === 'read' && !isEmail(verdict.value)
    ? refused('is not an email address')
    : verdict;
}

function judgeNumber(value: number): Verdict<string> {
  return !Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER
    ? refused('has more digits than a JSON number keeps; send it as a string')
    : { outcome: 'read', value: String(value) };
}
