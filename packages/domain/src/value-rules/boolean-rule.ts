/** Booleans, however a client writes them (`ingestion-conventions.md` §1.3). */
import { ABSENT, isAbsent, refused, trimmed, type Verdict } from './verdict.ts';

/** `true`, 1, "1" and "true" in any letter case are true; false likewise; null, undefined and blank are absent. */
export function judgeBoolean(value: unknown): Verdict<boolean> {
  if (typeof value === 'boolean') return { outcome: 'read', value };
  if (isAbsent(value)) return ABSENT;
  const text =
    typeof value === 'string'
      ? trimmed(value).toLowerCase()
      : typeof value === 'number'
        ? String(value)
        : '';
  if (text === 'true' || text === '1') return { outcome: 'read', value: true };
  if (text === 'false' || text === '0') return { outcome: 'read', value: false };
  return refused('is neither true nor false');
}

/** True for the values that the rule reads as true; false for any other. */
export function isTrue(value: unknown): boolean {
  const verdict = judgeBoolean(value);
  return verdict.outcome === 'read' && verdict.value;
}
