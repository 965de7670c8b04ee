/**
 * Detects that all commit batches of this process fail. One failure concerns one batch. If every try fails for half of the
 * time that a try may take, the batches share the cause, such as a statement that the database refuses. No data are lost
 * then: each batch is tried again until the cause is gone.
 *
 * Made by `consumers/queue-consumers.ts`, called by `consumers/queue-shard-job.ts`.
 */
import type { Logger } from './logger.ts';

const REASON_LENGTH_MAX = 500;

export interface Failing {
  /** Since the first try that failed after the last that succeeded. */
  readonly seconds: number;
  /** Of the last try: the SQLSTATE or code, if it has one, and the message. */
  readonly reason: string;
}

export class FailingTries {
  readonly #now: () => number;
  readonly #hungAfterMs: number;
  readonly #logger: Logger;
  #failure:
    | { readonly sinceMs: number; readonly lastMs: number; readonly error: unknown }
    | undefined;
  #isTold = false;

  /**
   * @param now - monotonic milliseconds.
   * @param hungAfterMs - how long a try may take. Of 60 s half is more than a restart of Postgres takes, and seen within a minute.
   */
  constructor(now: () => number, hungAfterMs: number, logger: Logger) {
    this.#now = now;
    this.#hungAfterMs = hungAfterMs;
    this.#logger = logger;
  }

  succeeded(): void {
    if (this.#failure === undefined) return;
    if (this.#isTold)
      this.#logger.warn({}, 'commit batches can be applied again; the failure is over');
    this.#failure = undefined;
    this.#isTold = false;
  }

  failed(error: unknown): void {
    const nowMs = this.#now();
    this.#failure = { sinceMs: this.#failure?.sinceMs ?? nowMs, lastMs: nowMs, error };
    const failing = this.report();
    if (failing === undefined || this.#isTold) return;
    this.#isTold = true;
    this.#logger.error(
      failing,
      'no commit batch can be applied; the worker retries and no data are lost (docs/operations/runbooks/events-are-not-processed.md)',
    );
  }

  /** @returns undefined while batches get through, or without batches. */
  report(): Failing | undefined {
    if (this.#failure === undefined) return undefined;
    const { sinceMs, lastMs, error } = this.#failure;
    const nowMs = this.#now();
    // A batch that failed so long ago was given to another process: otherwise it would have been tried again.
    if (nowMs - lastMs > this.#hungAfterMs || nowMs - sinceMs < this.#hungAfterMs / 2)
      return undefined;
    return { seconds: Math.round((nowMs - sinceMs) / 1_000), reason: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' ? message : String(error);
  return `${typeof code === 'string' ? `${code}: ` : ''}${text}`.slice(0, REASON_LENGTH_MAX);
}
