/** What is kept of one attempt. Used by `lane-drain.ts`. */
import type { AttemptRecord } from '@sluice/database/lane-progress';
import { outcomeOf, type HttpOutcome } from './http-outcome.ts';

/** @param begun - of the attempt. @param verdict - what the lane's rules make of the answer. */
export function recordOf(
  { sequence, attempt, startedAtMs }: Pick<AttemptRecord, 'sequence' | 'attempt' | 'startedAtMs'>,
  answer: HttpOutcome,
  verdict: AttemptRecord['outcome'],
): AttemptRecord {
  const result = outcomeOf(answer);
  return {
    sequence,
    attempt,
    startedAtMs,
    durationMs: answer.durationMs,
    status: answer.status,
    outcome: verdict,
    failure: result === 'delivered' ? null : result,
    failureMessage: answer.outcome === 'failure' ? answer.message : null,
    responseHead: answer.head || null,
    responseBody: answer.body || null,
  };
}
