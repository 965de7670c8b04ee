/** Remembers names that people lose, for late calls (`replayed-calls.ts`). */
import type { DeletePerson } from '../../operations/operation.ts';
import { storedValue, type StoredIdentifierKind } from '../../operations/state-keys.ts';
import type { EndTime } from '../names/name-ends.ts';
import type { PersonState } from '../person-directory.ts';
import type { WorkingSet } from '../working-set.ts';

/** The person is deleted: all their names. */
export function rememberDeletion(set: WorkingSet, person: PersonState, time: EndTime): void {
  const { row, personId } = person;
  const { id = null, email = null, phone = null, createdAtMs = 0 } = row ?? {};
  set.deletions.addPerson(person, { id, email, phone, createdAtMs }, time.receivedAtMs);
  for (const key of set.directory.identifiersOf(person)) set.deletions.addName(key, personId, time);
}

/** The person gives up a name: an earlier call by it is about them. */
export function rememberRelease(
  set: WorkingSet,
  { environmentId, personId, isFormer }: PersonState,
  kind: StoredIdentifierKind,
  value: string,
  time: EndTime,
): void {
  if (isFormer) return;
  const key = { environmentId, kind, value: storedValue(kind, value) };
  set.deletions.addName(key, personId, time);
}

/** The person became part of another one: a late call by a name that they gave up before is about that one. */
export function rememberMerge(
  set: WorkingSet,
  secondary: PersonState,
  primary: PersonState,
  atMs: number,
): void {
  set.deletions.addMerged(secondary, primary.personId, atMs);
}

/** Until now a call was blocked by any one of the person's identifiers. */
export function rememberEndOfSuppression(
  set: WorkingSet,
  person: PersonState,
  time: EndTime,
): void {
  const { environmentId, personId } = person;
  const number = { environmentId, kind: 'svc_id', value: String(personId) } as const;
  for (const key of [number, ...set.directory.identifiersOf(person)])
    set.deletions.addBlocked(key, personId, time);
}

/** No person has the identifier yet: it is remembered alone. */
export function rememberDeletionOfUnknown(
  set: WorkingSet,
  { environmentId, person: { kind, value }, receivedAtMs, place, isReplayed }: DeletePerson,
): void {
  if (kind === 'svc_id') return;
  const key = { environmentId, kind, value: storedValue(kind, value) };
  // The time alone orders a late deletion: it took the name from no person when it was applied.
  set.deletions.addUnmade(key, { receivedAtMs, ...(!isReplayed && { place }) });
}
