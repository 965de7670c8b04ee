/**
 * One lane's wait for a permit: at most one at a time, and none beyond the end of the lane's slice.
 *
 * Between `lane-drain.ts` and `fair-permits.ts`.
 */
import type { FairPermits, Permit, PermitRequester } from './fair-permits.ts';
import type { LaneSlice } from './lane-slice.ts';

export interface PermitWaitOptions {
  readonly requester: PermitRequester;
  readonly slice: LaneSlice;
  readonly monotonicNow: () => number;
  /** The lane's turn, once a wait: it may acquire the permit within the call. */
  readonly onTurn: (acquirePermit: () => Permit) => void;
  /** The slice is over. */
  readonly onGivenUp: () => void;
}

export class PermitWait {
  readonly #options: PermitWaitOptions;
  #leave: (() => void) | undefined;
  /** One a lane, not one a wait: requests are many. */
  #sliceTimer: NodeJS.Timeout | undefined;

  constructor(options: PermitWaitOptions) {
    this.#options = options;
  }

  get isWaiting(): boolean {
    return this.#leave !== undefined;
  }

  begin(permits: FairPermits): void {
    const { requester, slice, onTurn } = this.#options;
    // Its turn may come within this very call.
    let hasCome = false;
    const leave = permits.wait(requester, () => {
      hasCome = true;
      this.#end();
      onTurn(() => permits.takeTurn(requester));
    });
    if (hasCome) return;
    this.#leave = leave;
    this.#sliceTimer ??= setTimeout(() => this.#look(), slice.sliceMs);
  }

  /** Ends the wait, if there is one, and waits no more. */
  close(): void {
    clearTimeout(this.#sliceTimer);
    this.#end();
  }

  #look(): void {
    const { slice, monotonicNow, onGivenUp } = this.#options;
    this.#sliceTimer = undefined;
    if (!this.isWaiting) return;
    if (!slice.isOver(monotonicNow())) {
      this.#sliceTimer = setTimeout(() => this.#look(), slice.sliceMs);
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
