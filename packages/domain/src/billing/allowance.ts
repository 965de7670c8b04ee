/**
 * The monthly allowance: a grant that a plan brings each calendar month (UTC) and that ends with it. Its key is month
 * and plan, so it is granted once, whoever grants it and however often; after an upgrade the difference is granted, and
 * to who buys a plan again what was taken back with the price of the first time (`database/src/credits/credits.ts`).
 * From the moment of a change on it is what the new plan includes: of a greater one what is not spent is taken back.
 */
import type { CreditKind, Plan } from './catalogue.ts';

export const CREDIT_KINDS: readonly CreditKind[] = ['llm', 'builder', 'inbox_previews'];

export interface Allowance {
  /** What the plan includes, whatever another plan has given this month already. */
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

/** What the plan brings in the month of that moment; undefined if it includes none of that kind. */
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

/** The key of what a purchase brings of an allowance whose own key is used: the plan was bought before in the month. */
export const boughtAgainKey = (key: string, runId: string): string => `${key}:${runId}`;
