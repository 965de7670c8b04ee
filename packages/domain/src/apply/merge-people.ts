/**
 * Merge (`ingestion-conventions.md` §1.6): the secondary becomes part of the primary, for good.
 *
 * The primary keeps all it has; what it lacks it takes from the secondary: attributes, identifiers of
 * a kind it has none of, devices, relationships, manual segments, anonymous ids, messages and the
 * events of 30 days. The secondary's other identifiers are free again.
 */
import { STORED_ATTRIBUTE_COUNT_MAX } from '../state/merge-attributes.ts';
import { attachAnonymousId, type NamedKind } from './change-identifiers.ts';
import { setKey, type Json, type JsonObject } from '../values/json.ts';
import { findPerson } from './find-person.ts';
import type { MergePeople } from '../operations/operation.ts';
import { loaded, type LoadedPerson } from '../state/person-directory.ts';
import { identifiersOf, reportSubscription } from './person-report.ts';
import { relationshipText, deviceText, type WorkingSet } from '../state/working-set.ts';

const NAMED_KINDS: readonly NamedKind[] = ['id', 'email', 'phone'];

/** Merges two people. Where either does not exist nothing happens, and that is recorded. */
export function mergePeople(set: WorkingSet, operation: MergePeople): void {
  const primary = findPerson(set, operation, operation.primary);
  if (primary.outcome !== 'found') return;
  if (operation.secondary.kind === 'anonymous_id') {
    const owner = set.directory.resolve(operation.environmentId, operation.secondary);
    // The anonymous id is nobody's yet: the events under it are all there is to merge.
    if (owner.outcome === 'unknown')
      return attachAnonymousId(set, operation, primary.person, operation.secondary.value);
  }
  const secondary = findPerson(set, operation, operation.secondary);
  if (secondary.outcome !== 'found' || secondary.person === primary.person) return;
  merge(set, operation, loaded(primary.person), loaded(secondary.person));
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
  secondary.fate = 'merged';
  secondary.mergedInto = primary;

  const before = primary.row;
  const from = secondary.row;
  primary.row = {
    ...before,
    attributes: fill(before.attributes, from.attributes),
    unsubscribed: before.unsubscribed ?? from.unsubscribed,
    updatedAtMs: operation.receivedAtMs,
  };
  for (const kind of NAMED_KINDS) moveIdentifier(set, primary, from[kind], kind);
  reportSubscription(set, operation, primary, before.unsubscribed, 'customer');
}

function moveIdentifier(
  set: WorkingSet,
  primary: LoadedPerson,
  value: string | null,
  kind: NamedKind,
): void {
  if (value === null) return;
  const isTaken = primary.row[kind] === null;
  set.directory.assign(primary.environmentId, kind, value, isTaken ? primary : undefined);
  if (isTaken) primary.row = { ...primary.row, [kind]: value };
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

function moveDevices(set: WorkingSet, primary: LoadedPerson, secondary: LoadedPerson): void {
  for (const device of set.devices.of(secondary)) {
    set.devices.delete(device);
    if (!set.devices.get(deviceText(primary, device.token)))
      set.devices.set({ ...device, personId: primary.personId });
  }
}

function moveRelationships(set: WorkingSet, primary: LoadedPerson, secondary: LoadedPerson): void {
  const { personId } = primary;
  for (const relationship of set.relationships.of(secondary)) {
    set.relationships.delete(relationship);
    const { objectNumber } = relationship;
    if (!set.relationships.get(relationshipText({ personId, objectNumber })))
      set.relationships.set({ ...relationship, personId });
  }
}

function moveSegments(set: WorkingSet, primary: LoadedPerson, secondary: LoadedPerson): void {
  for (const member of set.segmentMembers.of(secondary)) {
    set.segmentMembers.delete(member);
    const moved = { ...member, personId: primary.personId };
    set.segmentMembers.set(moved);
  }
}
