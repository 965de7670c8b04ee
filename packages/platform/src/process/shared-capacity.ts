/**
 * Shares of workspaces in a common bound of this process. The rule is `domain/src/values/fair-share.ts`; this keeps the
 * counts and the latest refusals.
 *
 * On the way of every call, so a take and a release are a look-up and a write each.
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

export class SharedCapacity {
  readonly #bound: SharedBound;
  readonly #isAlone: () => boolean;
  readonly #monotonicNow: () => number;
  /** By workspace; an entry is above 0. */
  readonly #held = new Map<number, number>();
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
    return this.#held.get(environmentId) ?? 0;
  }

  /** @returns false if it was refused, without effect. */
  take(environmentId: number, size: number): boolean {
    const ownSize = this.#held.get(environmentId) ?? 0;
    const isAlone = environmentId !== STRANGERS && this.#isAlone();
    const totalSize = this.#totalSize;
    const claim = { size, ownSize, totalSize, isAlone, leastRefusedSize: Infinity };
    if (!isAlone && this.#refusedAtMs.size > 0 && !isWithinShare(this.#bound, claim))
      claim.leastRefusedSize = this.#leastRefusedSize(environmentId);
    if (!mayTake(this.#bound, claim)) {
      this.#refusedAtMs.set(environmentId, this.#monotonicNow());
      return false;
    }
    if (this.#refusedAtMs.size > 0) this.#refusedAtMs.delete(environmentId);
    this.#held.set(environmentId, ownSize + size);
    this.#totalSize += size;
    return true;
  }

  /**
   * Counts the present size of a workspace, also beyond the bound: then further requests are refused until enough is
   * released.
   */
  hold(environmentId: number, size: number): void {
    this.#held.set(environmentId, (this.#held.get(environmentId) ?? 0) + size);
    this.#totalSize += size;
  }

  release(environmentId: number, size: number): void {
    const leftSize = (this.#held.get(environmentId) ?? 0) - size;
    if (leftSize > 0) this.#held.set(environmentId, leftSize);
    else this.#held.delete(environmentId);
    this.#totalSize -= size;
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
