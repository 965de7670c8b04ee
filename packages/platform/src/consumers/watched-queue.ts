/**
 * One queue as this process consumes it: its BullMQ worker, replaced when it has stopped taking
 * jobs, and the jobs that its processor has in progress.
 *
 * Before: `queue-workers.ts` makes one a queue. Beside: `queue-watch.ts` looks at it.
 */
import type { Job, Worker } from 'bullmq';
import type { Logger } from '../process/logger.ts';
import { within } from '../process/within.ts';

const READY_DEADLINE_MS = 1_000;

/** Reports the begin and the end of a processor's try; between tries it only waits. */
export interface Trying {
  begin(): void;
  end(): void;
}

export type ProcessJob = (job: Job, token: string | undefined, trying: Trying) => Promise<void>;

export interface WatchedQueueOptions {
  readonly name: string;
  /** Jobs at the same time in this process. */
  readonly concurrency: number;
  /** A worker that is not running yet. */
  readonly openWorker: (process: (job: Job, token?: string) => Promise<void>) => Worker;
  readonly process: ProcessJob;
  /** Ends the worker's wait for a sign of new jobs, so that it looks; absent if that cannot be done. */
  readonly endWait?: ((worker: Worker) => void) | undefined;
  readonly now: () => number;
  readonly logger: Logger;
}

export class WatchedQueue {
  readonly name: string;
  readonly #options: WatchedQueueOptions;
  /** Start of the try by job id; undefined between tries. */
  readonly #inProgress = new Map<string, number | undefined>();
  /** Of all workers that this process has had here: each begins the tokens of the jobs it took. */
  readonly #workerIds: string[] = [];
  readonly #retired: Promise<void>[] = [];
  readonly #emptied: (() => void)[] = [];
  #worker: Worker;
  #hasEnded = false;
  #isClosing = false;
  /** How many workers were replaced. */
  replacedCount = 0;

  constructor(options: WatchedQueueOptions) {
    this.name = options.name;
    this.#options = options;
    this.#worker = this.#start();
  }

  /** BullMQ's own operations on the queue; undefined once it closes, when they would never be answered. */
  get backend(): ReturnType<Worker['getBackend']> | undefined {
    return this.#isClosing ? undefined : this.#worker.getBackend();
  }

  /** True if the loop that takes jobs has ended without a request. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** True if another job could be taken and is not. */
  get isIdle(): boolean {
    return this.#inProgress.size < this.#options.concurrency;
  }

  /** True if a job is in progress. */
  get isWorking(): boolean {
    return this.#inProgress.size > 0;
  }

  /** Of all workers that this process has had here. */
  get workerIds(): readonly string[] {
    return this.#workerIds;
  }

  hasInProgress(jobId: string): boolean {
    return this.#inProgress.has(jobId);
  }

  /** True for a lock that a worker of this process took, whether it knows of it or not. */
  owns(token: string): boolean {
    return this.#workerIds.some((id) => token.startsWith(`${id}:`));
  }

  /** The job that has been tried the longest, and since when. */
  longestTry(): { readonly jobId: string; readonly sinceMs: number } | undefined {
    let longest: { jobId: string; sinceMs: number } | undefined;
    for (const [jobId, sinceMs] of this.#inProgress) {
      if (sinceMs !== undefined && sinceMs < (longest?.sinceMs ?? Infinity))
        longest = { jobId, sinceMs };
    }
    return longest;
  }

  /** Has the worker look for jobs now, in case the sign of one got lost. */
  nudge(): void {
    if (!this.#isClosing) this.#options.endWait?.(this.#worker);
  }

  /** A new worker takes the next jobs; the old one stops taking and is closed in the background. */
  replace(): void {
    if (this.#isClosing) return;
    this.replacedCount++;
    const old = this.#worker;
    this.#hasEnded = false;
    this.#worker = this.#start();
    this.#retired.push(
      this.#end(old, true).catch((error: unknown) => {
        this.#options.logger.warn(
          { error, queue: this.name },
          'a replaced queue worker did not close; its jobs return when their locks end',
        );
      }),
    );
  }

  /** Takes no new job from now on. Resolves when the jobs in progress have ended and the broker knows. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([this.#end(this.#worker, false), ...this.#retired]);
  }

  /** Resolves when no job is in progress, possibly at once. The broker may not know yet. */
  emptyHanded(): Promise<void> {
    if (this.#inProgress.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#emptied.push(resolve));
  }

  /**
   * A worker names its connection once it is ready. On Postgres, a worker that is closed just before would open that
   * connection afterwards, and it would stay open for ever. A running worker is closed at once, so that it takes no
   * further job.
   */
  async #end(worker: Worker, isForced: boolean): Promise<void> {
    if (!worker.isRunning()) {
      await within(READY_DEADLINE_MS, worker.waitUntilReady()).catch(() => undefined);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await worker.close(isForced);
    // One that is closed by force would go on waiting in vain.
    if (isForced) this.#options.endWait?.(worker);
  }

  #start(): Worker {
    const { logger, now, openWorker, process } = this.#options;
    const worker = openWorker(async (job, token) => {
      const id = String(job.id);
      this.#inProgress.set(id, undefined);
      // A processor that goes on after its job has ended has no job in progress.
      const note = (sinceMs: number | undefined): void => {
        if (this.#inProgress.has(id)) this.#inProgress.set(id, sinceMs);
      };
      try {
        await process(job, token, {
          begin: () => note(now()),
          end: () => note(undefined),
        });
      } finally {
        this.#inProgress.delete(id);
        if (this.#inProgress.size === 0) for (const resolve of this.#emptied.splice(0)) resolve();
      }
    });
    this.#workerIds.push(worker.id);
    // Not before it is ready: on Postgres a worker whose first connection fails keeps the error for ever, and its
    // loop would spin on it so fast that no other work of the process ever runs again.
    worker
      .waitUntilReady()
      .then(() => (this.#isClosing ? undefined : worker.run()))
      .catch((error: unknown) =>
        logger.error(
          { error, queue: this.name },
          'the loop of a queue worker failed; the worker is replaced',
        ),
      )
      .finally(() => {
        if (worker === this.#worker && !this.#isClosing) this.#hasEnded = true;
      });
    return worker;
  }
}
