/**
 * Places for live tails in this process: each keeps a socket, and up to 256 KB for a slow reader, for as long as it is read.
 * Workspaces share them (`domain/src/values/fair-share.ts`).
 */
import { isOnlyWorkspace } from '@sluice/database/accounts/environments';
import type { Database } from '@sluice/database/connection/connection';
import { newcomerPercentOf } from '@sluice/domain/values/fair-share';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';

export interface TailPlacesOptions {
  readonly database: Database;
  /** Of all workspaces. */
  readonly countMax: number;
  readonly sharePercent: number;
  /** Milliseconds that never go back. */
  readonly monotonicNow: () => number;
}

export class TailPlaces {
  readonly #database: Database;
  readonly #capacity: SharedCapacity;
  #isAlone = false;

  constructor({ database, countMax, sharePercent, monotonicNow }: TailPlacesOptions) {
    this.#database = database;
    this.#capacity = new SharedCapacity({
      capacity: countMax,
      sharePercent,
      newcomerPercent: newcomerPercentOf(sharePercent),
      isAlone: () => this.#isAlone,
      monotonicNow,
    });
  }

  /** @returns false if the workspace gets no place; else {@link release} must be called once. */
  async take(environmentId: number): Promise<boolean> {
    // Asked for each tail: other processes make workspaces.
    this.#isAlone = await isOnlyWorkspace(this.#database, environmentId);
    return this.#capacity.take(environmentId, 1);
  }

  release(environmentId: number): void {
    this.#capacity.release(environmentId, 1);
  }
}
