/**
 * Services of an earlier run whose supervisor was killed. They noticed and are finishing their work in progress. A new
 * run waits for them, because they have the ports.
 */
import { commandOfProcess } from '@sluice/database/embedded/process-command';
import type { Holder } from './data-directory.ts';
import { programOf } from './processes.ts';

const POLL_INTERVAL_MS = 50;
const NOTE_AFTER_MS = 1_000;

export interface LeftoverOptions {
  readonly holder: Holder | undefined;
  /** How long they may take. */
  readonly deadlineMs: number;
  readonly kill: (pid: number) => void;
  readonly onProgress: (line: string) => void;
}

export async function awaitLeftoverServices(options: LeftoverOptions): Promise<void> {
  const startedAtMs = performance.now();
  let isNoted = false;
  for (const { name, pid } of options.holder?.services ?? []) {
    // The id may be another's by now: only a process that runs our service counts.
    while ((await commandOfProcess(pid))?.includes(programOf(name))) {
      const waitedMs = performance.now() - startedAtMs;
      if (waitedMs > NOTE_AFTER_MS && !isNoted) {
        isNoted = true;
        options.onProgress(
          'waiting for the services of an earlier run, which was killed, to finish',
        );
      }
      if (waitedMs > options.deadlineMs) options.kill(pid);
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  }
}
