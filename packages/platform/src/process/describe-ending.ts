/** Words of a process's last line about its fatal error. */
import { AppError, reasonOf, type ErrorCode } from '@sluice/domain/values/errors';

/** Description of an error that ends a process. */
export interface Ending {
  /** For errors of the error table: the problem and the next action. */
  readonly message: string;
  readonly code?: ErrorCode;
  /** The cause in its own words, if the message does not have them. */
  readonly cause?: string;
  /** With its stack; absent if it was foreseen. */
  readonly error?: unknown;
}

export function describeEnding(error: unknown): Ending {
  const code = error instanceof AppError ? error.code : undefined;
  if (!(error instanceof Error) || code === undefined || code === 'BUG') {
    return {
      message: `ended by an unexpected error. Please report it with this line: ${reasonOf(error)}`,
      ...(code && { code }),
      error,
    };
  }
  const { message, cause } = error;
  if (!(cause instanceof Error)) return { message, code };
  const reason = reasonOf(cause);
  return { message, code, ...(!message.includes(reason) && { cause: reason }) };
}
