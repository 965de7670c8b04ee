/**
 * Rules for new identifiers of a person: `ingestion-conventions.md` §1.2.
 *
 * A person without an identifier of a kind receives a free one of that kind. Only a call under the person's svc_id
 * replaces or removes an identifier that is set. An identifier of another person is never taken over. Other attempts
 * are refused and recorded with the people they concern. The rules never guess.
 */
import { isPhone } from '../parsing/identifiers.ts';
import { rememberRelease } from '../state/former/remember-names.ts';
import { isRemoval, mergeAttributes, noteChange } from '../state/merge-attributes.ts';
import type { Json, JsonObject } from '../values/json.ts';
import type { Operation } from '../operations/operation.ts';
import { describePerson, type LoadedPerson, type PersonState } from '../state/person-directory.ts';
import { identifierIn, storedValue } from '../operations/state-keys.ts';
import { svcId } from '../values/svc-id.ts';
import type { WorkingSet } from '../state/working-set.ts';

export type NamedKind = 'id' | 'email' | 'phone';

/** A phone identifies only people who were created under it; for anybody else it is an ordinary attribute. */
export function isIdentifierOf(person: LoadedPerson, attribute: string): attribute is NamedKind {
  return (
    attribute === 'id' ||
    attribute === 'email' ||
    (attribute === 'phone' && person.row.phone !== null)
  );
}

/**
 * Applies one identifier that came among the attributes.
 *
 * @param mayReplace - the call came under the person's svc_id.
 * @returns the changes of the call, with this one.
 */
export function changeIdentifier(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  kind: NamedKind,
  given: Json,
  mayReplace: boolean,
  changes: JsonObject | undefined,
): JsonObject | undefined {
  const current = person.row[kind];
  const value = identifierIn(given);
  if (value === undefined) {
    if (!isRemoval(given)) refuseShape(set, operation, kind, 'neither text nor a number');
    else if (current !== null && !mayReplace) refuseReplacement(set, operation, person, kind, '');
    else if (current !== null) return giveIdentifier(set, operation, person, kind, null, changes);
    return changes;
  }
  if (current !== null && storedValue(kind, current) === storedValue(kind, value)) return changes;
  const owner = set.directory.resolveStored(operation.environmentId, kind, value);
  if (owner.outcome === 'found') {
    refuseOwned(set, operation, person, kind, value, owner.person);
    return changes;
  }
  // Only a phone gets here: a call with a suppressed id or email is ignored as a whole.
  if (owner.outcome === 'suppressed') {
    refuseSuppressed(set, operation, kind, value);
    return changes;
  }
  if (current !== null && !mayReplace) {
    refuseReplacement(set, operation, person, kind, value);
    return changes;
  }
  if (kind === 'phone' && !isPhone(value)) {
    refuseShape(set, operation, kind, 'no number in E.164 form, like +4915112345678');
    return changes;
  }
  return giveIdentifier(set, operation, person, kind, value, changes);
}

/** Gives the person a free identifier, or takes theirs away, and notes it. */
export function giveIdentifier(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  kind: NamedKind,
  value: string | null,
  changes: JsonObject | undefined,
): JsonObject {
  const current = person.row[kind];
  if (current !== null) {
    set.directory.assign(operation.environmentId, kind, current, undefined);
    rememberRelease(set, person, kind, current, operation);
  }
  if (value !== null) set.directory.assign(operation.environmentId, kind, value, person);
  person.row = { ...person.row, [kind]: value, updatedAtMs: operation.receivedAtMs };
  if (kind === 'phone') writePhone(person, value);
  return noteChange(changes, kind, current, value);
}

/** A phone that identifies is an attribute too, as it is of anybody else. */
function writePhone(person: LoadedPerson, phone: string | null): void {
  const { attributes } = mergeAttributes(person.row.attributes, { phone });
  person.row = { ...person.row, attributes };
}

function refuseShape(set: WorkingSet, operation: Operation, kind: NamedKind, what: string): void {
  set.addIssue(operation, {
    code: 'invalid',
    field: kind,
    message: `The ${kind} is ${what}; it was left out.`,
  });
}

function refuseSuppressed(
  set: WorkingSet,
  operation: Operation,
  kind: NamedKind,
  value: string,
): void {
  set.addIssue(operation, {
    code: 'suppressed',
    field: kind,
    message: `The ${kind} "${value}" is suppressed; it was left out. This is intended unless the person agreed again; then unsuppress the person.`,
    sample: value,
  });
}

function refuseReplacement(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  kind: NamedKind,
  value: string,
): void {
  const wish = value === '' ? 'removes it' : `replaces it with "${value}"`;
  set.addIssue(operation, {
    code: 'identifier_conflict',
    field: kind,
    message: `${capitalized(describePerson(person))} already has the ${kind} "${person.row[kind]}"; only a call under its svc_id ${wish}.`,
    sample: value,
  });
  addFailure(set, operation, person, kind, value, {});
}

function refuseOwned(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  kind: NamedKind,
  value: string,
  owner: PersonState,
): void {
  set.addIssue(operation, {
    code: 'identifier_conflict',
    field: kind,
    message: `The ${kind} "${value}" belongs to ${describePerson(owner)}; ${describePerson(person)} was not given it. Merge the two if they are one person.`,
    sample: value,
  });
  addFailure(set, operation, person, kind, value, { belongs_to: svcId(owner.personId) });
}

function addFailure(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  kind: string,
  value: string,
  detail: JsonObject,
): void {
  set.addActivity(person, operation, 'failed_attribute_change', kind, {
    [kind]: value,
    reason: 'identifier_conflict',
    ...detail,
  });
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
