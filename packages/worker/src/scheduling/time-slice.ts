/**
 * Time during which one drain may start requests: a time slice, and longer if no other queue waits. Each further time
 * slice costs a job of the queue, a claim and a release.
 *
 * It begins when there is something to send, not with the claim. Otherwise, with a database that takes longer than a
 * time slice, lanes would be claimed and released for ever.
 *
 * Used by `lane-drain.ts`.
 */
export interface TimeSliceOptions {
  readonly timeSliceMs: number;
  /** Others may wait for this lane's place. */
  readonly isPlaceWanted: () => boolean;
}

/** For a lane whose place no other lane wants: it is released now and then, so that workers share the lanes. */
const TIME_SLICES_MAX = 20;
/** Each request asks; the queue is asked no more often than this. */
const ASK_INTERVAL_MS = 100;

export class TimeSlice {
  readonly #options: TimeSliceOptions;
  #beganAtMs: number | undefined;
  #askedAtMs = -Infinity;
  #isPlaceWanted = false;

  constructor(options: TimeSliceOptions) {
    this.#options = options;
  }

  get timeSliceMs(): number {
    return this.#options.timeSliceMs;
  }

  /** Call it when the first page of the log is there. Later calls have no effect. */
  begin(nowMs: number): void {
    this.#beganAtMs ??= nowMs;
  }

  isOver(nowMs: number): boolean {
    const { timeSliceMs } = this.#options;
    const elapsedMs = nowMs - (this.#beganAtMs ?? nowMs);
    return (
      elapsedMs >= timeSliceMs && (elapsedMs >= timeSliceMs * TIME_SLICES_MAX || this.#mayGo(nowMs))
    );
  }

  #mayGo(nowMs: number): boolean {
    if (nowMs - this.#askedAtMs >= ASK_INTERVAL_MS) {
      this.#askedAtMs = nowMs;
      this.#isPlaceWanted = this.#options.isPlaceWanted();
    }
    return this.#isPlaceWanted;
  }
}
