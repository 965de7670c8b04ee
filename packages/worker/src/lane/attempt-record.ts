/** What is kept of one attempt. Used by `lane-attempts.ts`. */
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import type { HttpOutcome } from '../http/http-outcome.ts';

/** @param judged - what the lane's rules make of the answer, and why it is no success. */
export function recordOf(
  { sequence, attempt, startedAtMs }: Pick<AttemptRecord, 'sequence' | 'attempt' | 'startedAtMs'>,
  answer: HttpOutcome,
  { outcome, failure }: Pick<AttemptRecord, 'outcome' | 'failure'>,
): AttemptRecord {
  return {
    sequence,
    attempt,
    startedAtMs,
    durationMs: answer.durationMs,
    status: answer.status,
    outcome,
    failure,
    failureMessage: answer.outcome === 'failure' ? answer.message : null,
    responseHead: answer.head || null,
    responseBody: answer.body || null,
  };
}
