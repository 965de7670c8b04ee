/**
 * Waits until batches are applied, by any process. This process knows the batches that it applies itself; for the
 * others it asks Postgres. One statement asks for all batches that a process waits for. With a statement for each wait,
 * 16 shards asked hundreds of times a second.
 *
 * Part of step 9 of the walk, called by `process-commit-batch.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listAppliedCommitBatches } from '@sluice/database/events/commit-batch-parts';
import type { PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';

/** Between two looks: short after a wait has begun or something was found, then longer and longer. */
const LOOK_INTERVAL_MS_MIN = 2;
const LOOK_INTERVAL_MS_MAX = 25;

/** Waits until batches are applied, by any process, or `waitMsMax` is over. @returns how many of them are. */
export async function waitUntilApplied(
  database: Database,
  pending: PendingView,
  batches: readonly PendingBatch[],
  waitMsMax: number,
): Promise<number> {
  const endsAtMs = performance.now() + waitMsMax;
  const end = watchOf(database, pending).begin(batches);
  try {
    await watchOf(database, pending).look();
    for (;;) {
      const leftCount = batches.filter((batch) => pending.isPending(batch)).length;
      const leftMs = endsAtMs - performance.now();
      if (leftCount === 0 || leftMs <= 0) return batches.length - leftCount;
      // Resolves with every batch that this process applies or finds applied.
      await pending.changed(leftMs);
    }
  } finally {
    end();
  }
}

/** One a process, as the copy of the log is. */
const watches = new WeakMap<PendingView, AppliedWatch>();

function watchOf(database: Database, pending: PendingView): AppliedWatch {
  const known = watches.get(pending);
  if (known) return known;
  const made = new AppliedWatch(database, pending);
  watches.set(pending, made);
  return made;
}

/** Looks for batches that a caller waits for, and forgets the applied ones. */
class AppliedWatch {
  readonly #database: Database;
  readonly #pending: PendingView;
  readonly #waits = new Set<readonly PendingBatch[]>();
  #current = Promise.resolve();
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #intervalMs = LOOK_INTERVAL_MS_MIN;

  constructor(database: Database, pending: PendingView) {
    this.#database = database;
    this.#pending = pending;
  }

  /** @returns ends the wait. */
  begin(batches: readonly PendingBatch[]): () => void {
    this.#waits.add(batches);
    this.#intervalMs = LOOK_INTERVAL_MS_MIN;
    return () => this.#waits.delete(batches);
  }

  /** Resolves after a look that begins now, or when the one in progress ends. */
  look(): Promise<void> {
    this.#next ??= this.#lookAfter(this.#current);
    return this.#next;
  }

  async #lookAfter(current: Promise<void>): Promise<void> {
    await current;
    this.#current = this.#next ?? current;
    this.#next = undefined;
    clearTimeout(this.#timer);
    // A failed query is asked again.
    const hasFound = await this.#lookOnce().catch(() => false);
    this.#intervalMs = hasFound
      ? LOOK_INTERVAL_MS_MIN
      : Math.min(2 * this.#intervalMs, LOOK_INTERVAL_MS_MAX);
    clearTimeout(this.#timer);
    if (this.#waits.size > 0) this.#timer = setTimeout(() => void this.look(), this.#intervalMs);
  }

  async #lookOnce(): Promise<boolean> {
    const waiting = [...new Set([...this.#waits].flat())].filter((batch) =>
      this.#pending.isPending(batch),
    );
    if (waiting.length === 0) return false;
    const ids = waiting.map(({ id }) => id);
    const applied = await listAppliedCommitBatches(this.#database, ids);
    this.#pending.forget(waiting.filter(({ id }) => applied.has(id)));
    return applied.size > 0;
  }
}
