/** Something done again and again while a process lives, one at a time. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from './logger.ts';

export interface Repetition {
  /** Starts no new run and waits for the one under way. */
  stop(): Promise<void>;
}

/** Runs `step`, which is told whether it should end, waits `intervalMs` after its end, and so on. A failing step is logged and does not end it. */
export function repeat(
  name: string,
  intervalMs: number,
  logger: Logger,
  step: (isStopping: () => boolean) => Promise<unknown>,
): Repetition {
  const stopping = new AbortController();
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await step(() => stopping.signal.aborted);
      } catch (error) {
        logger.warn({ error, task: name }, 'a repeated task failed; it runs again');
      }
      await sleep(intervalMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    stop() {
      stopping.abort();
      return running;
    },
  };
}
