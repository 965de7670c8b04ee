/**
 * Turns of the workspaces whose imports a worker runs.
 *
 * A workspace may hand in a hundred files at once, each of which takes hours to come. By the age of their imports alone,
 * a few such workspaces would keep all turns of a worker for days. So a workspace that had a turn waits behind the others.
 *
 * An import may wait for storage or for the egress proxy instead. Meanwhile its workspace stays behind the others, so that
 * its many waiting imports take no turns of theirs. Then the workspace has its former place again.
 *
 * In memory: a worker that starts begins with the oldest import. Used by `run-import.ts`.
 */

/** Workspaces that are remembered; the first ones are forgotten. */
const SERVED_COUNT_MAX = 1_000;

interface Served {
  /** The higher, the later. */
  readonly place: number;
  /** The place from a time on; a workspace that had no turn has place 0. */
  readonly former?: { readonly place: number; readonly fromMs: number };
}

/** A turn that an import has. */
export interface ImportTurn {
  /** The import waits until a time: from then on the workspace has its former place. */
  waitsUntil(timeMs: number): void;
}

export class ImportTurns {
  /** The latest last. */
  readonly #served = new Map<number, Served>();
  #lastPlace = 0;

  /** Workspaces that had a turn, the latest last. */
  servedEnvironmentIds(nowMs: number): readonly number[] {
    return [...this.#served]
      .map(([id, { place, former }]) => ({
        id,
        place: former && nowMs >= former.fromMs ? former.place : place,
      }))
      .filter(({ place }) => place > 0)
      .toSorted((one, other) => one.place - other.place)
      .map(({ id }) => id);
  }

  /** An import of the workspace was taken. */
  took(environmentId: number): ImportTurn {
    const before = this.#served.get(environmentId);
    const place = ++this.#lastPlace;
    this.#served.delete(environmentId);
    this.#served.set(environmentId, { place });
    if (this.#served.size > SERVED_COUNT_MAX) {
      const [first] = this.#served.keys();
      if (first !== undefined) this.#served.delete(first);
    }
    const formerPlace = before?.former?.place ?? before?.place ?? 0;
    return {
      waitsUntil: (fromMs) => {
        // Another import of the workspace may have a turn by now.
        if (this.#served.get(environmentId)?.place !== place) return;
        this.#served.set(environmentId, { place, former: { place: formerPlace, fromMs } });
      },
    };
  }
}
