/**
 * Retry schedule of failed deliveries, and their end.
 *
 * The schedule is a function of the attempts of the delivery. There is no other state.
 *
 *   pending ──2xx──────────────────────────────▶ delivered
 *      │ failure
 *      ▼
 *   retrying ──2xx─────────────────────────────▶ delivered
 *      │ ▲ └─ failure before give-up: wait, again (`judgeFailure`)
 *      └─── failure at or after give-up ───────▶ abandoned
 *
 * Pure: the clock and the chance are arguments. Step 12 of the walk, before and after: `lane.ts`.
 */
import { isListedFailure, type DeliveryFailure } from './delivery-failure.ts';

/**
 * Seven days (`ingestion-webhooks.md` §8): the default of the workers, and of the API, which shows when a delivery
 * ends.
 */
export const GIVE_UP_AFTER_MS_DEFAULT = 7 * 24 * 3_600_000;

/** The longest that `Retry-After` counts for, from the end of the attempt. */
const RETRY_AFTER_MS_MAX = 3_600_000;

/** The rules' numbers. The defaults of `worker/src/process/webhook-settings.ts` are the spec's, if it has one. */
export interface DeliveryPolicy {
  readonly listedFailureWaitMs: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
  /** From the first attempt. */
  readonly giveUpAfterMs: number;
}

/** A delivery's failed attempts so far, as the schedule needs them. */
export interface RetryState {
  readonly attempts: number;
  /** When the first attempt started, Unix milliseconds; null before it. */
  readonly firstAttemptAtMs: number | null;
  readonly hasWaitedListed: boolean;
  /** Exponential steps taken. */
  readonly backoffSteps: number;
}

export const NEVER_ATTEMPTED: RetryState = {
  attempts: 0,
  firstAttemptAtMs: null,
  hasWaitedListed: false,
  backoffSteps: 0,
};

export interface FailedAttempt extends DeliveryFailure {
  readonly startedAtMs: number;
  /** Of the answer's `Retry-After`, Unix milliseconds; undefined if the answer has no such header. */
  readonly retryAfterMs?: number | undefined;
}

/** The state after one more failed attempt. */
export function addFailure(
  state: RetryState,
  attempt: FailedAttempt,
): RetryState & { readonly firstAttemptAtMs: number } {
  const waitsListed = isListedFailure(attempt) && !state.hasWaitedListed;
  return {
    attempts: state.attempts + 1,
    firstAttemptAtMs: state.firstAttemptAtMs ?? attempt.startedAtMs,
    hasWaitedListed: state.hasWaitedListed || waitsListed,
    backoffSteps: state.backoffSteps + (waitsListed ? 0 : 1),
  };
}

export type FailureVerdict =
  | {
      readonly outcome: 'retrying';
      readonly retry: RetryState;
      readonly nextAttemptAtMs: number;
      /** The answer asks that the endpoint be left alone until then, by the one-hour list or by `Retry-After`. Else past. */
      readonly restsUntilMs: number;
    }
  | { readonly outcome: 'abandoned'; readonly retry: RetryState };

/**
 * Judges a failed attempt: the wait before the next one, or the end.
 *
 * The first listed failure of a delivery waits exactly the listed time (one hour). Every other failure takes the next
 * exponential step, base × 2ⁿ up to the cap, and waits a random time between half of it and all of it. So waits never
 * get shorter, and lanes that failed together do not come back together. "One hour, then exponential" leaves open
 * whether a listed failure later in a delivery's life waits an hour again; one hour once fits both readings.
 *
 * A later time in `Retry-After` puts the next attempt off, by an hour after the failure at most: a receiver may ask for
 * rest, not for silence. It never shortens a wait.
 *
 * Deliveries that failed beside one another wait together (`lane.ts`): each waits for the hour of all of them. So a
 * wait may be longer than its own delivery needs, and another's success never cuts an hour short; only a person does
 * (`skipHead` and `probe` of `database/src/replays/lane-actions.ts`).
 *
 * The last attempt is made at the give-up time itself. So every delivery is tried at the end, and is given up after
 * that attempt. Give-up counts from the delivery's own first attempt, not from the first failure of its lane.
 *
 * @param endedAtMs - when the failure was known; waits count from here.
 * @param chance - 0 ≤ chance < 1.
 */
export function judgeFailure(
  before: RetryState,
  attempt: FailedAttempt,
  endedAtMs: number,
  policy: DeliveryPolicy,
  chance: number,
): FailureVerdict {
  const retry = addFailure(before, attempt);
  const giveUpAtMs = retry.firstAttemptAtMs + policy.giveUpAfterMs;
  if (endedAtMs >= giveUpAtMs) return { outcome: 'abandoned', retry };
  const isListedWait = retry.backoffSteps === before.backoffSteps;
  const waitMs = isListedWait
    ? policy.listedFailureWaitMs
    : backoffMs(retry.backoffSteps, policy, chance);
  const retryAfterMs = Math.min(attempt.retryAfterMs ?? -Infinity, endedAtMs + RETRY_AFTER_MS_MAX);
  const nextAttemptAtMs = Math.min(Math.max(endedAtMs + waitMs, retryAfterMs), giveUpAtMs);
  // An exponential step is the delivery's own; both others are about the endpoint.
  const restsUntilMs = isListedWait ? nextAttemptAtMs : Math.min(retryAfterMs, giveUpAtMs);
  return { outcome: 'retrying', retry, nextAttemptAtMs, restsUntilMs };
}

/** The longest time by which any attempt is put off. */
export const longestWaitMs = (policy: DeliveryPolicy): number =>
  Math.min(
    Math.max(policy.listedFailureWaitMs, policy.backoffCapMs, RETRY_AFTER_MS_MAX),
    policy.giveUpAfterMs,
  );

/** The wait of the `step`-th exponential step, counted from 1, in whole milliseconds. */
export function backoffMs(step: number, policy: DeliveryPolicy, chance: number): number {
  const fullMs = Math.min(policy.backoffBaseMs * 2 ** (step - 1), policy.backoffCapMs);
  return Math.round(fullMs / 2 + (fullMs / 2) * chance);
}
