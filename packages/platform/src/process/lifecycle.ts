/**
 * Lifecycle of a process: it opens resources in order, and each registers its close on the same line. A stop closes
 * them in reverse. For a service, `begin-process.ts` makes it.
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
        logger.error(
          { error, resource: resource.name },
          'a resource could not be closed; the stop continues',
        );
      }
    }
  }

  return {
    defer: (name, close) => void resources.push({ name, close }),
    stop: () => (stopping ??= closeAll()),
  };
}
