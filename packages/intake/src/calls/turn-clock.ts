/**
 * The time of a turn of the event loop: the clock is asked by the first call of a turn, and what comes in the same turn
 * came at the same time. Under load a turn takes some milliseconds, which is how much too old a time may be; asking
 * for each call would take 0.1 µs of its 20. Web servers keep their time like this.
 *
 * Beside `main.ts`.
 */

/** @param now - Unix milliseconds. */
export function createTurnClock(now: () => number): () => number {
  let turnAtMs: number | undefined;
  const endTurn = (): void => {
    turnAtMs = undefined;
  };
  return () => {
    if (turnAtMs === undefined) {
      turnAtMs = now();
      setImmediate(endTurn);
    }
    return turnAtMs;
  };
}
