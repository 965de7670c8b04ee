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
/** Between two answers, as it counts at most: the broker hung in the rest, or this process did not ask. */
const ANSWERED_MS_MAX = 100;

/** Time in which the broker answered about the queue of one shard: each master of a Cluster can hang by itself. */
interface Answered {
  readonly durationMs: number;
  readonly lastAtMs: number;
}

export class PendingBatches {
  readonly #index: PendingIndex;
  readonly #readBatches: ReadBatches;
  readonly #now: () => number;
  /** In no queue when the broker was last asked for their contents. */
  readonly #unqueued = new WeakSet<PendingBatch>();
  readonly #answered = new Map<number, Answered>();

  /** @param now - milliseconds, of a clock that is never set. */
  constructor(log: PendingLog, readBatches: ReadBatches, now: () => number) {
    this.#index = new PendingIndex(log, { now, answeredMs: (shard) => this.#answeredMs(shard) });
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

  /** True if a batch was in no queue when this process last asked for its content: it is applied, or not queued yet. */
  isUnqueued(batch: PendingBatch): boolean {
    return this.#unqueued.has(batch);
  }

  /**
   * True if a batch has been in the log for so long. Time counts while this process asks the broker for contents of its shard
   * and the broker answers: an intake could not queue the batch either while the broker hung.
   */
  isOverdue({ shard, readAtAnsweredMs }: PendingBatch, durationMs: number): boolean {
    return this.#answeredMs(shard) - readAtAnsweredMs >= durationMs;
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
  async read(batches: readonly PendingBatch[]): Promise<readonly (CommitBatch | undefined)[]> {
    const contents = await this.#readBatches(batches);
    this.#noteAnswer(new Set(batches.map(({ shard }) => shard)));
    for (const [index, batch] of batches.entries()) {
      if (contents[index] === undefined) this.#unqueued.add(batch);
      else this.#unqueued.delete(batch);
    }
    return contents;
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

  #answeredMs(shard: number): number {
    return this.#answered.get(shard)?.durationMs ?? 0;
  }

  #noteAnswer(shards: ReadonlySet<number>): void {
    const nowMs = this.#now();
    for (const shard of shards) {
      const { durationMs, lastAtMs } = this.#answered.get(shard) ?? {
        durationMs: 0,
        lastAtMs: nowMs,
      };
      const sinceMs = Math.min(nowMs - lastAtMs, ANSWERED_MS_MAX);
      this.#answered.set(shard, { durationMs: durationMs + sinceMs, lastAtMs: nowMs });
    }
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
  | 'isUnqueued'
  | 'isOverdue'
  | 'forget'
  | 'watchForgotten'
  | 'changed'
  | 'read'
  | 'readToApply'
  | 'removeApplied'
  | 'remove'
>;
