/**
 * One process's life: resources are opened in order, each with its close registered on the same
 * line; a stop closes them in reverse, within a deadline. Only a `main.ts` uses this.
 */
import type { Logger } from 'pino';

export interface Lifecycle {
  /** Registers `close` for a resource just opened. Closed last-in, first-out. */
  defer(name: string, close: () => Promise<void> | void): void;
  /** Runs every close once, newest first; a failing one is logged and does not stop the others. */
  stop(): Promise<void>;
}

export function createLifecycle(logger: Logger): Lifecycle {
  const resources: { name: string; close: () => Promise<void> | void }[] = [];
  let stopping: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    for (let resource = resources.pop(); resource; resource = resources.pop()) {
      try {
        await resource.close();
      } catch (error) {
        logger.error({ error, resource: resource.name }, 'could not close a resource');
      }
    }
  }

  return {
    defer: (name, close) => void resources.push({ name, close }),
    stop: () => (stopping ??= closeAll()),
  };
}

/** What `process` offers a `main.ts`, so that only `main.ts` names it. */
export interface ProcessSignals {
  on(event: 'SIGTERM' | 'SIGINT' | 'disconnect', listener: () => void): unknown;
  exit(code: number): void;
}

/**
 * Stops `lifecycle` on SIGTERM, SIGINT, or when a supervising parent goes away (its IPC channel
 * closes), then exits 0; exits 1 when draining takes longer than `drainTimeoutMs`.
 */
export function stopOnSignal(
  process: ProcessSignals,
  lifecycle: Lifecycle,
  logger: Logger,
  drainTimeoutMs: number,
): void {
  let isStopping = false;
  const stop = (reason: string) => {
    if (isStopping) return;
    isStopping = true;
    logger.info({ reason }, 'stopping: no new work is taken, what is in hand is finished');
    setTimeout(() => {
      logger.error({ drainTimeoutMs }, 'draining took too long; exiting with work unfinished');
      process.exit(1);
    }, drainTimeoutMs).unref();
    void lifecycle.stop().then(() => process.exit(0));
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) {
    process.on(signal, () => stop(signal));
  }
}
