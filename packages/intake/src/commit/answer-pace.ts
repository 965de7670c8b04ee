/**
 * Puts off the answers of workspaces that send more than their share while the workers are behind and others send too.
 * Else a workspace that sends faster than the workers apply has the calls of all others wait behind its own, for as long as
 * that is: 8 s in the middle of 300 calls, 21 s at their end (`npm run bench -- neighbour`).
 *
 * Between `batcher.ts`, which tells it of flushes and asks it about answers, and the broker's counts.
 */
import { nextAnswerDelayMs } from '@sluice/domain/operations/answer-delay';

export interface AnswerPaceOptions {
  readonly sharePercent: number;
  /** Commit batches that are not applied, by shard. */
  readonly countUnapplied: () => Promise<readonly number[]>;
  /** Commit batches that this process has added so far. */
  readonly addedCount: () => number;
  /** Somebody sends much: look soon. */
  readonly wake: () => void;
  /** Milliseconds that never go back. */
  readonly monotonicNow: () => number;
}

/**
 * A flood fills a shard's queue with 100 ms of work in 20. Where nobody sends much the broker is not asked, and an idle
 * process does nothing 20 times a second.
 */
const LOOK_INTERVAL_MS = 50;
const IDLE_INTERVAL_MS = 1_000;
/** Of the time, for the broker to count: on Postgres that takes long where much waits. */
const COUNTING_SHARE_MAX = 0.1;
/** Of what came before the last look so much counts still. */
const REMEMBERED = 0.8;
/** A workspace that was quiet for so long wants nothing. */
const WANTED_FOR_MS = 10_000;
/** Bytes of requests, as remembered: less of one workspace, some 2,000 small events a second, keeps no worker busy. */
const HEAVY_SIZE_BYTES_MIN = 100_000;
/** Answers that are put off are spread over so many moments, from half of the delay to one and a half. */
const PHASE_COUNT = 8;

export class AnswerPace {
  readonly #options: AnswerPaceOptions;
  /** By workspace: bytes of its requests lately. */
  readonly #recent = new Map<number, number>();
  readonly #seenAtMs = new Map<number, number>();
  readonly #heavy = new Set<number>();
  #delayMs = 0;
  #phase = 0;
  /** How long the broker took at last. */
  #countMs = 0;
  /** Somebody sends much. */
  #isWatching = false;
  #before: { readonly unapplied: number; readonly added: number } | undefined;

  constructor(options: AnswerPaceOptions) {
    this.#options = options;
  }

  /** False: no answer is put off. */
  get isSlowing(): boolean {
    return this.#delayMs > 0 && this.#heavy.size > 0;
  }

  /** Milliseconds by which the next answer to the workspace is put off. */
  delayMsOf(environmentId: number): number {
    if (!this.#heavy.has(environmentId)) return 0;
    // Not all of a flush at the same moment: they would come back together, as one burst.
    this.#phase = (this.#phase + 1) % PHASE_COUNT;
    return Math.ceil(this.#delayMs * (0.5 + (this.#phase + 0.5) / PHASE_COUNT));
  }

  /** A flush was committed; `sizes`: bytes of its requests, by workspace. */
  committed(sizes: ReadonlyMap<number, number>): void {
    const nowMs = this.#options.monotonicNow();
    for (const [environmentId, sizeBytes] of sizes) {
      // What intake itself writes down is no sender.
      if (sizeBytes === 0) continue;
      const recentSizeBytes = (this.#recent.get(environmentId) ?? 0) + sizeBytes;
      this.#recent.set(environmentId, recentSizeBytes);
      this.#seenAtMs.set(environmentId, nowMs);
      if (recentSizeBytes > HEAVY_SIZE_BYTES_MIN && !this.#isWatching) {
        this.#isWatching = true;
        this.#options.wake();
      }
    }
  }

  /** Milliseconds until the next {@link look}. */
  get intervalMs(): number {
    if (!this.#isWatching) return IDLE_INTERVAL_MS;
    return Math.max(LOOK_INTERVAL_MS, this.#countMs / COUNTING_SHARE_MAX);
  }

  /** Looks at who sends, and where somebody sends much beside others, at the workers. */
  async look(): Promise<void> {
    this.#findHeavy();
    if (this.#heavy.size === 0) {
      this.#delayMs = 0;
      this.#before = undefined;
      return;
    }
    const { countUnapplied, addedCount, monotonicNow } = this.#options;
    const added = addedCount();
    const askedAtMs = monotonicNow();
    // A broker that does not answer has nobody wait; the committer tells of it.
    const counts = await countUnapplied().catch(() => undefined);
    this.#countMs = monotonicNow() - askedAtMs;
    if (counts === undefined) {
      this.#delayMs = 0;
      this.#before = undefined;
      return;
    }
    const unapplied = counts.reduce((sum, count) => sum + count, 0);
    const before = this.#before;
    this.#before = { unapplied, added };
    this.#delayMs = nextAnswerDelayMs(this.#delayMs, {
      unappliedCount: Math.max(0, ...counts),
      // At the first look nobody knows.
      isProgressing: before === undefined || before.unapplied + (added - before.added) > unapplied,
    });
  }

  #findHeavy(): void {
    const sinceMs = this.#options.monotonicNow() - WANTED_FOR_MS;
    for (const [environmentId, seenAtMs] of this.#seenAtMs) {
      if (seenAtMs >= sinceMs) continue;
      this.#seenAtMs.delete(environmentId);
      this.#recent.delete(environmentId);
    }
    let totalSizeBytes = 0;
    this.#isWatching = false;
    for (const sizeBytes of this.#recent.values()) totalSizeBytes += sizeBytes;
    this.#heavy.clear();
    for (const [environmentId, sizeBytes] of this.#recent) {
      const isMuch = sizeBytes > (totalSizeBytes * this.#options.sharePercent) / 100;
      if (sizeBytes > HEAVY_SIZE_BYTES_MIN) this.#isWatching = true;
      if (isMuch && sizeBytes > HEAVY_SIZE_BYTES_MIN && this.#seenAtMs.size > 1)
        this.#heavy.add(environmentId);
      this.#recent.set(environmentId, sizeBytes * REMEMBERED);
    }
  }
}
