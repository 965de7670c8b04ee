/**
 * Proves to other workers that this process lives.
 *
 * The proof is a lock in a session of its own in Postgres (`database/src/maintenance/worker-processes.ts`). When the
 * process is killed, they take up its work within seconds.
 *
 * A session can also end while the process lives: Postgres restarts, an operator ends it. Then this process starts no
 * request until it has a session again, which takes milliseconds if Postgres is there. The others look for half a
 * second before they believe it. If that takes longer, they may take over its lanes. Then its requests in flight are
 * sent twice, with the same event ids. It starts others only under leases that it has confirmed since. If a network
 * keeps the end of the session from this process alone, it sends on until its next write.
 */
import { openSession, type Session } from '@sluice/database/connection/held-session';
import {
  endEarlierSession,
  enter,
  leave,
  newProcessId,
  tellBrokerWorkers,
} from '@sluice/database/maintenance/worker-processes';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat, type Repetition } from '@sluice/platform/process/repeat';

export interface WorkerPresenceOptions {
  readonly url: string;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** Of this process, as they are now; a worker that replaces another adds one. */
  readonly brokerWorkerIds: () => readonly string[];
  /** A wake-up that takes so long counts as hung, and the worker ends. */
  readonly hungAfterMs: number;
  readonly monotonicNow: () => number;
  readonly logger: Logger;
}

const LOOK_INTERVAL_MS = 1_000;
const REOPEN_INTERVAL_MS = 250;
/** How long a wake-up waits for a session at most: many times as long as it takes to be opened again. */
const SHOWN_WITHIN_MS_MAX = 5_000;

export class WorkerPresence {
  readonly #options: WorkerPresenceOptions;
  #session: Session | undefined;
  #shownSinceMs = 0;
  #processId = 0;
  #toldIds = '';
  #looks: Repetition | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(options: WorkerPresenceOptions) {
    this.#options = options;
  }

  /** Its leases and jobs are recorded under this number; 0 before `start`. */
  get processId(): number {
    return this.#processId;
  }

  /** False while others may take over the lanes and jobs of this process. */
  get isShown(): boolean {
    return this.#session !== undefined;
  }

  /** By the monotonic clock. Its earlier claims may be another's since. */
  get shownSinceMs(): number {
    return this.#shownSinceMs;
  }

  /**
   * Resolves when the process is shown again; at once if it is.
   *
   * @throws if it is not within five seconds: otherwise the wake-up would count as hung while Postgres is away. The
   *   reconciliation loop finds its work.
   */
  shown(): Promise<void> {
    if (this.isShown) return Promise.resolve();
    const shownWithinMs = Math.min(SHOWN_WITHIN_MS_MAX, this.#options.hungAfterMs / 2);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(end);
        reject(
          new Error(
            'this worker claims no delivery queue, because it has no session of Postgres that shows it as alive',
          ),
        );
      }, shownWithinMs);
      this.#waiting.add(end);
    });
  }

  /** @throws if Postgres is away. It may be called again then. */
  async start(): Promise<void> {
    // An earlier try may have left a session that holds its number. Leases and jobs come after this.
    this.#processId = 0;
    await this.#open();
    this.#looks = repeat(
      'show that this worker lives',
      () => (this.isShown ? LOOK_INTERVAL_MS : REOPEN_INTERVAL_MS),
      this.#options.logger,
      () => this.#look(),
    );
  }

  /** There are new workers of the broker; otherwise they are found within a second. */
  tell(): void {
    this.#looks?.wake();
  }

  /** Ends in good order, so that no other process takes over. Call it after the last lease and job are released. */
  async stop(): Promise<void> {
    await this.#looks?.stop();
    const session = this.#session;
    this.#session = undefined;
    if (!session) return;
    await leave(session, this.#processId).catch(() => undefined);
    await session.end().catch(() => undefined);
  }

  async #look(): Promise<void> {
    if (!this.#session) return this.#open();
    const ids = this.#options.brokerWorkerIds();
    const text = ids.join(' ');
    if (text === this.#toldIds) return;
    await tellBrokerWorkers(this.#session, this.#processId, ids);
    this.#toldIds = text;
  }

  async #open(): Promise<void> {
    const { url, applicationName, brokerWorkerIds, logger } = this.#options;
    const session: Session = await openSession(
      { url, applicationName: `${applicationName} presence` },
      (error) => {
        if (this.#session !== session) return;
        logger.warn(
          { error },
          'the Postgres session that shows this worker as alive ended; the worker opens another one',
        );
        this.#session = undefined;
        this.#looks?.wake();
      },
    );
    try {
      this.#processId ||= await newProcessId(session);
      const ids = brokerWorkerIds();
      if (!(await enter(session, this.#processId, ids))) {
        await endEarlierSession(session, this.#processId);
        throw new Error('an earlier session of this worker has not ended yet');
      }
      this.#toldIds = ids.join(' ');
    } catch (error) {
      await session.end().catch(() => undefined);
      throw error;
    }
    this.#shownSinceMs = this.#options.monotonicNow();
    this.#session = session;
    for (const end of this.#waiting) end();
  }
}
