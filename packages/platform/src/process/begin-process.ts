/**
 * What every service's `main.ts` begins with: settings, log, lifecycle, and how the process ends.
 *
 * It ends by a signal (what is in progress is finished, exit 0), or by an error that nobody caught: while it
 * starts or later, at the top level of a module, in a promise or in a callback. Such an error is the
 * process's last line, of level `fatal`, and the exit code is 1. An error of the error table (a bad setting, a port
 * taken, a schema of another version) is shown as its code and what to do next; only an unforeseen error is shown
 * with a stack.
 */
import { AppError, reasonOf, type ErrorCode } from '@sluice/domain/values/errors';
import { z } from 'zod';
import { parseSettings } from '../settings/config.ts';
import { findMisspeltSettings } from '../settings/misspelt-settings.ts';
import { createLifecycle, type Lifecycle } from './lifecycle.ts';
import { createLogger, type Logger } from './logger.ts';

/** What `process` offers a `main.ts`, so that only `main.ts` names it. */
export interface ServiceProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  on(event: 'SIGTERM' | 'SIGINT' | 'disconnect', listener: () => void): unknown;
  on(event: 'uncaughtException', listener: (error: unknown) => void): unknown;
  exit(code: number): void;
}

interface BegunProcess<Settings> {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
  /** Ends the process with a caught error as if nobody had caught it. */
  readonly fail: (error: unknown) => void;
}

/**
 * Parses the environment. From here on SIGTERM, SIGINT, or the end of a supervising parent (its IPC
 * channel closes) stops the lifecycle, within DRAIN_TIMEOUT_MS, and an error that nobody catches ends
 * the process. One that comes while it stops is logged, and the exit code is 1.
 *
 * @throws AppError CONFIG_INVALID, which is the process's last line.
 */
export function beginProcess<
  Schema extends z.ZodType<{ readonly LOG_LEVEL: string; readonly DRAIN_TIMEOUT_MS: number }>,
>(process: ServiceProcess, service: string, schema: Schema): BegunProcess<z.infer<Schema>> {
  let isStopping = false;
  let exitCode = 0;
  // Last words are logged whatever LOG_LEVEL is: LOG_LEVEL itself may be the bad setting.
  const lastWords = createLogger(service, 'fatal');
  let logger = lastWords;
  const fail = (error: unknown): void => {
    if (isStopping) {
      // A start during a stop fails because what it needs is closed.
      logger.error({ error }, 'an error while stopping');
      exitCode = 1;
      return;
    }
    const { message, ...fields } = describeEnding(error);
    lastWords.fatal(fields, message);
    process.exit(1);
  };
  process.on('uncaughtException', fail);

  const settings = parseSettings(schema, process.env);
  logger = createLogger(service, settings.LOG_LEVEL);
  warnOfMisspelt(logger, schema, process.env);
  const lifecycle = createLifecycle(logger);
  const stop = (reason: string): void => {
    if (isStopping) return;
    isStopping = true;
    logger.info(
      { reason },
      'stopping: the process finishes work in progress and starts no new work',
    );
    const drainTimeoutMs = settings.DRAIN_TIMEOUT_MS;
    setTimeout(() => {
      logger.error({ drainTimeoutMs }, 'draining took too long; exiting with work unfinished');
      process.exit(1);
    }, drainTimeoutMs).unref();
    void lifecycle.stop().then(() => process.exit(exitCode));
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const)
    process.on(signal, () => stop(signal));
  return { settings, logger, lifecycle, fail };
}

function warnOfMisspelt(
  logger: Logger,
  schema: z.ZodType,
  environment: ServiceProcess['env'],
): void {
  if (!(schema instanceof z.ZodObject)) return;
  for (const { name, nearestName } of findMisspeltSettings(environment, Object.keys(schema.shape)))
    logger.warn(
      { setting: name, nearest: nearestName },
      `${name} is not a setting and has no effect; the nearest setting is ${nearestName}`,
    );
}

/** What is said of an error that ends a process. */
export interface Ending {
  /** For errors of the error table: what is wrong, and what to do next. */
  readonly message: string;
  readonly code?: ErrorCode;
  /** The cause in its own words, where the message does not have them. */
  readonly cause?: string;
  /** With its stack; absent where it was foreseen. */
  readonly error?: unknown;
}

export function describeEnding(error: unknown): Ending {
  const code = error instanceof AppError ? error.code : undefined;
  if (!(error instanceof Error) || code === undefined || code === 'BUG') {
    return {
      message: `ended by an unexpected error; please report it with this line: ${reasonOf(error)}`,
      ...(code && { code }),
      error,
    };
  }
  const { message, cause } = error;
  if (!(cause instanceof Error)) return { message, code };
  const reason = reasonOf(cause);
  return { message, code, ...(!message.includes(reason) && { cause: reason }) };
}
