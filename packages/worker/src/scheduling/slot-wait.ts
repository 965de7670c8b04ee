/**
 * One lane's wait for a slot: at most one at a time, and none beyond the end of the lane's slice.
 *
 * Between `lane-drain.ts` and `fair-slots.ts`.
 */
import type { FairSlots, Slot, SlotAsker } from './fair-slots.ts';
import type { LaneSlice } from './lane-slice.ts';

export interface SlotWaitOptions {
  readonly asker: SlotAsker;
  readonly slice: LaneSlice;
  readonly monotonicNow: () => number;
  /** The lane's turn, once a wait: it may take the slot within the call. */
  readonly onTurn: (takeSlot: () => Slot) => void;
  /** The slice is over. */
  readonly onGivenUp: () => void;
}

export class SlotWait {
  readonly #options: SlotWaitOptions;
  #leave: (() => void) | undefined;
  /** One a lane, not one a wait: requests are many. */
  #sliceTimer: NodeJS.Timeout | undefined;

  constructor(options: SlotWaitOptions) {
    this.#options = options;
  }

  get isWaiting(): boolean {
    return this.#leave !== undefined;
  }

  begin(slots: FairSlots): void {
    const { asker, slice, onTurn } = this.#options;
    // Its turn may come within this very call.
    let hasCome = false;
    const leave = slots.wait(asker, () => {
      hasCome = true;
      this.#end();
      onTurn(() => slots.takeTurn(asker));
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
