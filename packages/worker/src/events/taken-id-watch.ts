/**
 * Decides whether event ids are looked up before they are taken.
 *
 * Hardly any call comes twice, so its id is taken without a look. With a look for each, an event costs Postgres 1.11 of
 * the CPU and 10.9 pages instead of 8.9 (`npm run bench -- growth`), and a worker takes 0.94 of the events (`process
 * --compare`, ten pairs, on both brokers). If one was taken already, the insert is a unique violation, and the
 * transaction is run again and looks. After that, a client probably resends calls that were not answered, or an import
 * of the past is running. So for a minute every transaction looks. A flood of repetitions then costs one transaction a
 * minute, and not the first try of each.
 *
 * Used by `process-commit-batch.ts`; one a process.
 */
const LOOKS_FOR_MS = 60_000;

export class TakenIdWatch {
  #provedAtMs = -Infinity;

  /** @param nowMs - Unix milliseconds by Postgres (`database-clock.ts`). */
  looks(nowMs: number): boolean {
    return nowMs - this.#provedAtMs < LOOKS_FOR_MS;
  }

  /** A look has found an id that was taken. */
  proved(nowMs: number): void {
    this.#provedAtMs = nowMs;
  }
}
