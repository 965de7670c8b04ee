/**
 * Splits an operation into halves, for tests.
 *
 * Intakes did so before the log of pending batches (decision 11): the object's half for the object's shard, the
 * person's for the person's. Queues can hold such halves after an upgrade, and workers still apply them. No intake
 * writes halves any more.
 */
import { namedIdentifiers } from '../operations/named-identifiers.ts';
import type {
  ChangeObjectRelationships,
  ChangePersonRelationships,
  IdentifyObject,
  IdentifyPerson,
  ObjectRelationship,
  Operation,
  PersonIdentifier,
} from '../operations/operation.ts';
import { canBeMade, canBeMadeObject } from '../operations/can-be-made.ts';
import { shardKeyOf, shardOf } from '../operations/shard.ts';

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
