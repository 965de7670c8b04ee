/**
 * Admits to the queues what workspaces send that send much, while others send too: as much at a time as keeps
 * the time until it is applied within two or three times of the usual. Else a workspace that sends faster than the workers apply has the calls of all others wait behind its own, for
 * as long as that is: 8 s in the middle of 300 calls, 21 s at their end (`npm run bench -- neighbour`).
 *
 * ```
 *   call ─▶ sends little, or is the only one ─────────────────────────────▶ next flush
 *      └──▶ sends much beside others ─▶ line of its workspace ─ window free ─▶ next flush, behind the others' calls
 * ```
 *
 * What waits in a line is not answered yet, so a sender of any number of connections becomes as fast as the workers. The calls
 * of one workspace keep their order. Where workers apply nothing at all, as during an outage, nobody waits for them.
 *
 * `batcher.ts` has the lines; this knows who sends much, and what of it is not applied.
 */
import {
  ADMISSION_WINDOW_MIN,
  ADMISSION_WINDOW_START,
  nextAdmissionWindow,
  nextUsualMs,
  USUAL_APPLIED_AFTER_MS,
} from '@sluice/domain/operations/admission-window';
import type { QueuedBatch } from '@sluice/platform/queue/queue-heads';

export interface AdmissionOptions {
  /** No other workspace could want any. */
  readonly isAlone: () => boolean;
  /** Those of some commit batches that are not applied. */
  readonly listQueued: (batches: readonly QueuedBatch[]) => Promise<ReadonlySet<string>>;
  /** Which commit batches stand first in the queues: another text after each that is taken. */
  readonly readHeads: () => Promise<string>;
  /** Something is to be looked at. */
  readonly wake: () => void;
  /** Something may be admitted again. */
  readonly onCapacity: () => void;
  /** Milliseconds that never go back. */
  readonly monotonicNow: () => number;
}

/** What of a flush is watched. */
interface Watched {
  batches: readonly QueuedBatch[];
  /** Of those that waited to be admitted; 0: a sample of what nobody waited for. */
  readonly operationCount: number;
  readonly atMs: number;
  readonly isLimiting: boolean;
}

/** Bytes of a workspace count half as much after so long. */
const HALF_LIFE_MS = 150;
/** As they count: less of one workspace, some 2,000 small events a second, keeps no worker busy. */
const MUCH_SIZE_BYTES = 100_000;
/** A workspace that was quiet for so long wants nothing. */
const WANTED_FOR_MS = 10_000;
/** A worker applies a small commit batch in 5 ms or more. */
const LOOK_INTERVAL_MS = 10;
const IDLE_INTERVAL_MS = 1_000;
const SAMPLE_INTERVAL_MS = 1_000;
/** Of the time, for the broker to answer: on Postgres that takes long where it is busy. */
const ASKING_SHARE_MAX = 0.1;
/** Where nothing of what was admitted is applied for so long, the heads of the queues are looked at, each time after so long. */
const HEADS_LOOK_INTERVAL_MS = 250;
/** Longer than any transaction of a worker that is at work: workers that take nothing for so long are away. */
const STALLED_AFTER_MS = 2_000;
/** A sender waits so long at most, as the time of late is: before most clients give a call up. */
const WAIT_MS_MAX = 5_000;

export class Admission {
  readonly #options: AdmissionOptions;
  /** By workspace. No more than there are keys. */
  readonly #recent = new Map<number, { sizeBytes: number; atMs: number }>();
  /** Who sent last, and who of the others did. */
  #last = { environmentId: -1, atMs: -Infinity };
  #lastOther = { environmentId: -1, atMs: -Infinity };
  #window = ADMISSION_WINDOW_START;
  #watched: Watched[] = [];
  #unappliedCount = 0;
  /** Of the last that were admitted. */
  #appliedAfterMs = 0;
  #usualMs = USUAL_APPLIED_AFTER_MS;
  #sampledAtMs = -Infinity;
  #heads: string | undefined;
  #progressAtMs = -Infinity;
  /** Workers apply nothing, or the broker does not answer. */
  #isOpen = false;
  #askingMs = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Counts a call. @returns true where it must wait to be admitted. */
  mustWait(environmentId: number, sizeBytes: number): boolean {
    // What intake itself writes down is no sender.
    if (sizeBytes === 0 || this.#options.isAlone()) return false;
    const nowMs = this.#options.monotonicNow();
    if (this.#last.environmentId !== environmentId) this.#lastOther = this.#last;
    this.#last = { environmentId, atMs: nowMs };
    const recentSizeBytes = this.#recentSizeBytes(environmentId, nowMs) + sizeBytes;
    this.#recent.set(environmentId, { sizeBytes: recentSizeBytes, atMs: nowMs });
    return recentSizeBytes > MUCH_SIZE_BYTES && this.#lastOther.atMs >= nowMs - WANTED_FOR_MS;
  }

  /** True where a workspace sends much, and another one sends too. */
  sendsMuch(environmentId: number): boolean {
    const nowMs = this.#options.monotonicNow();
    const other = this.#last.environmentId === environmentId ? this.#lastOther : this.#last;
    return (
      other.atMs >= nowMs - WANTED_FOR_MS &&
      this.#recentSizeBytes(environmentId, nowMs) > MUCH_SIZE_BYTES
    );
  }

  #recentSizeBytes(environmentId: number, nowMs: number): number {
    const recent = this.#recent.get(environmentId);
    if (recent === undefined) return 0;
    return recent.sizeBytes * 0.5 ** ((nowMs - recent.atMs) / HALF_LIFE_MS);
  }

  /** Operations that a group of a line may have: two of them fill the window. */
  get groupCountMax(): number {
    return Math.ceil(this.#window / 2);
  }

  /** So many more may be admitted now, beside those that go with the same flush. One group always may, if no other waits. */
  mayAdmit(operationCount: number, besideCount: number): boolean {
    const waitingCount = this.#unappliedCount + besideCount;
    return this.#isOpen || waitingCount === 0 || waitingCount + operationCount <= this.#window;
  }

  /** Milliseconds for which a call would wait behind so many operations of lines, as long as it goes on as it does. */
  waitMsBehind(operationCount: number): number {
    if (this.#isOpen) return 0;
    const [oldest] = this.#watched;
    const agedMs = oldest === undefined ? 0 : this.#options.monotonicNow() - oldest.atMs;
    return (operationCount / this.#window) * Math.max(this.#appliedAfterMs, agedMs);
  }

  /** True where a call may join the lines, which have so many operations. Otherwise its sender would wait for too long. */
  mayJoin(operationCount: number): boolean {
    return this.waitMsBehind(operationCount) <= WAIT_MS_MAX;
  }

  /** The broker has a flush without any that waited: once in a while its time tells what is usual. */
  sample(batches: readonly QueuedBatch[], operationCount: number): void {
    const atMs = this.#options.monotonicNow();
    if (this.#watched.length > 0 || atMs - this.#sampledAtMs < SAMPLE_INTERVAL_MS) return;
    if (operationCount > ADMISSION_WINDOW_MIN || this.#options.isAlone()) return;
    this.#sampledAtMs = atMs;
    this.#watch({ batches, operationCount: 0, atMs, isLimiting: false });
  }

  /** The broker has those that were admitted. @param isLimiting - more wait in the lines. */
  admitted(batches: readonly QueuedBatch[], operationCount: number, isLimiting: boolean): void {
    if (this.#isOpen && this.#watched.length > 0) return;
    this.#unappliedCount += operationCount;
    this.#watch({ batches, operationCount, atMs: this.#options.monotonicNow(), isLimiting });
  }

  #watch(watched: Watched): void {
    this.#watched.push(watched);
    if (this.#watched.length > 1) return;
    this.#progressAtMs = watched.atMs;
    this.#options.wake();
  }

  /** Milliseconds until the next {@link look}. */
  get intervalMs(): number {
    if (this.#watched.length === 0) return IDLE_INTERVAL_MS;
    const intervalMs = this.#heads === undefined ? LOOK_INTERVAL_MS : HEADS_LOOK_INTERVAL_MS;
    return Math.max(intervalMs, this.#askingMs / ASKING_SHARE_MAX);
  }

  /** Looks at what has been applied of what was admitted. */
  async look(): Promise<void> {
    const asked = this.#watched.flatMap(({ batches }) => batches);
    if (asked.length === 0) return;
    const { listQueued, monotonicNow, onCapacity } = this.#options;
    const askedAtMs = monotonicNow();
    try {
      const queued = await listQueued(asked);
      this.#askingMs = monotonicNow() - askedAtMs;
      if (this.#remove(new Set(asked), queued)) this.#progressed(undefined);
      else if (monotonicNow() - this.#progressAtMs >= HEADS_LOOK_INTERVAL_MS)
        await this.#lookAtHeads();
    } catch {
      // The committer tells of a broker that does not answer.
      this.#isOpen = true;
    }
    onCapacity();
  }

  /** @returns true where one of those that were asked for is applied. */
  #remove(asked: ReadonlySet<QueuedBatch>, queued: ReadonlySet<string>): boolean {
    const nowMs = this.#options.monotonicNow();
    let isProgress = false;
    this.#watched = this.#watched.filter((each) => {
      const left = each.batches.filter((batch) => !asked.has(batch) || queued.has(batch.id));
      if (left.length < each.batches.length) isProgress = true;
      each.batches = left;
      if (left.length > 0) return true;
      this.#applied(each, nowMs - each.atMs);
      return false;
    });
    return isProgress;
  }

  #applied({ operationCount, isLimiting }: Watched, appliedAfterMs: number): void {
    if (operationCount > 0) {
      this.#unappliedCount -= operationCount;
      this.#appliedAfterMs = appliedAfterMs;
      this.#window = nextAdmissionWindow(this.#window, appliedAfterMs, this.#usualMs, isLimiting);
    } else if (this.#unappliedCount === 0) {
      this.#usualMs = nextUsualMs(this.#usualMs, appliedAfterMs);
    }
  }

  #progressed(heads: string | undefined): void {
    this.#isOpen = false;
    this.#heads = heads;
    this.#progressAtMs = this.#options.monotonicNow();
  }

  /** Workers may be at what came before: nothing of what was admitted is applied. */
  async #lookAtHeads(): Promise<void> {
    const heads = await this.#options.readHeads();
    if (this.#heads === undefined) this.#heads = heads;
    else if (this.#heads !== heads) this.#progressed(heads);
    else if (this.#options.monotonicNow() - this.#progressAtMs >= STALLED_AFTER_MS)
      this.#isOpen = true;
  }
}
