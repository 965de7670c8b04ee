/**
 * Turns on the event loop for long work: one an iteration, so that sockets are served between two of them.
 *
 * ```
 *   sockets ─▶ one turn (2 ms) ─▶ sockets ─▶ one turn ─▶ …
 * ```
 * Work is divided by time: a megabyte of newlines or of nested arrays takes a hundred times as long as a megabyte of
 * events. Owners (workspaces) take turns, and the work of one owner waits in its order of arrival: a workspace that
 * sends forty large bodies delays another by one turn. Bodies that take a fraction of a turn share one. While other
 * calls come, turns take half of the time: a turn is followed by a rest of its length. Forty streams alone keep the
 * event loop and the broker busy, and the p99 of a single call was 38 ms, but 12 ms without them. Streams commit
 * smaller groups then (`stream/commit-slots.ts`).
 */
import { FairQueue } from './fair-queue.ts';

/** Calls that come each 10 ms or more often want the other half of the time, also if the last turn had no call. */
const CALLS_WITHIN_MS = 10;

/** An honest caller waits for two or three turns: when its call is read, and when the broker has confirmed it. */
const TURN_MS_MAX = 2;

/** In an iteration of the event loop, of all that needs no turn: the lines in them take less than 1 ms. */
const AT_ONCE_SIZE_BYTES_MAX = 16_384;

export interface Turn {
  /** True when the work must wait for its next turn. */
  isOver(): boolean;
}

/** @returns true if the rest of the turn is its own. */
type Work = (turn: Turn) => boolean;

export class Turns {
  readonly #monotonicNow: () => number;
  readonly #waiting = new FairQueue<Work>();
  #isScheduled = false;
  #callCount: () => number = () => 0;
  #callCountBefore = 0;
  #callAtMs = -Infinity;
  #restsUntilMs = -Infinity;
  #callWithTurnAtMs = -Infinity;
  #atOnceSizeBytes = 0;

  /** @param monotonicNow - milliseconds that never go back. */
  constructor(monotonicNow: () => number) {
    this.#monotonicNow = monotonicNow;
  }

  /** @param callCount - how many calls have come so far that need no turn. */
  yieldTo(callCount: () => number): void {
    this.#callCount = callCount;
  }

  /**
   * Notes a small call that has its turn, a compressed one for example: it waits for a flush from now on. It wants no
   * half of the time, because turns that rest would keep the next one of its kind waiting.
   */
  noteCallWithTurn(): void {
    this.#callWithTurnAtMs = this.#monotonicNow();
  }

  /** True if a call that needs no turn came during the last 10 ms, or a small one had its turn. */
  get areCallsComing(): boolean {
    const nowMs = this.#monotonicNow();
    return nowMs - this.#callWithTurnAtMs < CALLS_WITHIN_MS || this.#isWanted(nowMs);
  }

  /** True if work on so many bytes needs no turn. The bytes of an iteration of the event loop have a bound together. */
  mayWorkAtOnce(sizeBytes: number): boolean {
    if (this.#atOnceSizeBytes + sizeBytes > AT_ONCE_SIZE_BYTES_MAX) return false;
    if (this.#atOnceSizeBytes === 0) setImmediate(this.#endIteration);
    this.#atOnceSizeBytes += sizeBytes;
    return true;
  }

  readonly #endIteration = (): void => {
    this.#atOnceSizeBytes = 0;
  };

  /** Resolves when `owner` has a turn of its own. */
  next(owner: number): Promise<Turn> {
    return new Promise((resolve) => {
      this.#add(owner, (turn) => {
        resolve(turn);
        return true;
      });
    });
  }

  /** Runs short work when it is the turn of `owner`; as much of it as there is time for shares one. */
  share(owner: number, work: () => void): void {
    this.#add(owner, () => {
      work();
      return false;
    });
  }

  #add(owner: number, work: Work): void {
    this.#waiting.add(owner, work);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // The work of a turn runs behind the promise of `next`: only the next iteration knows when it ended.
    setImmediate(this.#serveOrRest);
  }

  readonly #serveOrRest = (): void => {
    const nowMs = this.#monotonicNow();
    const restMs = this.#isWanted(nowMs) ? this.#restsUntilMs - nowMs : 0;
    if (restMs > 0) setTimeout(this.#serve, Math.ceil(restMs));
    else this.#serve();
  };

  /** True if calls want the other half of the time. */
  #isWanted(nowMs: number): boolean {
    const callCount = this.#callCount();
    if (callCount > this.#callCountBefore) this.#callAtMs = nowMs;
    this.#callCountBefore = callCount;
    return nowMs - this.#callAtMs < CALLS_WITHIN_MS;
  }

  readonly #serve = (): void => {
    this.#isScheduled = false;
    const beganAtMs = this.#monotonicNow();
    const endsAtMs = beganAtMs + TURN_MS_MAX;
    this.#restsUntilMs = endsAtMs + TURN_MS_MAX;
    let isThisIteration = true;
    setImmediate(() => (isThisIteration = false));
    const turn: Turn = {
      isOver: () => {
        const nowMs = this.#monotonicNow();
        if (nowMs < endsAtMs) return false;
        // A large item cannot be divided, and its turn takes longer.
        if (isThisIteration) this.#restsUntilMs = nowMs + (nowMs - beganAtMs);
        return true;
      },
    };
    let isTaken: boolean | undefined = false;
    while (isTaken === false && !turn.isOver()) isTaken = this.#waiting.take()?.(turn);
    if (!this.#waiting.isEmpty) this.#schedule();
  };
}
