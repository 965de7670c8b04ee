/** Remembers names that people lose, for late calls (`replayed-calls.ts`). */
import type { DeletePerson } from '../../operations/operation.ts';
import { storedValue, type StoredIdentifierKind } from '../../operations/state-keys.ts';
import type { PersonState } from '../person-directory.ts';
import type { WorkingSet } from '../working-set.ts';

/** The person is deleted: all their names. */
export function rememberDeletion(set: WorkingSet, person: PersonState, deletedAtMs: number): void {
  const { row, personId } = person;
  const { id = null, email = null, phone = null, createdAtMs = 0 } = row ?? {};
  set.deletions.addPerson(person, { id, email, phone, createdAtMs }, deletedAtMs);
  for (const key of set.directory.identifiersOf(person))
    set.deletions.addName(key, personId, deletedAtMs);
}

/** The person gives up a name: an earlier call by it is about them. */
export function rememberRelease(
  set: WorkingSet,
  { environmentId, personId, isFormer }: PersonState,
  kind: StoredIdentifierKind,
  value: string,
  atMs: number,
): void {
  if (isFormer) return;
  const key = { environmentId, kind, value: storedValue(kind, value) };
  set.deletions.addName(key, personId, atMs);
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
  endedAtMs: number,
): void {
  const { environmentId, personId } = person;
  const number = { environmentId, kind: 'svc_id', value: String(personId) } as const;
  for (const key of [number, ...set.directory.identifiersOf(person)])
    set.deletions.addBlocked(key, personId, endedAtMs);
}

/** No person has the identifier yet: it is remembered alone. */
export function rememberDeletionOfUnknown(
  set: WorkingSet,
  { environmentId, person: { kind, value }, receivedAtMs }: DeletePerson,
): void {
  if (kind === 'svc_id') return;
  const key = { environmentId, kind, value: storedValue(kind, value) };
  set.deletions.addUnmade(key, receivedAtMs);
}
