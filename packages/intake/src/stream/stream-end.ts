/**
 * The end of a stream, as its last line reports it: the outcome of the taking, and the reason why no more bytes came.
 */
import { isError } from '@sluice/domain/operations/issue';
import { INFLATION_RATIO_MAX, type BytesEnd } from './stream-bytes.ts';
import type { LineIssue } from './stream-group.ts';
import type { StreamOutcome } from './take-stream.ts';

export interface StreamEnd {
  readonly end:
    | 'complete'
    | 'rejected'
    | 'invalid_encoding'
    | 'inflation_ratio_exceeded'
    | 'unauthorized'
    | 'overloaded'
    | 'stopping'
    | 'idle';
  readonly message?: string;
  readonly issues?: readonly object[];
  readonly retry_after_seconds?: number;
}

export function describeEnd(outcome: StreamOutcome, bytesEnd: BytesEnd | undefined): StreamEnd {
  switch (outcome.outcome) {
    case 'rejected':
      return {
        end: 'rejected',
        message:
          'the stream ends at the first line that is refused (strict mode); correct it, then continue with it',
        issues: outcome.issues.map(toWire),
      };
    case 'unauthorized':
      return {
        end: 'unauthorized',
        message: 'the key is no longer valid; continue after this line with another key',
      };
    case 'overloaded':
      return {
        end: 'overloaded',
        message: 'the lines after this one are not stored; send them again later',
        retry_after_seconds: outcome.retryAfterSeconds,
      };
    case 'invalid-encoding':
      // If we ended it, the encoding ends too early.
      if (bytesEnd === undefined || bytesEnd === 'complete') {
        return {
          end: 'invalid_encoding',
          message: `the body does not match Content-Encoding: ${outcome.message}`,
        };
      }
      break;
    case 'inflation-ratio-exceeded':
      return {
        end: 'inflation_ratio_exceeded',
        message: `the body inflates to more than ${INFLATION_RATIO_MAX} times its size; send the lines after this one with less compression`,
      };
    case 'read-to-end':
      break;
  }
  if (bytesEnd === 'stopping') {
    return {
      end: 'stopping',
      message: 'this process stops; continue after this line with another connection',
    };
  }
  if (bytesEnd === 'idle') {
    return { end: 'idle', message: 'no data came for too long; continue after this line' };
  }
  return { end: 'complete' };
}

/** An issue of a line as its sender gets it. */
export const toWire = (issue: LineIssue): object => ({
  line: issue.line,
  code: issue.code,
  severity: isError(issue) ? 'error' : 'warning',
  field: issue.field,
  message: issue.message,
});
