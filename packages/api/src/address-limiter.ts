/**
 * How often one IP address may do something that needs no credentials, within this process.
 *
 * Fixed windows: a counter an address, forgotten with its window. With too many addresses all are
 * forgotten at once, which only lets more through.
 */

export interface AddressLimit {
  readonly countMax: number;
  readonly windowMs: number;
  readonly now: () => number;
}

const ADDRESS_COUNT_MAX = 100_000;

export class AddressLimiter {
  readonly #limit: AddressLimit;
  readonly #windows = new Map<string, { readonly endsAtMs: number; count: number }>();

  constructor(limit: AddressLimit) {
    this.#limit = limit;
  }

  /** Counts one; where it is one too many, how many seconds to wait. */
  take(ip: string): number | undefined {
    const nowMs = this.#limit.now();
    let window = this.#windows.get(ip);
    if (!window || window.endsAtMs <= nowMs) {
      if (this.#windows.size >= ADDRESS_COUNT_MAX) this.#windows.clear();
      window = { endsAtMs: nowMs + this.#limit.windowMs, count: 0 };
      this.#windows.set(ip, window);
    }
    window.count += 1;
    if (window.count <= this.#limit.countMax) return undefined;
    return Math.max(1, Math.ceil((window.endsAtMs - nowMs) / 1000));
  }
}
