/** Common parts of the commands. Options are known only once the program has read its words. */
import type { ApiClient } from '@sluice/client';
import type { Command } from 'commander';
import type { ProgramOptions } from '../connection/program-options.ts';
import type { Terminal } from '../output/terminal.ts';

export interface Context {
  readonly program: Command;
  readonly options: () => ProgramOptions;
  readonly terminal: () => Terminal;
  /** The API, called with `--key`. */
  readonly api: () => ApiClient;
  /** The API, called with `--token`. */
  readonly accountApi: () => ApiClient;
  /** As `api`; Ctrl-C does not end its calls, since they undo the command's effects. */
  readonly closingApi: () => ApiClient;
  readonly now: () => number;
  /** Ended early by `signal`. */
  readonly pause: (durationMs: number) => Promise<unknown>;
  /** Aborted by Ctrl-C, and by SIGTERM. */
  readonly signal: AbortSignal;
  readonly runId: () => string;
  readonly setExitCode: (code: number) => void;
  /** Sets the exit code that a signal gives, so that a shell stops before the command after `&&`. */
  readonly setInterrupted: () => void;
}
