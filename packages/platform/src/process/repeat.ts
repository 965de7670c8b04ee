/** Repeats an action while a process lives, one run at a time. */
import type { Logger } from './logger.ts';

export interface Repetition {
  /** Ends the wait for the next run; a run under way is followed by another at once. */
  wake(): void;
  /** Starts no new run and waits for the one under way. */
  stop(): Promise<void>;
}

/**
 * Runs `step`, which can ask whether it should end, waits `intervalMs` after its end (read each time if it is
 * a function), and so on. A failing step is logged and does not end it.
 */
export function repeat(
  name: string,
  intervalMs: number | (() => number),
  logger: Logger,
  step: (isStopping: () => boolean) => Promise<unknown>,
): Repetition {
  let isStopping = false;
  let isWoken = false;
  let endWait = (): void => {};
  const wait = (durationMs: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, durationMs);
      endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const run = async (): Promise<void> => {
    while (!isStopping) {
      isWoken = false;
      try {
        await step(() => isStopping);
      } catch (error) {
        logger.warn(
          { error, task: name },
          'a repeated task failed; it runs again after its interval',
        );
      }
      if (!isStopping && !isWoken)
        await wait(typeof intervalMs === 'number' ? intervalMs : intervalMs());
    }
  };
  const running = run();
  return {
    wake() {
      isWoken = true;
      endWait();
    },
    stop() {
      isStopping = true;
      endWait();
      return running;
    },
  };
}
