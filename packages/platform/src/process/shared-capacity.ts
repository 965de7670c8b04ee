/**
 * Shares of workspaces in a common bound of this process. The rule is `domain/src/values/fair-share.ts`; this keeps the
 * counts and the latest refusals.
 *
 * On the way of every call: a source's calls come in a row, so the entry of the last workspace is at hand.
 */
import { isWithinShare, mayTake, type SharedBound } from '@sluice/domain/values/fair-share';

export interface SharedCapacityOptions extends SharedBound {
  /** No other workspace could want any. */
  readonly isAlone: () => boolean;
  /** Milliseconds that never go back. */
  readonly monotonicNow: () => number;
}

/** Callers without valid credentials, together. They are no workspace, so they are never the only one. */
const STRANGERS = 0;

/** Time for which a workspace counts as wanting some: a refused caller gets a `Retry-After` of 10 s at most. */
const WANTED_FOR_MS = 15_000;

/** An object, which changes in place: a write to the map for each call takes as long as the rest. */
interface Held {
  readonly environmentId: number;
  size: number;
}

const NOTHING: Held = { environmentId: Number.NaN, size: 0 };

export class SharedCapacity {
  readonly #bound: SharedBound;
  readonly #isAlone: () => boolean;
  readonly #monotonicNow: () => number;
  /** By workspace; an entry is above 0. */
  readonly #held = new Map<number, Held>();
  /** Of the last workspace, if it has an entry. */
  #last = NOTHING;
  /** By workspace: time of its refusal. An entry goes away once the workspace gets some. */
  readonly #refusedAtMs = new Map<number, number>();
  #totalSize = 0;

  constructor({ isAlone, monotonicNow, ...bound }: SharedCapacityOptions) {
    this.#bound = bound;
    this.#isAlone = isAlone;
    this.#monotonicNow = monotonicNow;
  }

  /** Sum of all workspaces. */
  get totalSize(): number {
    return this.#totalSize;
  }

  heldBy(environmentId: number): number {
    return this.#find(environmentId)?.size ?? 0;
  }

  /** @returns false if it was refused, without effect. */
  take(environmentId: number, size: number): boolean {
    const ownSize = this.heldBy(environmentId);
    const isAlone = environmentId !== STRANGERS && this.#isAlone();
    const totalSize = this.#totalSize;
    const leastRefusedSize =
      isAlone || this.#refusedAtMs.size === 0 || isWithinShare(this.#bound, { size, ownSize })
        ? Infinity
        : this.#leastRefusedSize(environmentId);
    if (!mayTake(this.#bound, { size, ownSize, totalSize, isAlone, leastRefusedSize })) {
      this.#refusedAtMs.set(environmentId, this.#monotonicNow());
      return false;
    }
    if (this.#refusedAtMs.size > 0) this.#refusedAtMs.delete(environmentId);
    this.hold(environmentId, size);
    return true;
  }

  /**
   * Counts the present size of a workspace, also beyond the bound: then further requests are refused until enough is
   * released.
   */
  hold(environmentId: number, size: number): void {
    this.#totalSize += size;
    const held = this.#find(environmentId);
    if (held !== undefined) held.size += size;
    else if (size > 0) this.#held.set(environmentId, (this.#last = { environmentId, size }));
  }

  release(environmentId: number, size: number): void {
    this.#totalSize -= size;
    const held = this.#find(environmentId);
    if (held === undefined) return;
    held.size -= size;
    if (held.size > 0) return;
    this.#held.delete(environmentId);
    this.#last = NOTHING;
  }

  #find(environmentId: number): Held | undefined {
    if (this.#last.environmentId === environmentId) return this.#last;
    const held = this.#held.get(environmentId);
    if (held !== undefined) this.#last = held;
    return held;
  }

  #leastRefusedSize(environmentId: number): number {
    const sinceMs = this.#monotonicNow() - WANTED_FOR_MS;
    let leastSize = Infinity;
    for (const [other, refusedAtMs] of this.#refusedAtMs) {
      if (refusedAtMs < sinceMs) this.#refusedAtMs.delete(other);
      else if (other !== environmentId) leastSize = Math.min(leastSize, this.heldBy(other));
    }
    return leastSize;
  }
}
