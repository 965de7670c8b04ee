/**
 * Publishes the result of a call to the workspace's live tail.
 *
 * Made for a call only if its workspace is tailed (`GET /v1/stream` of the API). Published once the call is answered,
 * so that a line with `accepted` means that it is on disk.
 */
import type { Issue } from '@sluice/domain/operations/issue';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  lineOfOperation,
  lineOfRefusal,
  linesOfIssues,
  type TailLine,
  type TailPublisher,
} from '@sluice/domain/operations/tail';
import type { AnswerCall, Outcome } from './outcome.ts';

export class TailedCall {
  readonly #source: string;
  readonly #atMs: number;
  #operations: readonly Operation[] = [];
  #issues: readonly Issue[] = [];

  constructor(source: string, atMs: number) {
    this.#source = source;
    this.#atMs = atMs;
  }

  /** Its operations and issues, before it is answered. */
  found(operations: readonly Operation[], issues: readonly Issue[]): void {
    this.#operations = operations;
    this.#issues = issues;
  }

  /** The lines to publish, given this answer. */
  lines(outcome: Outcome): TailLine[] {
    const issues = linesOfIssues(this.#issues, this.#atMs, this.#source);
    switch (outcome.outcome) {
      case 'accepted':
      case 'partly-accepted':
        return [
          // Recorded issues are among the issues.
          ...this.#operations
            .filter(({ type }) => type !== 'issue.record')
            .map((operation) => lineOfOperation(operation, 'accepted', this.#source)),
          ...issues,
        ];
      case 'rejected':
        return issues;
      case 'overloaded':
        return [lineOfRefusal('overloaded', this.#atMs, this.#source)];
      case 'rate-limited':
        return [lineOfRefusal('rate_limited', this.#atMs, this.#source)];
      case 'unauthorized':
        return [];
    }
  }
}

/** Wraps the answer so that readers get it too, after the caller. */
export function publishingToo(
  tail: TailPublisher,
  environmentId: number,
  tailed: TailedCall,
  answer: AnswerCall,
): AnswerCall {
  return (outcome, standing) => {
    answer(outcome, standing);
    tail.publish(environmentId, tailed.lines(outcome));
  };
}
