/**
 * Admits calls of busy workspaces while other workspaces send too.
 *
 * Such a call waits in a line of its workspace until the window is free, and goes behind the other calls of the next
 * flush. The window keeps the time until calls are applied within two or three times of the usual. Else a workspace
 * that sends faster than the workers apply would have all others' calls wait behind its own: 8 s in the middle of 300
 * calls, 21 s at their end (`npm run bench -- neighbour`). A waiting call is not answered yet, so a sender with any
 * number of connections becomes as fast as the workers. The calls of one workspace keep their order. If workers apply
 * no calls at all, as during an outage, no call waits for them, nor until they have caught up. A shard that stands
 * still while others do not is not waited for either. `batcher.ts` has the lines; this has the busy workspaces, and
 * their unapplied operations.
 */
import {
  ADMISSION_WINDOW_MIN,
  ADMISSION_WINDOW_START,
  nextAdmissionWindow,
  nextUsualMs,
  USUAL_APPLIED_AFTER_MS,
} from '@sluice/domain/operations/admission-window';
import type { QueuedBatch } from '@sluice/platform/queue/queue-heads';
import { STALLED_AFTER_MS, StalledShards } from './stalled-shards.ts';

export interface AdmissionOptions {
  /** No other workspace could want any. */
  readonly isAlone: () => boolean;
  /** The commit batches among some that are not applied. */
  readonly listQueued: (batches: readonly QueuedBatch[]) => Promise<ReadonlySet<string>>;
  /** The first commit batches in the queue of each shard: another text after each that is taken. */
  readonly readHeads: () => Promise<readonly string[]>;
  /** Something is to be looked at. */
  readonly wake: () => void;
  /** Something may be admitted again. */
  readonly onCapacity: () => void;
  /** Milliseconds that never go back. */
  readonly monotonicNow: () => number;
  /** The same, of this turn of the event loop (`turn-clock.ts`). */
  readonly turnNow: () => number;
}

/** The watched part of a flush. */
interface Watched {
  batches: readonly QueuedBatch[];
  /** So many they were at first. */
  readonly batchCount: number;
  /** Operations that waited to be admitted; 0 for a sample without waiting operations. */
  readonly operationCount: number;
  readonly atMs: number;
  readonly isLimiting: boolean;
}

/** Bytes of a workspace count half as much after so long. */
const HALF_LIFE_MS = 150;
/** As they count: less of one workspace, some 2,000 small events a second, keeps no worker busy. */
const MUCH_SIZE_BYTES = 100_000;
/** A workspace that was quiet for so long wants no capacity. */
const WANTED_FOR_MS = 10_000;
/** A worker applies a small commit batch in 5 ms or more. */
const LOOK_INTERVAL_MS = 10;
const IDLE_INTERVAL_MS = 1_000;
const SAMPLE_INTERVAL_MS = 1_000;
/** Share of the time in which the broker answers: on Postgres that takes long if it is busy. */
const ASKING_SHARE_MAX = 0.1;
/** However long one answer took: a pause of this process is no slow broker. */
const SLOW_LOOK_INTERVAL_MS = 100;
/** If no admitted operation is applied for so long, the heads of the queues are looked at, each time after so long. */
const HEADS_LOOK_INTERVAL_MS = 250;
/** Catching up goes on from one round to the next as long as each is so much shorter, and until one is short. */
const ROUND_SHRINKS_BELOW = 0.75;
const ROUND_MS_MIN = 500;
/** A sender waits so long at most, as far as is known: before most clients give a call up. */
const WAIT_MS_MAX = 5_000;
/** Applied operations count for about so long: a pause of a second changes little. */
const RATE_OVER_MS = 5_000;

/** Bytes that a workspace sent of late. */
interface Recent {
  sizeBytes: number;
  atMs: number;
}

const decayed = ({ sizeBytes, atMs }: Recent, nowMs: number): number =>
  sizeBytes * 0.5 ** ((nowMs - atMs) / HALF_LIFE_MS);

export class Admission {
  readonly #options: AdmissionOptions;
  /** By workspace. No more than there are keys. */
  readonly #recent = new Map<number, Recent>();
  /** The last sender, and the last one of the others. */
  #last = { environmentId: -1, atMs: -Infinity };
  #lastOther = { environmentId: -1, atMs: -Infinity };
  #window = ADMISSION_WINDOW_START;
  #watched: Watched[] = [];
  #unappliedCount = 0;
  /** Of the last that were admitted. */
  #appliedAfterMs = 0;
  #usualMs = USUAL_APPLIED_AFTER_MS;
  #sampledAtMs = -Infinity;
  readonly #stalled = new StalledShards();
  #progressAtMs = -Infinity;
  /** Admitted operations that are applied: a decaying count, with the start and the end of the count. */
  #rate = { operationCount: 0, sinceMs: 0, atMs: 0 };
  /** Workers apply no operations, or the broker does not answer; or they have not caught up since. */
  #isOpen = false;
  #isCatchingUp = false;
  #round = { atMs: 0, beforeMs: Infinity };
  /** Of those admitted while it is open, the latest: when it is applied, workers have caught up. */
  #latest: readonly QueuedBatch[] | undefined;
  #askingMs = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Counts a call; true if it must wait to be admitted. */
  mustWait(environmentId: number, sizeBytes: number): boolean {
    // Operations that intake itself records have no sender.
    if (sizeBytes === 0 || this.#options.isAlone()) return false;
    const nowMs = this.#options.turnNow();
    if (this.#last.environmentId === environmentId) this.#last.atMs = nowMs;
    else {
      this.#lastOther = this.#last;
      this.#last = { environmentId, atMs: nowMs };
    }
    const recent = this.#recent.get(environmentId);
    if (recent === undefined) {
      this.#recent.set(environmentId, { sizeBytes, atMs: nowMs });
      return false;
    }
    // In place, and in a turn of the event loop once: on the way of every call.
    if (nowMs > recent.atMs) {
      recent.sizeBytes = decayed(recent, nowMs);
      recent.atMs = nowMs;
    }
    recent.sizeBytes += sizeBytes;
    return recent.sizeBytes > MUCH_SIZE_BYTES && this.#lastOther.atMs >= nowMs - WANTED_FOR_MS;
  }

  /** True if a workspace sends much, and another one sends too. */
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
    return recent === undefined ? 0 : decayed(recent, nowMs);
  }

  /** Operations that a group of a line may have: two of them fill the window. */
  get groupCountMax(): number {
    return Math.ceil(this.#window / 2);
  }

  /**
   * True if so many more may be admitted now, beside the ones of the same flush. One group always may, if no other
   * waits.
   */
  mayAdmit(operationCount: number, besideCount: number): boolean {
    const waitingCount = this.#unappliedCount + besideCount;
    return this.#isOpen || waitingCount === 0 || waitingCount + operationCount <= this.#window;
  }

  /**
   * True if a call may join a line before which so many operations are admitted. Otherwise its sender would wait for
   * too long, by the latest time and by the operations applied of late. After a pause of the workers the first is long,
   * and at the beginning the second is little.
   */
  mayJoin(operationCount: number): boolean {
    if (this.#isOpen || operationCount === 0) return true;
    const nowMs = this.#options.monotonicNow();
    // Until a time is known, the age of the oldest unapplied flush.
    const latestMs = this.#appliedAfterMs || nowMs - (this.#watched[0]?.atMs ?? nowMs);
    const byLatestMs = (operationCount / this.#window) * latestMs;
    const byRateMs = operationCount / this.#operationsAMs(nowMs);
    return Math.min(byLatestMs, byRateMs) <= WAIT_MS_MAX;
  }

  #operationsAMs(nowMs: number): number {
    const { operationCount, sinceMs, atMs } = this.#rate;
    // A count over a shorter time has not decayed so far.
    const overMs = RATE_OVER_MS * (1 - Math.exp((sinceMs - nowMs) / RATE_OVER_MS));
    return overMs <= 0 ? 0 : (operationCount * Math.exp((atMs - nowMs) / RATE_OVER_MS)) / overMs;
  }

  /** Once in a while the time of a flush without waiting operations shows the usual one. */
  get isSampleDue(): boolean {
    return (
      this.#watched.length === 0 &&
      !this.#options.isAlone() &&
      this.#options.monotonicNow() - this.#sampledAtMs >= SAMPLE_INTERVAL_MS
    );
  }

  /** The broker has a flush without waiting operations, and a sample is due. */
  sample(batches: readonly QueuedBatch[], operationCount: number): void {
    if (operationCount > ADMISSION_WINDOW_MIN) return;
    this.#sampledAtMs = this.#options.monotonicNow();
    this.#watch({ batches, operationCount: 0, atMs: this.#sampledAtMs, isLimiting: false });
  }

  /** The broker has the admitted batches. @param isLimiting - more wait in the lines. */
  admitted(batches: readonly QueuedBatch[], operationCount: number, isLimiting: boolean): void {
    if (this.#isOpen) {
      this.#latest = batches;
      if (this.#watched.length > 0) return;
    }
    const atMs = this.#options.monotonicNow();
    const moving = this.#stalled.without(batches, atMs);
    if (moving.length === 0) return;
    this.#unappliedCount += operationCount;
    this.#watch({ batches: moving, operationCount, atMs, isLimiting });
  }

  #watch(watched: Omit<Watched, 'batchCount'>): void {
    this.#watched.push({ ...watched, batchCount: watched.batches.length });
    if (this.#watched.length > 1) return;
    this.#progressAtMs = watched.atMs;
    this.#options.wake();
  }

  /** Milliseconds until the next {@link look}. */
  get intervalMs(): number {
    if (this.#watched.length === 0) return IDLE_INTERVAL_MS;
    const intervalMs = this.#stalled.hasHeads ? HEADS_LOOK_INTERVAL_MS : LOOK_INTERVAL_MS;
    const askingMs = Math.min(SLOW_LOOK_INTERVAL_MS, this.#askingMs / ASKING_SHARE_MAX);
    return Math.max(intervalMs, askingMs);
  }

  /** Looks which of the admitted batches are applied. */
  async look(): Promise<void> {
    const asked = this.#watched.flatMap(({ batches }) => batches);
    if (asked.length === 0) return;
    const { listQueued, monotonicNow, onCapacity } = this.#options;
    const askedAtMs = monotonicNow();
    try {
      const queued = await listQueued(asked);
      this.#askingMs = monotonicNow() - askedAtMs;
      // On average it was applied in the middle between two looks.
      const halfMs = this.intervalMs / 2;
      if (this.#remove(new Set(asked), queued, halfMs)) {
        this.#stalled.forgetHeads();
        this.#progressed();
      } else if (monotonicNow() - this.#progressAtMs >= HEADS_LOOK_INTERVAL_MS)
        await this.#lookAtHeads();
    } catch {
      // The committer logs a broker that does not answer.
      this.#isOpen = true;
    }
    onCapacity();
  }

  /** @returns true if one of the batches that were asked for is applied. */
  #remove(asked: ReadonlySet<QueuedBatch>, queued: ReadonlySet<string>, halfMs: number): boolean {
    const nowMs = this.#options.monotonicNow();
    let isProgress = false;
    this.#watched = this.#watched.filter((each) => {
      const left = each.batches.filter((batch) => !asked.has(batch) || queued.has(batch.id));
      if (left.length < each.batches.length) isProgress = true;
      each.batches = left;
      const ageMs = nowMs - each.atMs;
      if (left.length > 0 && (this.#isOpen || ageMs < STALLED_AFTER_MS)) return true;
      // If others are applied, the rest is of shards that stand still, and the others must not wait for them.
      if (left.length < each.batchCount)
        for (const { shard } of left) this.#stalled.add(shard, nowMs);
      this.#applied(each, ageMs - halfMs, left.length === 0 ? nowMs : undefined);
      return false;
    });
    return isProgress;
  }

  #applied(
    { operationCount, isLimiting, atMs: admittedAtMs }: Watched,
    appliedAfterMs: number,
    atMs?: number,
  ): void {
    this.#unappliedCount -= operationCount;
    // A time that spans a pause of the workers is no sign of their speed.
    if (this.#isOpen) return;
    if (operationCount > 0) {
      if (atMs !== undefined) {
        const { operationCount: counted, sinceMs, atMs: countedAtMs } = this.#rate;
        const before = counted * Math.exp((countedAtMs - atMs) / RATE_OVER_MS);
        const isFirst = before < 1;
        this.#rate = {
          operationCount: before + operationCount,
          sinceMs: isFirst ? admittedAtMs : sinceMs,
          atMs,
        };
      }
      this.#appliedAfterMs = appliedAfterMs;
      this.#window = nextAdmissionWindow(this.#window, appliedAfterMs, this.#usualMs, isLimiting);
    } else if (this.#unappliedCount === 0) {
      this.#usualMs = nextUsualMs(this.#usualMs, appliedAfterMs);
    }
  }

  #progressed(): void {
    this.#progressAtMs = this.#options.monotonicNow();
    if (this.#isOpen) this.#catchUp(this.#progressAtMs);
  }

  /**
   * Workers are back, with all calls of the pause before them. No call waits until those are applied, then until the
   * calls of that time are, and so on. It ends only if fewer calls come than the workers apply.
   */
  #catchUp(nowMs: number): void {
    if (this.#isCatchingUp && this.#watched.length > 0) return;
    const lastedMs = this.#isCatchingUp ? nowMs - this.#round.atMs : Infinity;
    const goesOn =
      lastedMs === Infinity ||
      (lastedMs > ROUND_MS_MIN && lastedMs < ROUND_SHRINKS_BELOW * this.#round.beforeMs);
    const latest = this.#stalled.without(this.#latest ?? [], nowMs);
    if (goesOn && latest.length > 0) {
      this.#round = { atMs: nowMs, beforeMs: lastedMs };
      this.#watched.push({
        batches: latest,
        batchCount: latest.length,
        operationCount: 0,
        atMs: nowMs,
        isLimiting: false,
      });
    }
    this.#latest = undefined;
    this.#isCatchingUp = this.#watched.length > 0;
    this.#isOpen = this.#isCatchingUp;
  }

  /** Workers may be busy with earlier batches: no admitted batch is applied. */
  async #lookAtHeads(): Promise<void> {
    const texts = await this.#options.readHeads();
    const nowMs = this.#options.monotonicNow();
    const change = this.#stalled.changeOf(texts, nowMs);
    if (change === 'unknown') return;
    if (change === 'some') {
      if (this.#isCatchingUp) this.#leaveStalled(nowMs);
      this.#progressed();
    } else if (nowMs - this.#progressAtMs >= STALLED_AFTER_MS) this.#isOpen = true;
  }

  /** Catching up ends without the shards that stand still: the time at which those go on is unknown. */
  #leaveStalled(nowMs: number): void {
    this.#stalled.addByHeads(nowMs);
    this.#watched = this.#watched.filter((each) => {
      each.batches = this.#stalled.without(each.batches, nowMs);
      if (each.batches.length > 0) return true;
      this.#unappliedCount -= each.operationCount;
      return false;
    });
  }
}
