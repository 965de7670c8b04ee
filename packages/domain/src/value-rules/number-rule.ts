/** Whole numbers that name something: object types, segments. */
import { ABSENT, isAbsent, refused, trimmed, type Verdict } from './verdict.ts';

/** Postgres `integer`. */
export const INTEGER_MAX = 2_147_483_647;

/** An integer from 1 to 2,147,483,647, also as text; null, undefined and blank are absent. */
export function judgePositiveInteger(value: unknown): Verdict<number> {
  if (isAbsent(value)) return ABSENT;
  const text = typeof value === 'string' ? trimmed(value) : undefined;
  const given = text === undefined ? value : /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  // False for any other type than a number.
  const number = Number.isInteger(given) ? (given as number) : 0;
  return number >= 1 && number <= INTEGER_MAX
    ? { outcome: 'read', value: number }
    : refused(`must be an integer from 1 to ${INTEGER_MAX}`);
}
