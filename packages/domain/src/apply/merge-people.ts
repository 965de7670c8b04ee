/**
 * Merge (`ingestion-conventions.md` §1.6): the secondary becomes part of the primary, for good.
 *
 * The primary keeps all it has. It takes from the secondary the things that it lacks: attributes, identifiers of new
 * kinds, devices, relationships, manual segments, anonymous ids, messages and the events of 30 days. The secondary's
 * other identifiers are free again.
 */
import { STORED_ATTRIBUTE_COUNT_MAX } from '../state/merge-attributes.ts';
import { changeIdentifier, type NamedKind } from './change-identifiers.ts';
import { setKey, type Json, type JsonObject } from '../values/json.ts';
import { findOrCreatePerson, findPerson } from './find-person.ts';
import { identifyVisitor } from './visitors.ts';
import type { MergePeople, Operation } from '../operations/operation.ts';
import type { OrderPlace } from '../operations/order-place.ts';
import { namesAbove, type AttributePlaces } from '../state/attribute-places.ts';
import type { PersonRow } from '../state/loaded-state.ts';
import { rememberMerge, rememberRelease } from '../state/former/remember-names.ts';
import { loaded, type LoadedPerson } from '../state/person-directory.ts';
import { identifiersOf, reportSubscription } from '../reports/person-report.ts';
import { relationshipText, deviceText, type WorkingSet } from '../state/working-set.ts';

const NAMED_KINDS: readonly NamedKind[] = ['id', 'email', 'phone'];

/**
 * Merges two people. If either does not exist, the merge is recorded as an issue and has no effect. An alias of a
 * visitor is an identification; an alias of another person's anonymous id is an issue. An alias for an id without an owner gives the id to the person.
 */
export function mergePeople(set: WorkingSet, operation: MergePeople): void {
  const { environmentId, isAlias, primary: to, secondary: from } = operation;
  const visitor = visitorOf(set, operation);
  if (visitor !== undefined) return identifyAs(set, operation, visitor);
  const known = set.directory.resolve(environmentId, to);
  const isFree = known.outcome === 'unknown' && to.kind !== 'svc_id';
  if (isAlias && (isFree || (to.kind === 'anonymous_id' && known.outcome === 'found')))
    return rename(set, operation);
  const primary = findPerson(set, operation, to);
  if (primary.outcome !== 'found') return;
  const secondary = findPerson(set, operation, from);
  if (secondary.outcome !== 'found' || secondary.person === primary.person) return;
  // The things of a deleted person are gone.
  if (primary.person.isFormer || secondary.person.isFormer) return;
  merge(set, operation, loaded(primary.person), loaded(secondary.person));
}

/**
 * The anonymous id that the secondary means; undefined if a person is meant. An anonymous id means its owner only if the
 * owner lacks the new name: a browser that two people use sends the same one, and a merge cannot be taken back.
 */
function visitorOf(
  set: WorkingSet,
  { environmentId, primary, secondary, isAlias }: MergePeople,
): string | undefined {
  const { kind, value } = secondary;
  const owner = set.directory.resolve(environmentId, secondary);
  if (kind === 'anonymous_id') {
    if (owner.outcome === 'suppressed') return undefined;
    // No row has an svc_id or an anonymous id under its kind, so neither is null.
    const isNewName =
      owner.outcome === 'found' &&
      set.directory.resolve(environmentId, primary).outcome === 'unknown' &&
      loaded(owner.person).row[primary.kind as NamedKind] === null;
    return isNewName ? undefined : value;
  }
  if (!isAlias || owner.outcome !== 'unknown') return undefined;
  return set.directory.isKnownVisitor(environmentId, value) ? value : undefined;
}

function identifyAs(set: WorkingSet, operation: MergePeople, anonymousId: string): void {
  const { isAlias, primary, environmentId } = operation;
  const find =
    isAlias && set.directory.isKnownVisitor(environmentId, anonymousId)
      ? findOrCreatePerson
      : findPerson;
  const person = find(set, operation, primary);
  if (person.outcome === 'found') identifyVisitor(set, operation, person.person, anonymousId);
}

/** No person has the new id: the person whom the alias names gets it, in the place of the one of its kind. */
function rename(set: WorkingSet, operation: MergePeople): void {
  const secondary = findPerson(set, operation, operation.secondary);
  if (secondary.outcome !== 'found') return;
  const person = loaded(secondary.person);
  const { kind, value } = operation.primary;
  if (kind === 'anonymous_id') return identifyVisitor(set, operation, person, value);
  const changes = changeIdentifier(
    set,
    operation,
    person,
    kind as NamedKind,
    value,
    true,
    undefined,
  );
  if (changes) set.addActivity(person, operation, 'attribute_change', null, changes);
}

function merge(
  set: WorkingSet,
  operation: MergePeople,
  primary: LoadedPerson,
  secondary: LoadedPerson,
): void {
  set.addActivity(primary, operation, 'profile_merge', null, {
    secondary: identifiersOf(secondary.row),
  });
  moveDevices(set, primary, secondary);
  moveRelationships(set, primary, secondary);
  moveSegments(set, primary, secondary);
  set.addMove(secondary, operation.receivedAtMs);
  rememberMerge(set, secondary, primary, operation.receivedAtMs);
  secondary.fate = 'merged';
  secondary.mergedInto = primary;

  const before = primary.row;
  const from = secondary.row;
  primary.row = {
    ...before,
    attributes: fill(before.attributes, from.attributes),
    unsubscribed: before.unsubscribed ?? from.unsubscribed,
    attributesAtMs: latestOf(before.attributesAtMs, from.attributesAtMs),
    attributePlaces: joinPlaces(before, from),
    updatedAtMs: operation.receivedAtMs,
  };
  for (const kind of NAMED_KINDS) moveIdentifier(set, operation, primary, secondary, kind);
  reportSubscription(set, operation, primary, before.unsubscribed, 'customer');
}

function moveIdentifier(
  set: WorkingSet,
  operation: Operation,
  primary: LoadedPerson,
  secondary: LoadedPerson,
  kind: NamedKind,
): void {
  const value = secondary.row[kind];
  if (value === null) return;
  const isTaken = primary.row[kind] === null;
  set.directory.assign(primary.environmentId, kind, value, isTaken ? primary : undefined);
  if (isTaken) primary.row = { ...primary.row, [kind]: value };
  else rememberRelease(set, secondary, kind, value, operation);
}

function fill(kept: JsonObject, from: JsonObject): JsonObject {
  const filled = { ...kept };
  let count = Object.keys(filled).length;
  for (const name in from) {
    if (Object.hasOwn(filled, name) || count >= STORED_ATTRIBUTE_COUNT_MAX) continue;
    setKey(filled, name, from[name] as Json);
    count++;
  }
  return filled;
}

/** The `_timestamp` of the attributes of both: an older write must not replace a value that the merge brought. */
const latestOf = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

/**
 * A value that the primary keeps has the place of its own write. For any other name the later write of the two counts. So
 * a visitor's trait never replaces a later write of either person, and a removal is a write.
 */
function joinPlaces(
  { attributes, unsubscribed, attributePlaces }: PersonRow,
  { attributePlaces: from }: PersonRow,
): AttributePlaces | null {
  if (!from) return attributePlaces;
  const joined: Record<string, OrderPlace> = { ...attributePlaces };
  for (const name in from) {
    const whole = namesAbove(name).at(-1) as string;
    const isKept =
      whole === 'unsubscribed' ? unsubscribed !== null : Object.hasOwn(attributes, whole);
    const given = from[name] as OrderPlace;
    const own = Object.hasOwn(joined, name) ? joined[name] : undefined;
    if (!isKept && (own === undefined || own < given)) setKey(joined, name, given);
  }
  return joined;
}

/** The secondary's own rows are removed with the person. */
function moveDevices(set: WorkingSet, primary: LoadedPerson, secondary: LoadedPerson): void {
  for (const device of set.devices.of(secondary)) {
    if (!set.devices.get(deviceText(primary, device.token)))
      set.devices.set({ ...device, personId: primary.personId });
  }
}

function moveRelationships(set: WorkingSet, primary: LoadedPerson, secondary: LoadedPerson): void {
  const { personId } = primary;
  for (const relationship of set.relationships.of(secondary)) {
    const { objectNumber } = relationship;
    if (!set.relationships.get(relationshipText({ personId, objectNumber })))
      set.relationships.set({ ...relationship, personId });
  }
}

function moveSegments(set: WorkingSet, primary: LoadedPerson, secondary: LoadedPerson): void {
  for (const member of set.segmentMembers.of(secondary)) {
    const moved = { ...member, personId: primary.personId };
    set.segmentMembers.set(moved);
  }
}
