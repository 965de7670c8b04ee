/**
 * Ends a process. It has one service, or several, as `npm start` has them: a signal stops them one after another, and an
 * uncaught error ends all of them at once.
 */
import { describeEnding } from './describe-ending.ts';
import type { Lifecycle } from './lifecycle.ts';
import { createLogger, logLast, type Logger } from './logger.ts';

/** By the names of variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The part of `process` that a `main.ts` hands over, so that only `main.ts` names `process`. */
export interface ServiceProcess {
  readonly env: Environment;
  on(event: 'SIGTERM' | 'SIGINT' | 'disconnect', listener: () => void): unknown;
  on(event: 'uncaughtException', listener: (error: unknown) => void): unknown;
  exit(code: number): void;
}

interface StoppableService {
  readonly name: string;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
  /** Of its stop, after which it is left as it is. */
  readonly drainTimeoutMs: number;
}

export class ProcessEnd {
  readonly #process: ServiceProcess;
  readonly #stopOrder: readonly string[];
  readonly #environment: Environment | Promise<Environment>;
  #services: StoppableService[] = [];
  #isStopping = false;
  #hasFailed = false;
  #exitCode = 0;

  /**
   * @param name - service that the last line, of an uncaught error, names.
   * @param stopOrder - names of services. One that is not among them is stopped last.
   * @param environment - of each service; a promise if a parent sends it later, while modules load.
   */
  constructor(
    process: ServiceProcess,
    name: string,
    stopOrder: readonly string[],
    environment: Environment | Promise<Environment> = process.env,
  ) {
    this.#process = process;
    this.#stopOrder = stopOrder;
    this.#environment = environment;
    process.on('uncaughtException', (error) => this.fail(name, error));
    for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const)
      process.on(signal, () => this.#stop(signal));
  }

  /**
   * Environment with which a service begins. In a process that stops the promise stays pending: a start would be cut in
   * the middle.
   */
  async environment(): Promise<Environment> {
    const environment = await this.#environment;
    return this.#isStopping ? new Promise(() => {}) : environment;
  }

  /** From here on a stop stops it too. */
  add(service: StoppableService): void {
    this.#services.push(service);
  }

  /** Ends the process with an error of a service. While the process stops, the error is logged, and the exit code is 1. */
  fail(name: string, error: unknown): void {
    if (this.#isStopping) {
      // A start during a stop fails because its resources are closed.
      const service = this.#services.find((each) => each.name === name);
      (service?.logger ?? createLogger(name, 'info')).error({ error }, 'an error while stopping');
      this.#exitCode = 1;
      return;
    }
    this.abandon(name, error);
  }

  /** The same for an error because of which work in progress cannot end: a stop that is under way does not wait for it. */
  abandon(name: string, error: unknown): void {
    // The first one is the cause; others may come of it until its line is written.
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const { message, ...fields } = describeEnding(error);
    // The line does not depend on LOG_LEVEL, which may be the bad setting.
    logLast(name, fields, message, () => this.#process.exit(1));
  }

  #stop(reason: string): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    void this.#stopAll(reason).then(() => this.#process.exit(this.#exitCode));
  }

  async #stopAll(reason: string): Promise<void> {
    const place = ({ name }: StoppableService): number => {
      const found = this.#stopOrder.indexOf(name);
      return found === -1 ? this.#stopOrder.length : found;
    };
    const services = this.#services.toSorted((one, other) => place(one) - place(other));
    for (const service of services) await this.#stopOne(service, reason);
  }

  async #stopOne({ logger, lifecycle, drainTimeoutMs }: StoppableService, reason: string) {
    logger.info(
      { reason },
      'stopping: the process finishes work in progress and starts no new work',
    );
    const { promise: isTooLate, resolve } = Promise.withResolvers<true>();
    const deadline = setTimeout(resolve, drainTimeoutMs, true);
    deadline.unref();
    if (await Promise.race([lifecycle.stop(), isTooLate])) {
      logger.error(
        { drainTimeoutMs },
        'draining took longer than DRAIN_TIMEOUT_MS; the process ends with unfinished work. If that repeats, raise it, and the grace period of the platform (terminationGracePeriodSeconds, stop_grace_period) above that',
      );
      this.#exitCode = 1;
    }
    clearTimeout(deadline);
  }
}

const ends = new WeakMap<ServiceProcess, ProcessEnd>();

/** The one end of a process, which the first service in it sets up. */
export function processEndOf(process: ServiceProcess, name: string): ProcessEnd {
  return ends.get(process) ?? shareProcess(process, name, []);
}

/** Called before the first of several services begins. Parameters as of `ProcessEnd`. */
export function shareProcess(
  process: ServiceProcess,
  name: string,
  stopOrder: readonly string[],
  environment?: Promise<Environment>,
): ProcessEnd {
  const end = new ProcessEnd(process, name, stopOrder, environment);
  ends.set(process, end);
  return end;
}
