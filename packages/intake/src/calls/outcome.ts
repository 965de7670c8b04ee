/** Outcome of a call, and its receivers. `accept.ts` decides it, `answer.ts` maps it to a status. */
import { isError, type Issue } from '@sluice/domain/operations/issue';
import type { Operation } from '@sluice/domain/operations/operation';
import type { RateStanding } from '../auth/rate-limit.ts';
import { OperationWriter } from '../groups/operation-writer.ts';
import type { Call } from './calls.ts';

export type Outcome =
  /** `items` if the sender gets the result of each. */
  | { readonly outcome: 'accepted'; readonly items?: readonly ItemResult[] }
  /** Some items of a batch were refused; the others are taken. */
  | {
      readonly outcome: 'partly-accepted';
      readonly issues: readonly Issue[];
      readonly items?: readonly ItemResult[];
    }
  | { readonly outcome: 'rejected'; readonly issues: readonly Issue[] }
  /** `message` if the reason is another than missing or unknown credentials. */
  | { readonly outcome: 'unauthorized'; readonly message?: string }
  | { readonly outcome: 'rate-limited' }
  | { readonly outcome: 'overloaded'; readonly retryAfterSeconds: number };

/** The result of one message. */
export type ItemResult =
  | { readonly status: 'accepted'; readonly event_id: string }
  | { readonly status: 'refused'; readonly errors: readonly ItemError[] };

interface ItemError {
  readonly field: string | null;
  /** JSON pointer into the message, if the schema of its type refuses it. */
  readonly pointer?: string;
  readonly reason: string;
  readonly message: string;
}

type Accepted = Extract<Outcome, { outcome: 'accepted' }>;

export const ACCEPTED: Accepted = { outcome: 'accepted' };

/** With the result of each item, if the call answers with results. */
export const acceptedOutcome = (
  call: Pick<Call, 'success'>,
  operations: readonly Operation[] | OperationWriter,
  issues: readonly Issue[],
): Accepted =>
  call.success === 'results' && !(operations instanceof OperationWriter)
    ? { outcome: 'accepted', items: itemResults(operations, issues) }
    : ACCEPTED;

/** In the order of the items, of which each gave one operation or at least one error. */
function itemResults(operations: readonly Operation[], issues: readonly Issue[]): ItemResult[] {
  const refused = new Map<number, ItemError[]>();
  for (const { batchIndex = 0, field, pointer, code, message } of issues.filter(isError)) {
    const errors = refused.get(batchIndex) ?? [];
    const error = { field, ...(pointer !== undefined && { pointer }), reason: code, message };
    refused.set(batchIndex, [...errors, error]);
  }
  let taken = 0;
  return Array.from({ length: operations.length + refused.size }, (_, index): ItemResult => {
    const errors = refused.get(index);
    if (errors) return { status: 'refused', errors };
    const operation = operations[taken++];
    const eventId = operation && 'eventId' in operation ? operation.eventId : '';
    return { status: 'accepted', event_id: eventId };
  });
}

/** `standing` if the workspace has a limit. */
export type AnswerCall = (outcome: Outcome, standing?: RateStanding) => void;

/**
 * Too many callers are in the middle of their bodies, or their bodies wait to be inflated. That passes, or ends by
 * their own time-outs.
 */
export const TOO_MANY_BODIES: Outcome = { outcome: 'overloaded', retryAfterSeconds: 10 };
