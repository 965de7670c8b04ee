/**
 * Places of the accounts in the fetches of this worker. The rule is `domain/src/imports/fetch-share.ts`.
 *
 * Claims are made one after another: two at the same time could each give an account its last place. Used by
 * `run-import.ts`.
 */
import type { ClaimedImport } from '@sluice/database/imports/import-claims';
import { accountsWithoutPlace } from '@sluice/domain/imports/fetch-share';

/** Claims an import of another account than these. */
export type ClaimFetch = (
  withoutAccountIds: readonly number[],
) => Promise<ClaimedImport | undefined>;

/** A claimed import; its place is held until it is released once. */
export interface PlacedFetch {
  readonly row: ClaimedImport;
  readonly release: () => void;
}

export class FetchPlaces {
  readonly #placeCount: number;
  /** By account; an entry is above 0. */
  readonly #held = new Map<number, number>();
  #last: Promise<unknown> = Promise.resolve();
  /** Claims without a result. */
  #emptyCount = 0;

  constructor(placeCount: number) {
    this.#placeCount = placeCount;
  }

  /** @returns undefined if no import waits that may have a place. */
  take(claim: ClaimFetch): Promise<PlacedFetch | undefined> {
    const emptyCount = this.#emptyCount;
    const taken = this.#last.then(() =>
      // The claim of another loop has just had no result: sixteen would ask one after another.
      this.#emptyCount > emptyCount ? undefined : this.#take(claim),
    );
    this.#last = taken.catch(() => undefined);
    return taken;
  }

  async #take(claim: ClaimFetch): Promise<PlacedFetch | undefined> {
    const row = await claim(accountsWithoutPlace(this.#held, this.#placeCount));
    if (row === undefined) {
      this.#emptyCount++;
      return undefined;
    }
    const { accountId } = row;
    this.#held.set(accountId, (this.#held.get(accountId) ?? 0) + 1);
    return { row, release: () => this.#release(accountId) };
  }

  #release(accountId: number): void {
    const left = (this.#held.get(accountId) ?? 0) - 1;
    if (left > 0) this.#held.set(accountId, left);
    else this.#held.delete(accountId);
  }
}
