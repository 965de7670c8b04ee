/**
 * Delete, suppress and unsuppress (`ingestion-conventions.md` §1.6).
 *
 * Deleting frees the identifiers: a later identify makes a new person. Suppressing blocks them, all
 * that the person had, until one of them is unsuppressed; what was deleted does not come back. The
 * history stays under the person's number, which nobody gets again, until retention drops it.
 */
import { addPerson, findPerson } from './find-person.ts';
import type { DeletePerson, SuppressPerson, UnsuppressPerson } from '../operations/operation.ts';
import { reportPersonDeletion } from '../reports/incoming-report.ts';
import type { PersonState } from '../state/person-directory.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** Deletes a person; recorded where there is none. */
export function deletePerson(set: WorkingSet, operation: DeletePerson): void {
  const resolution = findPerson(set, operation, operation.person);
  if (resolution.outcome !== 'found') return;
  set.addDeletion(resolution.person, operation.receivedAtMs);
  set.addActivity(resolution.person, operation, 'profile_delete', null, {});
  reportPersonDeletion(set, operation, resolution.person, 'delete');
  resolution.person.fate = 'removed';
}

/** Deletes the person and blocks their identifiers; an identifier that is nobody's is blocked too. */
export function suppressPerson(set: WorkingSet, operation: SuppressPerson): void {
  const { environmentId } = operation;
  const { kind, value } = operation.person;
  const resolution = set.directory.resolve(environmentId, operation.person);
  if (resolution.outcome === 'suppressed') return;
  if (resolution.outcome === 'found') {
    set.addActivity(resolution.person, operation, 'profile_delete', null, { suppressed: true });
    reportPersonDeletion(set, operation, resolution.person, 'suppress');
    resolution.person.fate = 'suppressed';
  } else if (kind === 'svc_id') {
    findPerson(set, operation, operation.person);
  } else {
    // Somebody who never was: a number to keep the blocked identifier under.
    const person = addPerson(set, operation, {});
    person.fate = 'suppressed';
    if (kind === 'anonymous_id') endVisitor(set, operation, person, value);
    set.directory.assign(environmentId, kind, value, person);
  }
}

/** Frees all identifiers that were blocked together with this one. */
export function unsuppressPerson(set: WorkingSet, operation: UnsuppressPerson): void {
  const resolution = set.directory.resolve(operation.environmentId, operation.person);
  if (resolution.outcome === 'suppressed') resolution.person.fate = 'removed';
}

/** What waited under an anonymous id stays under the number, as a person's history does: it never becomes somebody's. */
function endVisitor(
  set: WorkingSet,
  { environmentId, receivedAtMs }: SuppressPerson,
  person: PersonState,
  anonymousId: string,
): void {
  set.attachEvents(person, anonymousId, receivedAtMs);
  const visitor = set.findVisitor(environmentId, anonymousId);
  if (visitor) set.visitors.delete(visitor);
}
