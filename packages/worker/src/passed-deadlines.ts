/**
 * Deadlines that have passed, acted on a few in a turn of the event loop.
 *
 * Endpoints that begin to hang together reach their deadlines together: ending 1,400 requests in one turn kept
 * the answers of every other endpoint waiting for a second (`npm run bench -- fairness`). Who hangs is told a
 * little later instead.
 *
 * Used by `http-client.ts`.
 */

/** Some 10 ms of work: what a request costs to end, its connection too. */
const ACTS_A_TURN = 16;

export class PassedDeadlines {
  #waiting: (() => void)[] = [];

  /** `act` runs in a later turn, after what came in time has been read. */
  add(act: () => void): void {
    if (this.#waiting.push(act) === 1) setImmediate(this.#takeTurn);
  }

  readonly #takeTurn = (): void => {
    // Those that are added meanwhile come in the next turn.
    const acts = this.#waiting.slice(0, ACTS_A_TURN);
    for (const act of acts) act();
    this.#waiting.splice(0, acts.length);
    if (this.#waiting.length > 0) setImmediate(this.#takeTurn);
  };
}
