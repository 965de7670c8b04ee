/**
 * Detects that all commit batches of this process fail. One failure concerns one batch. If every try fails for half a
 * minute, the batches share the cause, such as a statement that the database refuses. No data are lost then: each batch
 * is tried again until the cause is gone.
 *
 * Made by `consumers/queue-consumers.ts`, called by `consumers/queue-shard-job.ts`.
 */
import type { Logger } from './logger.ts';

const REASON_LENGTH_MAX = 500;
/** Longer than a restart of Postgres takes, and reported within a minute, however long an operator lets a try take. */
const FAILING_AFTER_MS_MAX = 30_000;
/** Twice the longest pause between two tries (`consumers/queue-shard-job.ts`). */
const PAUSE_MARGIN_MS = 10_000;

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
   * @param hungAfterMs - how long a try may take. Failures are reported after half of it, at most after 30 s.
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
    if (nowMs - lastMs > this.#hungAfterMs + PAUSE_MARGIN_MS) return undefined;
    if (nowMs - sinceMs < Math.min(this.#hungAfterMs / 2, FAILING_AFTER_MS_MAX)) return undefined;
    return { seconds: Math.round((nowMs - sinceMs) / 1_000), reason: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' ? message : String(error);
  return `${typeof code === 'string' ? `${code}: ` : ''}${text}`.slice(0, REASON_LENGTH_MAX);
}
