/** JSON logs by pino, with what must never be logged taken out. */
import { pino, type Logger } from 'pino';

export type { Logger };

const CAUSE_DEPTH_MAX = 5;

/** A process's root logger. Errors keep their code and cause. */
export function createLogger(service: string, level: string): Logger {
  return pino({
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { error: (error: unknown) => errorForLog(error) },
    redact: [
      'authorization',
      '*.authorization',
      'headers.authorization',
      'signingKey',
      '*.signingKey',
    ],
  });
}

/**
 * What is logged of an error: its kind, message, code, stack and causes, and nothing else that a library added to it.
 * ioredis adds the command with its arguments, which may be a whole commit batch; pg adds the row that broke a
 * constraint (`detail`) and a statement's values (`where`).
 */
export function errorForLog(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, cause } = error;
  const code = 'code' in error ? error.code : undefined;
  const errors = error instanceof AggregateError ? (error.errors as unknown[]) : undefined;
  const isDeep = depth >= CAUSE_DEPTH_MAX;
  return {
    type: error.constructor.name,
    ...(name === error.constructor.name ? {} : { name }),
    message,
    ...(code === undefined ? {} : { code }),
    stack,
    ...(cause === undefined || isDeep ? {} : { cause: errorForLog(cause, depth + 1) }),
    ...(errors === undefined || isDeep
      ? {}
      : { errors: errors.map((each) => errorForLog(each, depth + 1)) }),
  };
}
