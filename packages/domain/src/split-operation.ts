/**
 * What is about an object and names people of other shards, as two halves: the object's, which waits its
 * turn among the calls about the object, and the people's, each among the calls about that person.
 *
 * Without it a group call could be applied after the deletion of its person that came later, and would make
 * the person anew: they are in different shards, which have no order between them. So each half makes only
 * what its own shard is about, and adds or deletes the relationship where the other side is there already.
 * Both hold the person's name while they are applied (`worker/src/load-slice.ts`), so whichever comes second
 * meets what the first did, and doing the same again changes nothing. What is left: where the person or object
 * was deleted and made anew at once, a half that comes late gives the relationship to the new one.
 *
 * Between the parser and `shardOf`, in `intake/src/commit-group.ts`. Pure.
 */
import type {
  ChangeObjectRelationships,
  ChangePersonRelationships,
  IdentifyObject,
  Operation,
  PersonIdentifier,
} from './operation.ts';
import { shardKeyOf, shardOf } from './shard.ts';

/** The operation, or its halves, in any order. */
export function splitOperation(operation: Operation, shardCount: number): readonly Operation[] {
  if (operation.type === 'object.identify')
    return split(operation, 'add', operation.relationships, shardCount);
  if (operation.type === 'object.relationships')
    return split(operation, operation.action, operation.entries, shardCount);
  return [operation];
}

/** True where a relationship makes the person it names; others must be there, so nothing is made twice. */
export function canBeMade({ kind }: PersonIdentifier): boolean {
  return kind !== 'svc_id' && kind !== 'anonymous_id';
}

function split(
  operation: IdentifyObject | ChangeObjectRelationships,
  action: 'add' | 'delete',
  entries: IdentifyObject['relationships'],
  shardCount: number,
): readonly Operation[] {
  const { environmentId, receivedAtMs, object } = operation;
  const shardFor = (each: Operation): number =>
    shardOf(environmentId, shardKeyOf(each), shardCount);
  const own = shardFor(operation);
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
  return peoples.every((half) => shardFor(half) === own)
    ? [operation]
    : [{ ...operation, isHalf: true }, ...peoples];
}
