/**
 * Questions of a processor about the commit batches of all shards: which of them were added before its own and name the
 * same keys, and their contents.
 *
 * Before: `queue-workers.ts`, one a process. After: `worker/src/events/earlier-batches.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { PendingIndex, type ForgottenBatches, type PendingBatch } from './pending-index.ts';
import type { PendingLog } from '../queue/pending-log.ts';
import type { ReadBatches } from './queue-waiting.ts';

/** Longer than an intake needs from the log to the queue. */
const FORGOTTEN_AFTER_MS = 60_000;
const SWEEP_COUNT_MAX = 500;

export class PendingBatches {
  readonly #index: PendingIndex;
  readonly #readBatches: ReadBatches;

  readonly #now: () => number;

  /** @param now - milliseconds, of a clock that is never set. */
  constructor(log: PendingLog, readBatches: ReadBatches, now: () => number) {
    this.#index = new PendingIndex(log, now);
    this.#readBatches = readBatches;
    this.#now = now;
  }

  /** As {@link PendingIndex.find}. */
  find(id: string): Promise<PendingBatch | undefined> {
    return this.#index.find(id);
  }

  /** As {@link PendingIndex.hasEarlier}. */
  hasEarlier(batch: PendingBatch): boolean {
    return this.#index.hasEarlier(batch);
  }

  /** As {@link PendingIndex.hasEarlierOrdered}. */
  hasEarlierOrdered(batch: PendingBatch): boolean {
    return this.#index.hasEarlierOrdered(batch);
  }

  /** As {@link PendingIndex.earlier}. */
  earlier(
    batches: readonly PendingBatch[],
    keys: Iterable<number>,
    except?: ReadonlySet<number>,
  ): Set<PendingBatch> {
    return this.#index.earlier(batches, keys, except);
  }

  /** As {@link PendingIndex.lastPlace}. */
  lastPlace(): Promise<number> {
    return this.#index.lastPlace();
  }

  /** As {@link PendingIndex.naming}. */
  naming(keys: Iterable<number>, placeMax: number): Set<PendingBatch> {
    return this.#index.naming(keys, placeMax);
  }

  /** As {@link PendingIndex.isPending}. */
  isPending(batch: PendingBatch): boolean {
    return this.#index.isPending(batch);
  }

  /** As {@link PendingIndex.forget}. */
  forget(batches: readonly PendingBatch[]): void {
    this.#index.forget(batches);
  }

  /** As {@link PendingIndex.leaveOut}. */
  leaveOut(batches: readonly PendingBatch[]): void {
    this.#index.leaveOut(batches);
  }

  /** As {@link PendingIndex.watchForgotten}. */
  watchForgotten(): ForgottenBatches {
    return this.#index.watchForgotten();
  }

  /** As {@link PendingIndex.changed}. */
  changed(durationMs: number): Promise<void> {
    return this.#index.changed(durationMs);
  }

  /** Content of the batches, in the order given; `undefined` for one that is not queued. */
  read(batches: readonly PendingBatch[]): Promise<readonly (CommitBatch | undefined)[]> {
    return this.#readBatches(batches);
  }

  /** As `read`, for batches that are about to be applied. */
  readToApply(batches: readonly PendingBatch[]): Promise<readonly (CommitBatch | undefined)[]> {
    return this.read(batches);
  }

  /**
   * Forgets batches that this process has known for a while and that are no longer queued: applied by a worker of an
   * older version, which keeps no log.
   */
  async sweep(): Promise<void> {
    const old = this.#index.readBefore(this.#now() - FORGOTTEN_AFTER_MS, SWEEP_COUNT_MAX);
    if (old.length === 0) return;
    const found = await this.#readBatches(old);
    await this.remove(old.filter((_, index) => found[index] === undefined));
  }

  /** As {@link PendingIndex.removeApplied}. */
  removeApplied(batches: readonly PendingBatch[]): void {
    this.#index.removeApplied(batches);
  }

  /** As {@link PendingIndex.readAhead}. */
  readAhead(): void {
    this.#index.readAhead();
  }

  /** As {@link PendingIndex.remove}. */
  remove(batches: readonly PendingBatch[]): Promise<void> {
    return this.#index.remove(batches);
  }
}

/** The questions that applying asks, about whole batches or about the parts of one workspace. */
export type PendingView = Pick<
  PendingBatches,
  | 'find'
  | 'hasEarlier'
  | 'hasEarlierOrdered'
  | 'earlier'
  | 'isPending'
  | 'leaveOut'
  | 'forget'
  | 'watchForgotten'
  | 'changed'
  | 'read'
  | 'readToApply'
  | 'removeApplied'
  | 'remove'
>;
