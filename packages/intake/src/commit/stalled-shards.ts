/**
 * Shards whose queues stand still.
 *
 * They are found by the commit batch that stands first in each queue, and by batches that are applied after others of
 * the same flush. A worker may hang on one shard while the others go on. Calls that wait for admitted operations must
 * not wait for that one.
 *
 * Beside `admission.ts`, which reads the queues.
 */
import type { QueuedBatch } from '@sluice/platform/queue/queue-heads';

/** Longer than any transaction of a busy worker: workers that take no batch for so long are away. */
export const STALLED_AFTER_MS = 2_000;

interface QueueHeadSince {
  readonly text: string;
  readonly sinceMs: number;
}

export class StalledShards {
  /** Until when a shard counts as one that stands still. */
  readonly #untilMs = new Map<number, number>();
  /**
   * By shard: the first batch of its queue, with the earliest known time of that. Undefined before a look since
   * progress.
   */
  #heads: readonly QueueHeadSince[] | undefined;

  /** The heads of the queues have been looked at since {@link forgetHeads}. */
  get hasHeads(): boolean {
    return this.#heads !== undefined;
  }

  /** The next look is a first one. */
  forgetHeads(): void {
    this.#heads = undefined;
  }

  /**
   * Compares the heads of the queues with the heads of the look before, and keeps them.
   *
   * @param texts - by shard: which commit batches stand first.
   * @param nowMs - milliseconds that never go back.
   * @returns `unknown`: this is a first look.
   */
  changeOf(texts: readonly string[], nowMs: number): 'unknown' | 'none' | 'some' {
    const before = this.#heads;
    const heads = texts.map((text, shard) => {
      const head = before?.[shard];
      return head?.text === text ? head : { text, sinceMs: nowMs };
    });
    this.#heads = heads;
    if (before === undefined) return 'unknown';
    return heads.some((head, shard) => head !== before[shard]) ? 'some' : 'none';
  }

  /** The shard counts as one that stands still, for two seconds. */
  add(shard: number, nowMs: number): void {
    this.#untilMs.set(shard, nowMs + STALLED_AFTER_MS);
  }

  /** Adds each shard whose head is the same for two seconds. */
  addByHeads(nowMs: number): void {
    for (const [shard, { sinceMs }] of (this.#heads ?? []).entries())
      if (nowMs - sinceMs >= STALLED_AFTER_MS) this.add(shard, nowMs);
  }

  /** The batches whose shards do not stand still. */
  without(batches: readonly QueuedBatch[], nowMs: number): readonly QueuedBatch[] {
    return batches.filter(({ shard }) => (this.#untilMs.get(shard) ?? 0) <= nowMs);
  }
}
