/**
 * How long one drain of a lane may start requests: for a slice of time, and for longer where nobody
 * wants its place. Each slice more costs a job of the queue, a claim and a giving back.
 *
 * It begins when there is something to send, not with the claim: a database that is slower than a
 * slice is long would otherwise have lanes claimed and given back for ever.
 *
 * Used by `lane-drain.ts`.
 */
export interface LaneSliceOptions {
  readonly sliceMs: number;
  /** Others may wait for this lane's place. */
  readonly isPlaceWanted: () => boolean;
}

/** Of a lane that nobody waits for: it is let go now and then, so that workers share what there is. */
const SLICES_MAX = 20;
/** The queue is asked no more often: each request wants to know. */
const ASK_INTERVAL_MS = 100;

export class LaneSlice {
  readonly #options: LaneSliceOptions;
  #beganAtMs: number | undefined;
  #askedAtMs = -Infinity;
  #isPlaceWanted = false;

  constructor(options: LaneSliceOptions) {
    this.#options = options;
  }

  get sliceMs(): number {
    return this.#options.sliceMs;
  }

  /** The first part of the log is there; again, it changes nothing. */
  begin(nowMs: number): void {
    this.#beganAtMs ??= nowMs;
  }

  isOver(nowMs: number): boolean {
    const { sliceMs } = this.#options;
    const elapsedMs = nowMs - (this.#beganAtMs ?? nowMs);
    return elapsedMs >= sliceMs && (elapsedMs >= sliceMs * SLICES_MAX || this.#mayGo(nowMs));
  }

  #mayGo(nowMs: number): boolean {
    if (nowMs - this.#askedAtMs >= ASK_INTERVAL_MS) {
      this.#askedAtMs = nowMs;
      this.#isPlaceWanted = this.#options.isPlaceWanted();
    }
    return this.#isPlaceWanted;
  }
}
