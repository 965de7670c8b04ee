/**
 * Delete, suppress and unsuppress (`ingestion-conventions.md` §1.6).
 *
 * Deleting frees the identifiers: a later identify makes a new person. Suppressing blocks all identifiers of the person
 * until one of them is unsuppressed; deleted data does not come back. The history stays under the person's number until
 * retention drops it. The number is never used again.
 */
import { addPerson, findPerson, recordNotFound } from './find-person.ts';
import type {
  DeletePerson,
  Operation,
  SuppressPerson,
  UnsuppressPerson,
} from '../operations/operation.ts';
import { reportPersonDeletion } from '../reports/incoming-report.ts';
import {
  rememberDeletion,
  rememberDeletionOfUnknown,
  rememberEndOfSuppression,
} from '../state/former/remember-names.ts';
import type { PersonState } from '../state/person-directory.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** Deletes a person; recorded if the person is missing. The call that makes the person can be late. */
export function deletePerson(set: WorkingSet, operation: DeletePerson): void {
  const resolution = findPerson(set, operation, operation.person);
  if (resolution.outcome === 'unknown') rememberDeletionOfUnknown(set, operation);
  if (resolution.outcome !== 'found' || resolution.person.isFormer) return;
  if (isMadeSince(operation, resolution.person)) {
    recordNotFound(set, operation, operation.person);
    return rememberDeletionOfUnknown(set, operation);
  }
  rememberDeletion(set, resolution.person, operation);
  set.addActivity(resolution.person, operation, 'profile_delete', null, {});
  reportPersonDeletion(set, operation, resolution.person, 'delete');
  resolution.person.fate = 'removed';
}

/** Clocks of two intakes may differ by so much. A person who is younger than that was perhaps there before the deletion. */
const CLOCK_DIFFERENCE_MS_MAX = 120_000;

/** True for a late deletion of a name that somebody was given since: it meant an earlier owner, or no person. */
function isMadeSince({ isReplayed, receivedAtMs }: DeletePerson, { row }: PersonState): boolean {
  return (
    isReplayed === true &&
    row !== undefined &&
    row.createdAtMs > receivedAtMs + CLOCK_DIFFERENCE_MS_MAX
  );
}

/** Deletes the person and blocks their identifiers; an identifier without a person is blocked too. */
export function suppressPerson(set: WorkingSet, operation: SuppressPerson): void {
  const { environmentId } = operation;
  const { kind, value } = operation.person;
  const resolution = set.directory.resolve(environmentId, operation.person);
  if (resolution.outcome === 'suppressed') return;
  if (resolution.outcome === 'found') {
    rememberDeletion(set, resolution.person, operation);
    set.addActivity(resolution.person, operation, 'profile_delete', null, { suppressed: true });
    reportPersonDeletion(set, operation, resolution.person, 'suppress');
    resolution.person.fate = 'suppressed';
  } else if (kind === 'svc_id') {
    findPerson(set, operation, operation.person);
  } else {
    // Somebody who never was: a number to keep the blocked identifier under.
    const person = addPerson(set, operation);
    person.row = {
      ...person.row,
      ...(kind !== 'anonymous_id' && { [kind]: value }),
      createdAtMs: 0,
    };
    person.fate = 'suppressed';
    if (kind === 'anonymous_id') endVisitor(set, operation, person, value);
    set.directory.assign(environmentId, kind, value, person);
    rememberDeletion(set, person, operation);
  }
}

/** Frees all identifiers that were blocked together with this one. Calls from before it were blocked, also late ones. */
export function unsuppressPerson(set: WorkingSet, operation: UnsuppressPerson): void {
  const resolution = set.directory.resolve(operation.environmentId, operation.person);
  if (resolution.outcome !== 'suppressed') return;
  rememberEndOfSuppression(set, resolution.person, operation);
  resolution.person.fate = 'removed';
}

/** The kept data of an anonymous id stay under the number, like a person's history: no person receives them. */
function endVisitor(
  set: WorkingSet,
  { environmentId, receivedAtMs }: Operation,
  person: PersonState,
  anonymousId: string,
): void {
  set.attachEvents(person, anonymousId, receivedAtMs);
  const visitor = set.findVisitor(environmentId, anonymousId);
  if (visitor) set.visitors.delete(visitor);
}
