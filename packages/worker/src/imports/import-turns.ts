/**
 * Turns of the workspaces whose imports a worker runs.
 *
 * A workspace may hand in a hundred files at once, each of which takes hours to come. By the age of their imports alone,
 * four such workspaces would keep all turns of a worker for days. So a workspace that had a turn waits behind the others.
 *
 * In memory: a worker that starts begins with the oldest import. Used by `run-import.ts`.
 */

/** Workspaces that are remembered; the first ones are forgotten. */
const SERVED_COUNT_MAX = 1_000;

export class ImportTurns {
  readonly #served = new Set<number>();

  /** Workspaces that had a turn, the latest last. */
  get servedEnvironmentIds(): readonly number[] {
    return [...this.#served];
  }

  /** An import of the workspace was taken. */
  took(environmentId: number): void {
    this.#served.delete(environmentId);
    this.#served.add(environmentId);
    if (this.#served.size <= SERVED_COUNT_MAX) return;
    const [first] = this.#served;
    if (first !== undefined) this.#served.delete(first);
  }
}
