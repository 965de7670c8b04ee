/**
 * Common start of every service's `main.ts`: settings, log, lifecycle, and the end of the process.
 *
 * The process ends by a signal (it finishes work in progress, exit 0) or by an uncaught error. The error comes while
 * it starts or later, at the top level of a module, in a promise or in a callback. Such an error is the process's
 * last line, of level `fatal`, and the exit code is 1. The line of an error of the error table (a bad setting, a port
 * taken, a schema of another version) has its code and the next action. Only an unforeseen error has a stack.
 */
import { z } from 'zod';
import { parseSettings } from '../settings/config.ts';
import { findMisspeltSettings } from '../settings/misspelt-settings.ts';
import { createLifecycle, type Lifecycle } from './lifecycle.ts';
import { createLogger, type Logger } from './logger.ts';
import { processEndOf, type Environment, type ServiceProcess } from './process-end.ts';

interface BegunProcess<Settings> {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
  /** Ends the process with a caught error, as an uncaught one does. */
  readonly fail: (error: unknown) => void;
  /** The same, without waiting for a stop that is under way, because work in progress cannot end. */
  readonly abandon: (error: unknown) => void;
}

/**
 * Parses the environment, once it is there. From here on SIGTERM, SIGINT, or the end of a supervising parent (its IPC
 * channel closes) stops the lifecycle, within DRAIN_TIMEOUT_MS. An uncaught error ends the process. While the process
 * stops, such an error is logged, and the exit code is 1.
 *
 * @throws AppError CONFIG_INVALID, which is the process's last line.
 */
export async function beginProcess<
  Schema extends z.ZodType<{ readonly LOG_LEVEL: string; readonly DRAIN_TIMEOUT_MS: number }>,
>(
  process: ServiceProcess,
  service: string,
  schema: Schema,
): Promise<BegunProcess<z.infer<Schema>>> {
  const end = processEndOf(process, service);
  const environment = await end.environment();
  const settings = parseSettings(schema, environment);
  const logger = createLogger(service, settings.LOG_LEVEL);
  warnOfMisspelt(logger, schema, environment);
  const lifecycle = createLifecycle(logger);
  const drainTimeoutMs = settings.DRAIN_TIMEOUT_MS;
  end.add({ name: service, logger, lifecycle, drainTimeoutMs });
  const fail = (error: unknown): void => end.fail(service, error);
  const abandon = (error: unknown): void => end.abandon(service, error);
  return { settings, logger, lifecycle, fail, abandon };
}

function warnOfMisspelt(logger: Logger, schema: z.ZodType, environment: Environment): void {
  if (!(schema instanceof z.ZodObject)) return;
  for (const { name, nearestName } of findMisspeltSettings(environment, Object.keys(schema.shape)))
    logger.warn(
      { setting: name, nearest: nearestName },
      `${name} is not a setting and has no effect; remove it, or set ${nearestName}, the nearest setting`,
    );
}
