/**
 * Next step of a purchase workflow, from its recorded steps. The orders of steps stand at `nextMove`.
 *
 * A purchase workflow without success leaves no invoice that can be collected later: its invoice is voided before the
 * ending is recorded. If the invoice turns out to be paid, the purchase workflow has succeeded.
 *
 * A step has an **intent**, written before the payment provider is called, with the idempotency key of its attempt. A
 * step that provably had no effect (`absent`) is tried under the next attempt's key, after a wait like any other. A
 * step with an unknown outcome is called again under the same key.
 *
 * Pure; `worker/src/purchases/advance-purchase-workflow.ts` makes the moves.
 */
import type { PaymentMethodType, PurchaseEnding, PurchaseKind } from './purchase-workflow.ts';

export type StepName =
  | 'customer'
  | 'invoice'
  | 'line'
  | 'finalize'
  | 'pay'
  | 'void'
  | 'inspect'
  | 'apply'
  | 'subscribe';

export type StepState = 'intent' | 'done' | 'declined' | 'refused' | 'absent';

export interface StepRecord {
  readonly step: StepName;
  /** From 1. */
  readonly attempt: number;
  readonly state: StepState;
  /** A person has looked at it since, and lets the step be tried as often again. */
  readonly isForgiven?: boolean;
}

export type NextMove =
  | { readonly move: 'do'; readonly step: StepName; readonly attempt: number }
  | { readonly move: 'wait-for-payment' }
  /** The step has been tried so often that a person has to look. */
  | { readonly move: 'park'; readonly step: StepName }
  | { readonly move: 'finish'; readonly status: PurchaseEnding };

/**
 * More attempts than this mean a mistake of the payment provider, or of ours. With two waits each, for an answer and
 * before the next key, they last six hours.
 */
const ATTEMPT_COUNT_MAX = 8;

const ORDERS: Record<'invoiced' | 'card' | 'addons' | 'checkout', readonly StepName[]> = {
  invoiced: ['customer', 'invoice', 'line', 'finalize', 'pay'],
  card: ['customer', 'invoice', 'line', 'finalize'],
  addons: ['customer', 'inspect', 'apply'],
  checkout: ['customer', 'subscribe'],
};

/** The idempotency key of one attempt at one step: the same after every crash. */
export const idempotencyKey = (runId: string, step: StepName, attempt: number): string =>
  `${runId}:${step}:${attempt}`;

/**
 * The next move of a purchase workflow.
 *
 *     purchase, invoiced    customer → invoice → line → finalize → pay ──▶ success
 *                                                           │      └ a bank takes days ▷ paid ──▶ success
 *                                                           └ no, at once or then ▶ void ──▶ declined, failed
 *     purchase, card        customer → invoice → line → finalize ▷ the customer pays ──▶ success
 *                                                           └ time is over ▶ void ──▶ failed
 *     add-ons               customer → inspect → apply ──▶ success, refused, declined
 *     checkout              customer → subscribe ──▶ success, failed
 *
 * An invoice that the customer's credit pays ends the purchase workflow at `finalize`.
 *
 * @param isExpired - payment by card: the time to pay is over.
 */
export function nextMove(
  purchaseWorkflow: {
    readonly kind: PurchaseKind;
    readonly rail: PaymentMethodType;
    readonly isExpired: boolean;
  },
  steps: readonly StepRecord[],
): NextMove {
  const workflow =
    purchaseWorkflow.kind === 'addons' || purchaseWorkflow.kind === 'checkout'
      ? purchaseWorkflow.kind
      : purchaseWorkflow.rail;
  for (const step of ORDERS[workflow]) {
    const last = lastOf(steps, step);
    if (last?.state === 'done') continue;
    if (last?.state === 'declined' || last?.state === 'refused')
      return endWithout(
        steps,
        last.state === 'declined' ? 'declined' : 'failed',
        purchaseWorkflow.kind,
      );
    return attemptAt(steps, step);
  }
  if (workflow === 'addons' || workflow === 'checkout')
    return { move: 'finish', status: 'success' };
  // If the payment was recorded, it has ended the purchase workflow. That an invoice was taken on for payment is no
  // ending: a bank decides days later.
  return workflow === 'card' && purchaseWorkflow.isExpired
    ? endWithout(steps, 'failed', purchaseWorkflow.kind)
    : { move: 'wait-for-payment' };
}

function endWithout(
  steps: readonly StepRecord[],
  status: 'declined' | 'failed',
  kind: PurchaseKind,
): NextMove {
  const mustVoid = lastOf(steps, 'invoice')?.state === 'done';
  const voided = lastOf(steps, 'void');
  if (mustVoid && voided?.state !== 'done') return attemptAt(steps, 'void');
  // A checkout knows no "declined" (`account-billing.md` §3).
  return { move: 'finish', status: kind === 'checkout' ? 'failed' : status };
}

function attemptAt(steps: readonly StepRecord[], step: StepName): NextMove {
  const last = lastOf(steps, step);
  if (!last) return { move: 'do', step, attempt: 1 };
  if (last.state === 'intent') return { move: 'do', step, attempt: last.attempt };
  const attempts = steps.filter((record) => record.step === step && record.isForgiven !== true);
  // Attempts keep counting after a person has allowed another try: the payment provider still knows the earlier keys.
  return attempts.length >= ATTEMPT_COUNT_MAX
    ? { move: 'park', step }
    : { move: 'do', step, attempt: last.attempt + 1 };
}

function lastOf(steps: readonly StepRecord[], step: StepName): StepRecord | undefined {
  return steps
    .filter((record) => record.step === step)
    .toSorted((one, other) => other.attempt - one.attempt)[0];
}

const SECOND_MS = 1_000;
/** After the quick ones: as long as a payment provider's outage lasts. */
const RETRY_DELAYS_MS = [0.2, 1, 3, 10, 30, 60, 120, 300, 600, 1_200, 3_600].map(
  (seconds) => seconds * SECOND_MS,
);

/** How long to wait before the payment provider is asked again. @param count - earlier waits since it did a step. */
export function retryDelayMs(count: number): number {
  return RETRY_DELAYS_MS[Math.min(count, RETRY_DELAYS_MS.length - 1)] as number;
}

/**
 * The payment provider may forget a key after 24 h, and would then act a second time. From this age on an intent is
 * looked up, never called again (`account-conventions.md` §5.4).
 */
export const INTENT_REPLAY_MS_MAX = 23 * 3_600 * SECOND_MS;
