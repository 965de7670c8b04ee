/**
 * Decides whether event ids are looked up before they are taken.
 *
 * Hardly any call comes twice, so its id is taken without a look. With a look for each, an event costs Postgres 1.11 of the
 * CPU and 10.9 pages instead of 8.9 (`npm run bench -- growth`), and a worker takes 0.94 of the events (`process --compare`,
 * ten pairs, on both brokers). If one was taken already, the insert is a unique
 * violation, and the transaction is run again and looks. After that a source is probably sending again what it has no
 * answer to, or an import of the past is running: for a minute every transaction looks, so that a flood of
 * repetitions costs one transaction a minute and not each its first try.
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
