/**
 * Locks the identifiers that operations may change.
 *
 * Part of step 9 of the walk, used by `load-state.ts`, which describes the order of all locks.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import {
  listIdentifiers,
  listIdentifiersOf,
  lockIdentifiers,
} from '@sluice/database/people/person-identifiers';
import { identifierText } from '@sluice/domain/operations/state-keys';
import { identifiersToHold } from '@sluice/domain/state/held-identifiers';
import type {
  IdentifierKey,
  IdentifierRow,
  MessageDeliveryRow,
} from '@sluice/domain/state/loaded-state';
import type { StateNeeds } from '@sluice/domain/state/state-needs';

/**
 * Locks the identifiers that must be held. If another transaction moved an identifier in between,
 * the locked rows may call for more locks: then all are locked, out of order, and a deadlock is a conflict like any
 * other.
 */
export async function readOrLockIdentifiers(
  transaction: DatabaseOrTransaction,
  needs: StateNeeds,
  messageDeliveries: readonly MessageDeliveryRow[],
  read: readonly IdentifierRow[],
  looksForRemadeNames: boolean,
): Promise<readonly IdentifierRow[]> {
  const otherPeople = [...needs.people, ...messageDeliveries].flatMap(
    ({ personId }) => personId ?? [],
  );
  const held = identifiersToHold(needs, read, otherPeople);
  // The names that a suppressed person gives up are found by number alone.
  const namesBySvcId = needs.releasesIdentifiers && needs.people.length > 0;
  if (held.length === 0 && !namesBySvcId) return read;
  const heldTexts = new Set(held.map(textOf));
  const rows = new Map(
    read.filter((row) => !heldTexts.has(textOf(row))).map((row) => [textOf(row), row]),
  );
  for (const row of await lockWithReleased(transaction, needs, held, looksForRemadeNames))
    rows.set(textOf(row), row);
  const found = [...rows.values()];
  return identifiersToHold(needs, found, otherPeople).every((key) => heldTexts.has(textOf(key)))
    ? found
    : lockWithReleased(transaction, needs, needs.identifiers, looksForRemadeNames);
}

/**
 * Operations may give up identifiers that they do not name. Other shards that hold such identifiers are waited for
 * here, in order, and not later in a deadlock. Only the waiting depends on this unlocked look: the identifiers to give
 * up are found by person when they are written.
 *
 * @param released - all identifiers of the people who may give up some, if they were looked up before.
 */
export async function lockWithReleased(
  transaction: DatabaseOrTransaction,
  needs: StateNeeds,
  identifiers: readonly IdentifierKey[],
  looksForRemadeNames: boolean,
  released?: readonly IdentifierKey[],
): Promise<IdentifierRow[]> {
  const lockNames = looksForRemadeNames ? lockRemade : lockIdentifiers;
  if (!needs.releasesIdentifiers) return lockNames(transaction, identifiers);
  const keys = new Map<string, IdentifierKey>();
  const releasing = identifiers.filter((key) => needs.releasing.has(textOf(key)));
  const all = released ?? (await listIdentifiersOf(transaction, releasing, needs.people));
  for (const key of [...identifiers, ...all]) keys.set(textOf(key), key);
  return lockNames(transaction, [...keys.values()]);
}

/**
 * Locks the ones that exist once all are waited for. A waiting lock does not see a row that was deleted and made again
 * meanwhile. If it counts as free, the write meets a conflict. Without this look, a transaction that met one and tried
 * again met the next in 0.3 of tries beside merges of the same few people, and ten in a row once. With it, in 0.07.
 */
async function lockRemade(
  transaction: DatabaseOrTransaction,
  keys: readonly IdentifierKey[],
): Promise<IdentifierRow[]> {
  for (;;) {
    const rows = await lockIdentifiers(transaction, keys);
    const locked = new Set(rows.map(textOf));
    const missing = keys.filter((key) => !locked.has(textOf(key)));
    if ((await listIdentifiers(transaction, missing)).length === 0) return rows;
  }
}

export const textOf = ({ environmentId, kind, value }: IdentifierKey): string =>
  identifierText(environmentId, kind, value);
