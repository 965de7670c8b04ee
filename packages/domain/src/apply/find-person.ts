/**
 * The person that an operation names: found, made on first sight, or recorded as suppressed or unknown. All rules of
 * the apply step that name a person share it; the further effects of an identify are in `upsert-person.ts`.
 */
import { giveIdentifier, type NamedKind } from './change-identifiers.ts';
import { noteChange } from '../state/merge-attributes.ts';
import type { Operation, PersonIdentifier } from '../operations/operation.ts';
import type { LoadedPerson, Resolution } from '../state/person-directory.ts';
import type { WorkingSet } from '../state/working-set.ts';

/**
 * The person that an operation means, made if they are missing. Undefined, and recorded, if the identifier is
 * suppressed or cannot make a person (a svc_id, an anonymous id).
 */
export function findOrCreatePerson(
  set: WorkingSet,
  operation: Operation,
  identifier: PersonIdentifier,
): Resolution {
  const resolution = set.directory.resolve(operation.environmentId, identifier);
  if (resolution.outcome === 'suppressed') recordSuppressed(set, operation, identifier);
  if (resolution.outcome !== 'unknown') return resolution;
  const { kind, value } = identifier;
  if (kind === 'svc_id' || kind === 'anonymous_id') {
    recordNotFound(set, operation, identifier);
    return resolution;
  }
  const person = createPerson(set, operation, kind, value);
  set.addActivity(
    person,
    operation,
    'profile_create',
    null,
    noteChange(undefined, kind, null, value),
  );
  return { outcome: 'found', person };
}

/** The person that an operation means; recorded if the person is missing. */
export function findPerson(
  set: WorkingSet,
  operation: Operation,
  identifier: PersonIdentifier,
): Resolution {
  const resolution = set.directory.resolve(operation.environmentId, identifier);
  if (resolution.outcome === 'suppressed') recordSuppressed(set, operation, identifier);
  if (resolution.outcome === 'unknown') recordNotFound(set, operation, identifier);
  return resolution;
}

/** Records that a call was ignored because of a suppressed identifier. */
export function recordSuppressed(
  set: WorkingSet,
  operation: Operation,
  { kind, value }: PersonIdentifier,
): void {
  set.addIssue(operation, {
    code: 'suppressed',
    field: kind,
    message: `The ${kind} "${value}" is suppressed; the call was ignored. This is intended unless the person agreed again; then unsuppress the person.`,
    sample: value,
  });
}

/** Records that an identifier has no person. */
export function recordNotFound(
  set: WorkingSet,
  operation: Operation,
  { kind, value }: PersonIdentifier,
): void {
  set.addIssue(operation, {
    code: 'person_not_found',
    field: kind,
    message: `No person has the ${kind} "${value}", so the call has no effect. Check it, or identify the person first.`,
    sample: value,
  });
}

/** A new person with one identifier. The caller notes it in the history. */
export function createPerson(
  set: WorkingSet,
  operation: Operation,
  kind: NamedKind,
  value: string,
): LoadedPerson {
  const person = addPerson(set, operation);
  giveIdentifier(set, operation, person, kind, value, undefined);
  return person;
}

/** Adds a new person, without identifiers and attributes. */
export function addPerson(
  set: WorkingSet,
  { environmentId, receivedAtMs }: Operation,
): LoadedPerson {
  return set.directory.create({
    environmentId,
    personId: set.effects.newPersonId(),
    id: null,
    email: null,
    phone: null,
    attributes: {},
    unsubscribed: null,
    attributesAtMs: null,
    attributePlaces: null,
    createdAtMs: receivedAtMs,
    updatedAtMs: receivedAtMs,
  });
}
