/**
 * Identification of anonymous visitors: an anonymous id gets an owner, and the kept data take effect.
 *
 * ```
 *   identify, group, device under an anonymous id without owner  ──▶ kept (`keep-visitors.ts`)
 *   identify, event or alias that names a person and that id     ──▶ applied to the person, reported, forgotten
 * ```
 *
 * A trait never replaces a value that the person was given later (`state/attribute-places.ts`). A relationship or
 * device that the person has stays as it is, as at a merge. One that the person removed later stays away. The person's
 * history begins to show the data when they take effect.
 */
import { setKey, type JsonObject } from '../values/json.ts';
import type { Operation } from '../operations/operation.ts';
import { LAST_PLACE, type OrderPlace } from '../operations/order-place.ts';
import {
  leavesOf,
  namesAbove,
  placeOfLeaf,
  recordPlaces,
  removalName,
  type AttributeLeaf,
} from '../state/attribute-places.ts';
import type { VisitorRow } from '../state/loaded-state.ts';
import {
  describePerson,
  loaded,
  type LoadedPerson,
  type PersonState,
} from '../state/person-directory.ts';
import { namesPreferences, PREFERENCES_ATTRIBUTE } from '../parsing/read-preferences.ts';
import {
  isEmptyProfile,
  newestPlaceIn,
  withoutEarlier,
  withoutOld,
  type VisitorProfile,
} from '../state/visitor-profile.ts';
import { deviceText, relationshipText, type WorkingSet } from '../state/working-set.ts';
import { changeAttributes, recordNames } from './change-attributes.ts';

/**
 * Makes an anonymous id the person's, with its events and the kept data. An id of another person stays theirs and is
 * recorded; an id whose owner is suppressed stays blocked.
 *
 * @param changes - earlier changes of the same call.
 * @returns all that the call changed, name → `{from, to}`; the caller notes it in the history.
 */
export function attachAnonymousId(
  set: WorkingSet,
  operation: Operation,
  person: PersonState,
  anonymousId: string,
  changes?: JsonObject,
): JsonObject | undefined {
  const { environmentId, receivedAtMs } = operation;
  const owner = set.directory.resolveStored(environmentId, 'anonymous_id', anonymousId);
  if (owner.outcome === 'suppressed' || (owner.outcome === 'found' && owner.person === person))
    return changes;
  if (owner.outcome === 'found') {
    set.addIssue(operation, {
      code: 'identifier_conflict',
      field: 'anonymous_id',
      message: `The anonymous id "${anonymousId}" belongs to ${describePerson(owner.person)}; ${describePerson(person)} was not given it. Merge the two if they are one person.`,
      sample: anonymousId,
    });
    return changes;
  }
  const isKnown = set.directory.isKnownVisitor(environmentId, anonymousId);
  set.attachEvents(person, anonymousId, receivedAtMs, person.goneAtMs);
  set.directory.assign(environmentId, 'anonymous_id', anonymousId, person);
  if (isKnown)
    set.addActivity(person, operation, 'anon_merge', anonymousId, { anonymous_id: anonymousId });
  const visitor = set.findVisitor(environmentId, anonymousId);
  return visitor ? adopt(set, operation, loaded(person), visitor, changes) : changes;
}

/** As {@link attachAnonymousId}, for a call that has no other change for the history. */
export function identifyVisitor(
  set: WorkingSet,
  operation: Operation,
  person: PersonState,
  anonymousId: string,
): void {
  const changes = attachAnonymousId(set, operation, person, anonymousId);
  if (changes) set.addActivity(person, operation, 'attribute_change', null, changes);
}

/** Applies the kept data to the person, and forgets them. */
function adopt(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  visitor: VisitorRow,
  changes: JsonObject | undefined,
): JsonObject | undefined {
  const profile = withoutOld(visitor.profile, operation.receivedAtMs);
  if (person.goneAtMs === null) set.visitors.delete(visitor);
  else return leaveLater(set, visitor, person.goneAtMs, changes);
  const noted = adoptAttributes(set, operation, person, profile, changes);
  adoptRelationships(set, operation, person, profile);
  adoptDevices(set, operation, person, profile);
  return noted;
}

/** Data from before the person went are gone with them; later data go on waiting. */
function leaveLater(
  set: WorkingSet,
  visitor: VisitorRow,
  goneAtMs: number,
  changes: JsonObject | undefined,
): JsonObject | undefined {
  const profile = withoutEarlier(visitor.profile, goneAtMs);
  if (isEmptyProfile(profile)) set.visitors.delete(visitor);
  else set.setVisitor({ ...visitor, newestPlace: newestPlaceIn(profile), profile });
  return changes;
}

function adoptAttributes(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  { attributes }: VisitorProfile,
  changes: JsonObject | undefined,
): JsonObject | undefined {
  const { attributesAtMs, attributePlaces } = person.row;
  const entries = Object.entries(attributes)
    .filter(([name, { place, timestampMs }]) => {
      const isOld =
        timestampMs !== undefined && attributesAtMs !== null && timestampMs < attributesAtMs;
      return !isOld && (placeOfLeaf(attributePlaces, name) ?? '') <= place;
    })
    // A removed group comes first, then the values that were set in it again.
    .toSorted(([, one], [, other]) => (one.place < other.place ? -1 : 1));
  if (entries.length === 0) return changes;
  const patch: JsonObject = {};
  for (const [name, { value, place }] of entries)
    for (const [leaf, given] of removedLeaves(person, [name, value], place))
      setKey(patch, leaf, given);
  const noted = changeAttributes(set, operation, person, patch, false, changes);
  let places = person.row.attributePlaces;
  let newestMs = attributesAtMs;
  for (const [name, { place, timestampMs }] of entries) {
    // The newest place of visitors is not loaded for an event or alias, and other visitors may turn out to be the person.
    places = recordPlaces(places, [name], place, LAST_PLACE);
    if (timestampMs !== undefined) newestMs = Math.max(newestMs ?? 0, timestampMs);
  }
  person.row = { ...person.row, attributePlaces: places, attributesAtMs: newestMs };
  return noted;
}

/** A removal of a group removes the values of the person's group that are not newer; anything else is itself. */
function removedLeaves(
  { row }: LoadedPerson,
  [name, value]: AttributeLeaf,
  place: string,
): AttributeLeaf[] {
  if (value !== null || !namesPreferences(name) || !row.attributePlaces) return [[name, value]];
  const preferences = row.attributes[PREFERENCES_ATTRIBUTE];
  if (preferences === undefined) return [];
  return leavesOf({ [PREFERENCES_ATTRIBUTE]: preferences })
    .filter(([leaf]) => namesAbove(leaf).includes(name))
    .filter(([leaf]) => (placeOfLeaf(row.attributePlaces, leaf) ?? '') <= place)
    .map(([leaf]) => [leaf, null]);
}

/** Records that a person's relationship or device was removed, for visitors who may turn out to be the person. */
export function recordRemoval(
  set: WorkingSet,
  operation: Operation,
  person: PersonState,
  section: 'relationships' | 'devices',
  key: string,
): void {
  if (person.row) recordNames(set, operation, loaded(person), () => [removalName(section, key)]);
}

/** @param place - of the visitor's entry; undefined for an entry of an older version, which takes effect as it did there. */
function isRemovedLater(
  { row: { attributePlaces } }: LoadedPerson,
  section: 'relationships' | 'devices',
  key: string,
  place: OrderPlace | undefined,
): boolean {
  if (place === undefined) return false;
  return (placeOfLeaf(attributePlaces, removalName(section, key)) ?? '') > place;
}

function adoptRelationships(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  { relationships }: VisitorProfile,
): void {
  const { environmentId, personId } = person;
  for (const [number, { attributes, createdAtMs, place }] of Object.entries(relationships)) {
    const object = set.findObjectByNumber(environmentId, Number(number));
    if (!object || isRemovedLater(person, 'relationships', number, place)) continue;
    const { objectNumber } = object;
    if (set.relationships.get(relationshipText({ personId, objectNumber }))) continue;
    const times = { createdAtMs, updatedAtMs: operation.receivedAtMs };
    set.relationships.set({ environmentId, personId, objectNumber, attributes, ...times });
    set.addRelationshipActivity(person, operation, 'add_relationship', object, attributes);
  }
}

function adoptDevices(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  { devices }: VisitorProfile,
): void {
  const { environmentId, personId } = person;
  for (const [token, device] of Object.entries(devices)) {
    if (set.devices.get(deviceText(person, token))) continue;
    const { platform, lastUsedAtMs, attributes, createdAtMs, place } = device;
    if (isRemovedLater(person, 'devices', token, place)) continue;
    const updatedAtMs = operation.receivedAtMs;
    set.devices.set({
      environmentId,
      personId,
      token,
      platform,
      lastUsedAtMs,
      attributes,
      createdAtMs,
      updatedAtMs,
    });
  }
}
