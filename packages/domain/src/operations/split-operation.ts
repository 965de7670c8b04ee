/**
 * Splits an operation that is about an object and names people of other shards, or is about a person and names
 * objects of others, into halves: the object's half is ordered among the calls about the object, the person's among
 * the calls about that person.
 *
 * Shards have no order between them. So without halves a group call could be applied after a later deletion of its
 * person and would make the person anew; an identify could do that to its object. Each half makes only what its own
 * shard is about, and adds or deletes the relationship where the other side is there already. Both hold the person's
 * name while they are applied (`worker/src/events/load-state.ts`), so whichever comes second meets what the first did,
 * and doing the same again changes nothing.
 *
 * What remains: where the person or object was deleted and made anew at once, a late half gives the relationship to
 * the new one. A call about a person who is suppressed before its object's half is applied makes no object. And a
 * call that may find nobody to apply to (`_update`, an anonymous id alone) stays whole, because only the calls about
 * that person tell which objects it makes.
 *
 * Between the parser and `shardOf`, in `intake/src/commit/commit-group.ts`. Pure.
 */
import { namedIdentifiers } from './named-identifiers.ts';
import type {
  ChangeObjectRelationships,
  ChangePersonRelationships,
  IdentifyObject,
  IdentifyPerson,
  ObjectIdentifier,
  ObjectRelationship,
  Operation,
  PersonIdentifier,
} from './operation.ts';
import { shardKeyOf, shardOf } from './shard.ts';

/** The operation, or its halves, in any order. */
export function splitOperation(operation: Operation, shardCount: number): readonly Operation[] {
  switch (operation.type) {
    case 'object.identify':
      return splitOfObject(operation, 'add', operation.relationships, shardCount);
    case 'object.relationships':
      return splitOfObject(operation, operation.action, operation.entries, shardCount);
    case 'person.identify':
      return splitIdentify(operation, shardCount);
    case 'person.relationships':
      return splitOfPerson(operation, shardCount);
    default:
      return [operation];
  }
}

/** True where a relationship makes the person it names; others must be there, so nothing is made twice. */
export function canBeMade({ kind }: PersonIdentifier): boolean {
  return kind !== 'svc_id' && kind !== 'anonymous_id';
}

/** As {@link canBeMade}, for an object. */
export function canBeMadeObject(object: ObjectIdentifier): boolean {
  return 'objectId' in object;
}

function splitOfObject(
  operation: IdentifyObject | ChangeObjectRelationships,
  action: 'add' | 'delete',
  entries: IdentifyObject['relationships'],
  shardCount: number,
): readonly Operation[] {
  const { environmentId, receivedAtMs, object } = operation;
  const peoples = entries
    .filter(({ person }) => canBeMade(person))
    .map(({ person, attributes }): ChangePersonRelationships => ({
      type: 'person.relationships',
      environmentId,
      receivedAtMs,
      person,
      action,
      entries: [{ object, attributes }],
      isHalf: true,
    }));
  return isOneShard(operation, peoples, shardCount)
    ? [operation]
    : [{ ...operation, isHalf: true }, ...peoples];
}

function splitIdentify(operation: IdentifyPerson, shardCount: number): readonly Operation[] {
  const { relationships, person, mayCreate } = operation;
  if (!relationships) return [operation];
  const named = namedIdentifiers(operation);
  const isApplied =
    person.kind === 'svc_id' || (mayCreate && named.some((identifier) => canBeMade(identifier)));
  const { action, entries } = relationships;
  const objects = isApplied ? objectHalves(operation, action, entries, named) : [];
  return isOneShard(operation, objects, shardCount)
    ? [operation]
    : [{ ...operation, isHalf: true }, ...objects];
}

function splitOfPerson(
  operation: ChangePersonRelationships,
  shardCount: number,
): readonly Operation[] {
  const { person, action } = operation;
  if (person.kind === 'anonymous_id') return [operation];
  const entries = operation.entries.filter(({ object }) => canBeMadeObject(object));
  const others = operation.entries.filter(({ object }) => !canBeMadeObject(object));
  const objects = objectHalves(operation, action, entries, [person]);
  if (isOneShard(operation, objects, shardCount)) return [operation];
  const half = { ...operation, entries, isHalf: true } as const;
  return others.length > 0
    ? [half, { ...operation, entries: others }, ...objects]
    : [half, ...objects];
}

function objectHalves(
  { environmentId, receivedAtMs, person }: IdentifyPerson | ChangePersonRelationships,
  action: 'add' | 'delete',
  entries: readonly ObjectRelationship[],
  named: readonly PersonIdentifier[],
): ChangeObjectRelationships[] {
  return entries
    .filter(({ object }) => canBeMadeObject(object))
    .map(({ object, attributes }) => ({
      type: 'object.relationships',
      environmentId,
      receivedAtMs,
      object,
      action,
      entries: [{ person, attributes }],
      isHalf: true,
      named,
    }));
}

function isOneShard(
  operation: Operation,
  halves: readonly Operation[],
  shardCount: number,
): boolean {
  if (halves.length === 0) return true;
  const shardFor = (each: Operation): number =>
    shardOf(each.environmentId, shardKeyOf(each), shardCount);
  const own = shardFor(operation);
  return halves.every((half) => shardFor(half) === own);
}
