/**
 * Keeps data that come under an anonymous id without an owner (`state/visitor-profile.ts`).
 *
 * After: `visitors.ts`, which applies them once the id has an owner.
 */
import type { JsonObject } from '../values/json.ts';
import type { AddDevice, Operation, PersonIdentifier } from '../operations/operation.ts';
import { leavesOf } from '../state/attribute-places.ts';
import type { ObjectRow } from '../state/loaded-state.ts';
import { mergeAttributes } from '../state/merge-attributes.ts';
import {
  EMPTY_VISITOR_PROFILE,
  isEmptyProfile,
  newestPlaceIn,
  putVisitorEntry,
  timestampIn,
  VISITOR_SIZE_BYTES_MAX,
  weekOf,
  withoutOld,
  withoutVisitorEntry,
  writeVisitorAttributes,
  type VisitorProfile,
} from '../state/visitor-profile.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** True for an anonymous id without an owner: the data of a call under it are kept. */
export function isVisitor(
  set: WorkingSet,
  environmentId: number,
  identifier: PersonIdentifier,
): boolean {
  return (
    identifier.kind === 'anonymous_id' &&
    set.directory.resolve(environmentId, identifier).outcome === 'unknown'
  );
}

/**
 * Keeps attributes of a call under an anonymous id without an owner; false, and recorded, if the kept ones are newer.
 */
export function keepAttributes(
  set: WorkingSet,
  operation: Operation,
  anonymousId: string,
  attributes: JsonObject,
  timestampMs: number | undefined,
): boolean {
  const before = profileOf(set, operation, anonymousId);
  const newestMs = timestampIn(before);
  if (timestampMs !== undefined && newestMs !== undefined && timestampMs < newestMs) {
    set.addIssue(operation, {
      code: 'skipped_update',
      field: '_timestamp',
      message: 'The attributes are older than the kept ones of the visitor and were skipped.',
      sample: anonymousId,
    });
    return false;
  }
  const { place = '', receivedAtMs: atMs } = operation;
  const { profile, refused } = writeVisitorAttributes(before, leavesOf(attributes), {
    place,
    atMs,
    ...(timestampMs !== undefined && { timestampMs }),
  });
  if (refused.length > 0) refuseExcess(set, operation, 'attributes', refused);
  keep(set, operation, anonymousId, profile);
  return true;
}

/** Keeps a relationship to an object. Adding again merges its attributes. */
export function keepRelationship(
  set: WorkingSet,
  operation: Operation,
  anonymousId: string,
  { objectNumber }: ObjectRow,
  attributes: JsonObject,
): void {
  const { receivedAtMs, place = '' } = operation;
  const before = profileOf(set, operation, anonymousId);
  const known = before.relationships[objectNumber];
  const profile = putVisitorEntry(before, 'relationships', String(objectNumber), {
    attributes: mergeAttributes(known?.attributes ?? {}, attributes).attributes,
    createdAtMs: known?.createdAtMs ?? receivedAtMs,
    atMs: receivedAtMs,
    place,
  });
  if (profile) keep(set, operation, anonymousId, profile);
  else refuseExcess(set, operation, 'relationships', [String(objectNumber)]);
}

/** Forgets a kept relationship, by the object's number, or a kept device, by its token. */
export function forgetKept(
  set: WorkingSet,
  operation: Operation,
  anonymousId: string,
  section: 'relationships' | 'devices',
  key: string,
): void {
  if (!set.findVisitor(operation.environmentId, anonymousId)) return;
  const before = profileOf(set, operation, anonymousId);
  keep(set, operation, anonymousId, withoutVisitorEntry(before, section, key));
}

/** Keeps a device. Adding again merges its attributes. */
export function keepDevice(set: WorkingSet, operation: AddDevice, anonymousId: string): void {
  const { receivedAtMs, token, platform, lastUsedAtMs, place = '' } = operation;
  const before = profileOf(set, operation, anonymousId);
  const known = Object.hasOwn(before.devices, token) ? before.devices[token] : undefined;
  const profile = putVisitorEntry(before, 'devices', token, {
    platform,
    lastUsedAtMs: lastUsedAtMs ?? known?.lastUsedAtMs ?? null,
    attributes: mergeAttributes(known?.attributes ?? {}, operation.attributes).attributes,
    createdAtMs: known?.createdAtMs ?? receivedAtMs,
    atMs: receivedAtMs,
    place,
  });
  if (profile) keep(set, operation, anonymousId, profile);
  else refuseExcess(set, operation, 'devices', [token]);
}

function profileOf(
  set: WorkingSet,
  { environmentId, receivedAtMs }: Operation,
  anonymousId: string,
): VisitorProfile {
  const row = set.findVisitor(environmentId, anonymousId);
  return row ? withoutOld(row.profile, receivedAtMs) : EMPTY_VISITOR_PROFILE;
}

function keep(
  set: WorkingSet,
  { environmentId }: Operation,
  anonymousId: string,
  profile: VisitorProfile,
): void {
  // Held from now on, so that a person who is given the id gets this.
  set.directory.assign(environmentId, 'anonymous_id', anonymousId, undefined);
  const known = set.findVisitor(environmentId, anonymousId);
  if (isEmptyProfile(profile)) {
    if (known) set.visitors.delete(known);
    return;
  }
  set.setVisitor({
    environmentId,
    anonymousId,
    week: weekOf(set.effects.nowMs),
    newestPlace: newestPlaceIn(profile),
    profile,
  });
}

function refuseExcess(
  set: WorkingSet,
  operation: Operation,
  what: 'attributes' | 'relationships' | 'devices',
  refused: readonly string[],
): void {
  const [first = ''] = refused;
  const bounds = `300 attributes, 50 relationships, 50 devices and ${VISITOR_SIZE_BYTES_MAX / 1_000} KB`;
  set.addIssue(operation, {
    code: 'too_large',
    field: what,
    message: `Of an anonymous visitor, ${bounds} are kept: ${refused.length} ${what} were left out, the first is "${first}". Send fewer.`,
    sample: first,
  });
}
