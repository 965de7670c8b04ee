/**
 * Waits for the next events, for all readers of this process.
 *
 * While a reader waits, one statement each quarter of a second asks for the progress of the waiting readers' feeds, by
 * primary key. Without a waiting reader it sends no statement.
 */
import { listAdvancedFeeds, type FeedPlace } from '@sluice/database/feeds/feeds';
import type { Database } from '@sluice/database/connection/connection';

const LOOK_INTERVAL_MS = 250;

interface Waiting {
  readonly place: FeedPlace;
  readonly wake: () => void;
}

export class FeedWatch {
  readonly #database: Database;
  readonly #waiting = new Set<Waiting>();
  #isLooking = false;
  #isStopping = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Resolves when something may have come, when the time is over, when `signal` is aborted, or when this is stopped. */
  wait(place: FeedPlace, durationMs: number, signal: AbortSignal): Promise<void> {
    if (this.#isStopping || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const waiting = { place, wake: () => end() };
      const timer = setTimeout(() => end(), durationMs);
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        this.#waiting.delete(waiting);
        resolve();
      };
      signal.addEventListener('abort', end);
      this.#waiting.add(waiting);
      if (!this.#isLooking) void this.#look();
    });
  }

  /** Waiting readers get their answer, and later ones do not wait. */
  stop(): void {
    this.#isStopping = true;
    for (const { wake } of this.#waiting) wake();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiting.size > 0) {
      const asked = [...this.#waiting];
      // While Postgres is away they wait: their time ends anyway.
      const advanced = await listAdvancedFeeds(
        this.#database,
        asked.map(({ place }) => place),
      ).catch(() => []);
      for (const index of advanced) asked[index]?.wake();
      if (this.#waiting.size > 0)
        await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    }
    this.#isLooking = false;
  }
}
