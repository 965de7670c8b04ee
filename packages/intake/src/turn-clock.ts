/**
 * The time of a turn of the event loop.
 *
 * The first call of a turn reads the clock; later calls of the same turn came at the same time. Under load a turn takes
 * some milliseconds, by which a time may be too old. A read for each call would take 0.2 µs of its 20. Web servers keep
 * their time like this.
 *
 * Beside `main.ts`.
 */
export class TurnClock {
  readonly #now: () => number;
  #turnAtMs: number | undefined;
  #endsTurn = false;

  /** @param now - milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  readonly now = (): number => {
    if (this.#turnAtMs !== undefined) return this.#turnAtMs;
    if (!this.#endsTurn) {
      this.#endsTurn = true;
      setImmediate(this.#endTurn);
    }
    return (this.#turnAtMs = this.#now());
  };

  /** The next call asks the clock, also in this turn. */
  forget(): void {
    this.#turnAtMs = undefined;
  }

  readonly #endTurn = (): void => {
    this.#turnAtMs = undefined;
    this.#endsTurn = false;
  };
}
