/**
 * The part of a late call that still takes effect: calls that were acknowledged before a deletion and come after it.
 *
 * ```
 * the call means the deleted person ─────────▶ no effect on people, recorded; objects that it names are made
 * it brings that person further names ───────▶ they are remembered with the deletion: the person had them too
 * it names the person among others ──────────▶ applied without that person's entry
 * it brings another person a name of theirs ─▶ applied without the name, which was taken
 * ```
 *
 * Remembering matters for the late calls behind it, which can name the person by the further name alone. A name of a
 * present person is never remembered. If the deleted person is suppressed, the further names are blocked too.
 */
import { findOrCreateObject } from './change-relationships.ts';
import { recordNotFound, recordSuppressed } from './find-person.ts';
import { endVisitor } from './remove-person.ts';
import { takeEventOnce } from './track-event.ts';
import type { Identification } from './upsert-person.ts';
import { namedIdentifiers } from '../operations/named-identifiers.ts';
import type {
  IdentifyPerson,
  MergePeople,
  ObjectRelationship,
  Operation,
  PersonIdentifier,
  PersonRelationship,
  SubmitForm,
  TrackEvent,
} from '../operations/operation.ts';
import { identifierIn, storedValue } from '../operations/state-keys.ts';
import { loaded } from '../state/person-directory.ts';
import { LACKED_KINDS } from '../state/replayed-calls.ts';
import type { WorkingSet } from '../state/working-set.ts';
import type { JsonObject } from '../values/json.ts';

/** The late operation without its deleted people; undefined, and recorded, if it is about a deleted person. */
export function withoutDeleted(set: WorkingSet, operation: Operation): Operation | undefined {
  switch (operation.type) {
    case 'person.identify': {
      const attributes = lateAttributes(set, operation, operation);
      return attributes && withoutVisitor(set, { ...operation, attributes });
    }
    case 'form.submit': {
      const { person, fields: given } = operation;
      const fields = lateAttributes(set, operation, { person, attributes: given, mayCreate: true });
      return fields && { ...operation, fields };
    }
    case 'event.track':
      return lateEvent(set, operation);
    case 'person.merge':
      return lateMerge(set, operation);
    case 'person.relationships':
      if (!isDeleted(set, operation, operation.person)) return operation;
      drop(set, operation, operation.person);
      if (operation.action === 'add' && !operation.isHalf)
        makeObjects(set, operation, operation.entries);
      return undefined;
    case 'device.add':
    case 'device.delete':
      if (!isDeleted(set, operation, operation.person)) return operation;
      return drop(set, operation, operation.person);
    case 'object.identify':
      return {
        ...operation,
        relationships: presentEntries(set, operation, operation.relationships),
      };
    case 'object.relationships':
      return { ...operation, entries: presentEntries(set, operation, operation.entries) };
    default:
      return operation;
  }
}

const isDeleted = (set: WorkingSet, operation: Operation, person: PersonIdentifier): boolean =>
  set.deletions.timeOf(operation, person) !== undefined;

/** Records that the person is gone. */
function drop(set: WorkingSet, operation: Operation, person: PersonIdentifier): undefined {
  const { outcome } = set.directory.resolve(operation.environmentId, person);
  if (outcome === 'suppressed') recordSuppressed(set, operation, person);
  else recordNotFound(set, operation, person);
}

function presentEntries(
  set: WorkingSet,
  operation: Operation,
  entries: readonly PersonRelationship[],
): readonly PersonRelationship[] {
  return entries.filter(({ person }) => {
    if (!isDeleted(set, operation, person)) return true;
    drop(set, operation, person);
    return false;
  });
}

/** The call made them before the person was deleted. */
function makeObjects(
  set: WorkingSet,
  operation: Operation,
  entries: readonly ObjectRelationship[],
): void {
  for (const { object } of entries) findOrCreateObject(set, operation, object);
}

/** Its id is used up. */
function lateEvent(set: WorkingSet, operation: TrackEvent): TrackEvent | undefined {
  const { person, anonymousId, eventId } = operation;
  if (!person) return operation;
  if (!isDeleted(set, operation, person)) return withoutVisitor(set, operation);
  if (!takeEventOnce(set, operation, eventId)) return undefined;
  if (anonymousId !== undefined) remember(set, operation, person, visitor(anonymousId));
  return drop(set, operation, person);
}

/** An alias gives a visitor or a new name to the person. */
function lateMerge(set: WorkingSet, operation: MergePeople): MergePeople | undefined {
  const { environmentId, isAlias, primary, secondary } = operation;
  const named = [primary, secondary].find((each) => isDeleted(set, operation, each));
  if (!named) return operation;
  const { value } = secondary;
  if (named === primary) {
    const isVisitor =
      secondary.kind === 'anonymous_id' ||
      (isAlias && set.directory.isKnownVisitor(environmentId, value));
    if (isVisitor) remember(set, operation, named, visitor(value));
  } else if (isAlias) {
    remember(set, operation, named, primary);
  }
  return drop(set, operation, named);
}

/** The attributes without names of deleted people; undefined if the call is about a deleted person. */
function lateAttributes(
  set: WorkingSet,
  operation: IdentifyPerson | SubmitForm,
  call: Identification,
): JsonObject | undefined {
  const meant = deletedPersonOf(set, operation, call);
  if (meant) {
    const { relationships, isHalf } = call;
    rememberNames(set, operation, meant, call);
    drop(set, operation, meant);
    if (relationships?.action === 'add' && !isHalf)
      makeObjects(set, operation, relationships.entries);
    return undefined;
  }
  let { attributes } = call;
  for (const kind of [...LACKED_KINDS, 'anonymous_id'] as const) {
    const value = identifierIn(attributes[kind]);
    if (value === undefined || !isDeleted(set, operation, { kind, value })) continue;
    const { [kind]: _, ...others } = attributes;
    attributes = others;
    recordTaken(set, operation, { kind, value });
  }
  return attributes;
}

/**
 * The identifier by which an identify means a deleted person, by the rules of `upsert-person.ts`: the call's own, or one
 * in the body of a person who lacked an identifier of the call's kind.
 */
function deletedPersonOf(
  set: WorkingSet,
  operation: Operation,
  call: Identification,
): PersonIdentifier | undefined {
  const { environmentId } = operation;
  const { person } = call;
  if (isDeleted(set, operation, person)) return person;
  const { kind } = person;
  if (kind === 'svc_id' || set.directory.resolve(environmentId, person).outcome === 'found')
    return undefined;
  const isLackable = kind === 'id' || kind === 'email';
  for (const named of namedIdentifiers(call).slice(1)) {
    if (isDeleted(set, operation, named)) {
      if (!isLackable || set.deletions.isWithout(operation, named, kind)) return named;
      continue;
    }
    const owner = set.directory.resolve(environmentId, named);
    if (owner.outcome !== 'found') continue;
    if (kind === 'anonymous_id' || loaded(owner.person).row[kind] === null) return undefined;
  }
  return undefined;
}

/** Remembers the names that the call gave to the person: names of a kind that the person lacked, and anonymous ids. */
function rememberNames(
  set: WorkingSet,
  operation: Operation,
  meant: PersonIdentifier,
  call: Identification,
): void {
  const { person, anonymousId, attributes } = call;
  const names = namedIdentifiers(call).filter(
    ({ kind }) =>
      (kind === 'id' || kind === 'email') && set.deletions.isWithout(operation, meant, kind),
  );
  if (person.kind === 'phone' || person.kind === 'anonymous_id') names.push(person);
  const seenAs = anonymousId ?? identifierIn(attributes['anonymous_id']);
  if (seenAs !== undefined) names.push(visitor(seenAs));
  remember(set, operation, meant, ...names);
}

/** Remembers that the deleted person had the names too, without names of present people. */
function remember(
  set: WorkingSet,
  operation: Operation,
  meant: PersonIdentifier,
  ...names: readonly PersonIdentifier[]
): void {
  const { environmentId } = operation;
  const deletedAtMs = set.deletions.timeOf(operation, meant) as number;
  const owner = set.directory.resolve(environmentId, meant);
  const given = names.flatMap(({ kind, value }) =>
    kind !== 'svc_id' &&
    set.directory.resolveStored(environmentId, kind, value).outcome === 'unknown'
      ? [{ environmentId, kind, value: storedValue(kind, value) }]
      : [],
  );
  const before = LACKED_KINDS.filter((each) => !set.deletions.isWithout(operation, meant, each));
  // Of a name that was blocked or had no owner, and of earlier versions' names, the owner's kinds are unknown.
  const held =
    before.length === 0
      ? []
      : LACKED_KINDS.filter(
          (each) => before.includes(each) || given.some(({ kind }) => kind === each),
        );
  for (const key of given) {
    const { kind, value } = key;
    set.deletions.addName(key, held, deletedAtMs);
    if (owner.outcome !== 'suppressed') continue;
    if (kind === 'anonymous_id') endVisitor(set, operation, owner.person, value);
    set.directory.assign(environmentId, kind, value, owner.person);
  }
}

/** An anonymous id of a deleted person is not given to the one whom the call names. */
function withoutVisitor<Call extends IdentifyPerson | TrackEvent>(
  set: WorkingSet,
  operation: Call,
): Call {
  const { anonymousId, ...others } = operation;
  if (anonymousId === undefined || !isDeleted(set, operation, visitor(anonymousId)))
    return operation;
  recordTaken(set, operation, visitor(anonymousId));
  return others as Call;
}

const visitor = (value: string): PersonIdentifier => ({ kind: 'anonymous_id', value });

function recordTaken(
  set: WorkingSet,
  operation: Operation,
  { kind, value }: PersonIdentifier,
): void {
  set.addIssue(operation, {
    code: 'identifier_conflict',
    field: kind,
    message: `The ${kind} "${value}" belonged to a person who was deleted later; it was left out. Send it again if it is this person's.`,
    sample: value,
  });
}
