/** JSON logs by pino, without secrets. */
import { pino, type DestinationStream, type Logger } from 'pino';

export type { Logger };

const CAUSE_DEPTH_MAX = 5;
/** A reader of the log that stands still delays the end of a process so long. */
const LAST_LINE_DEADLINE_MS = 1_000;

/** One for all loggers of a process: lines are written in the order in which they were logged, by another thread. */
const output = pino.destination(1);

/** A process's root logger. Errors keep their code and cause. */
export const createLogger = (service: string, level: string): Logger =>
  loggerTo(output, service, level);

/**
 * Logs the last line of a process, at level `fatal`.
 *
 * pino's own `fatal` writes at once, and so before lines that the other thread still has.
 *
 * @param onWritten - called once that line and all lines before it are written, or after 1 s.
 */
export function logLast(service: string, fields: object, message: string, onWritten: () => void) {
  const end = (): void => {
    clearTimeout(deadline);
    output.off('drain', end);
    onWritten();
  };
  const deadline = setTimeout(end, LAST_LINE_DEADLINE_MS);
  output.once('drain', end);
  const inOrder = { write: (line: string) => void output.write(line) };
  loggerTo(inOrder, service, 'fatal').fatal(fields, message);
}

function loggerTo(destination: DestinationStream, service: string, level: string): Logger {
  const options = {
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
  };
  return pino(options, destination);
}

/**
 * Fields of an error in the log: only its kind, message, code, stack and causes. Libraries add other fields to it.
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
