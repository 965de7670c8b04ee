/**
 * One lane's wait for a permit: at most one at a time, and never beyond the end of the lane's time slice.
 *
 * Between `lane-drain.ts` and `fair-permits.ts`.
 */
import type { FairPermits, Permit, PermitRequester } from './fair-permits.ts';
import type { TimeSlice } from './time-slice.ts';

export interface PermitWaitOptions {
  readonly requester: PermitRequester;
  readonly timeSlice: TimeSlice;
  readonly monotonicNow: () => number;
  /** The lane's turn, once a wait: it may acquire the permit within the call. */
  readonly onTurn: (acquirePermit: () => Permit) => void;
  /** The time slice is over. */
  readonly onGivenUp: () => void;
}

export class PermitWait {
  readonly #options: PermitWaitOptions;
  #leave: (() => void) | undefined;
  /** One a lane, not one a wait: requests are many. */
  #timeSliceTimer: NodeJS.Timeout | undefined;

  constructor(options: PermitWaitOptions) {
    this.#options = options;
  }

  get isWaiting(): boolean {
    return this.#leave !== undefined;
  }

  begin(permits: FairPermits): void {
    const { requester, timeSlice, onTurn } = this.#options;
    // Its turn may come within this very call.
    let hasCome = false;
    const leave = permits.wait(requester, () => {
      hasCome = true;
      this.#end();
      onTurn(() => permits.takeTurn(requester));
    });
    if (hasCome) return;
    this.#leave = leave;
    this.#timeSliceTimer ??= setTimeout(() => this.#look(), timeSlice.timeSliceMs);
  }

  /** Ends the wait, if there is one, and waits no more. */
  close(): void {
    clearTimeout(this.#timeSliceTimer);
    this.#end();
  }

  #look(): void {
    const { timeSlice, monotonicNow, onGivenUp } = this.#options;
    this.#timeSliceTimer = undefined;
    if (!this.isWaiting) return;
    if (!timeSlice.isOver(monotonicNow())) {
      this.#timeSliceTimer = setTimeout(() => this.#look(), timeSlice.timeSliceMs);
      return;
    }
    this.#end();
    onGivenUp();
  }

  #end(): void {
    this.#leave?.();
    this.#leave = undefined;
  }
}
