/**
 * The monthly allowance: the credits that a plan grants each calendar month (UTC), until its end.
 *
 * Its key is month and plan, so every process may grant it and it is granted once. After an upgrade the difference is
 * granted. An account that buys a plan again receives the credits that were taken back with the first price
 * (`database/src/credits/credits.ts`). From the moment of a change the allowance is the new plan's: unspent credits
 * above it are taken back.
 */
import type { CreditKind, Plan } from './catalogue.ts';

export const CREDIT_KINDS: readonly CreditKind[] = ['llm', 'builder', 'inbox_previews'];

export interface Allowance {
  /** Credits that the plan includes, even if another plan has granted some in this month already. */
  readonly included: number;
  readonly endsAtMs: number;
  /** The grant's key: the fact that it comes from. */
  readonly key: string;
}

/** The first moment of the next calendar month (UTC). */
export function monthEndOf(nowMs: number): number {
  const today = new Date(nowMs);
  return Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1, 1);
}

/** The plan's allowance in the month of that moment; undefined if it includes no credits of that kind. */
export function allowanceOf(plan: Plan, kind: CreditKind, nowMs: number): Allowance | undefined {
  const included = plan.included[kind];
  if (included === 0 || plan.tier === 'builder') return undefined;
  const today = new Date(nowMs);
  return {
    included,
    endsAtMs: monthEndOf(nowMs),
    key: `allowance:${today.toISOString().slice(0, 7)}:${plan.id}`,
  };
}

/** Key for credits of a purchase if the allowance's own key is used: the plan was bought before in the month. */
export const boughtAgainKey = (key: string, runId: string): string => `${key}:${runId}`;
