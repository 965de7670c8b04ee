/**
 * Identifiers that a commit batch locks, and the ones it only reads.
 *
 * A simple event of a known person reads the owner of an identifier and does not change it. If another operation
 * deletes, suppresses or renames the person meanwhile, it is as if the event had come first: the history stays theirs.
 * A merge is the exception, because it moves stored rows: while one goes on, a batch locks
 * every identifier that it reads (`database/src/people/merge-gate.ts`).
 *
 * Everything else that an operation may change is held, and every other name of the same people. Within one commit
 * batch each operation must meet the state after the one before it.
 *
 * Part of step 9 of the walk, called by `worker/src/events/state/load-state.ts`. Pure.
 */
import { typeOfQueued, type QueuedOperation } from '../operations/packed-event.ts';
import type { IdentifierKey, IdentifierRow } from './loaded-state.ts';
import { identifierText } from '../operations/state-keys.ts';
import type { NeededIdentifier, StateNeeds } from './state-needs.ts';
import { IdentifierMap } from './tenant-map.ts';

/**
 * Relation of a commit batch to merges of people. It `merges`; or it `reads` identities and keeps merges off meanwhile;
 * or it `holds` every identifier that it names and needs neither.
 */
export type MergeStance = 'merges' | 'reads' | 'holds';

/** The stance of operations that are applied in one transaction. */
export function mergeStanceOf(operations: readonly QueuedOperation[]): MergeStance {
  let stance: MergeStance = 'holds';
  for (const operation of operations) {
    const type = typeOfQueued(operation);
    if (type === 'person.merge') return 'merges';
    if (type === 'event.track') stance = 'reads';
  }
  return stance;
}

/**
 * The identifiers of `needs.identifiers` that must be locked before the batch relies on them.
 *
 * @param found - the identifiers as they were read, with or without a lock.
 * @param otherPeople - numbers of people whom the operations may change without naming an identifier.
 */
export function identifiersToHold(
  needs: Pick<StateNeeds, 'identifiers' | 'links'>,
  found: readonly IdentifierRow[],
  otherPeople: Iterable<number>,
): NeededIdentifier[] {
  const owners = new IdentifierMap<number | null>();
  for (const { environmentId, kind, value, personId } of found)
    owners.set(environmentId, kind, value, personId);
  const ownerOf = ({ environmentId, kind, value }: IdentifierKey): number | null | undefined =>
    owners.get(environmentId, kind, value);

  // It has no owner: operations that would make or attach it must meet each other.
  const held = new Set(
    needs.identifiers.filter((each) => each.needsPerson || ownerOf(each) == null),
  );
  for (const each of linkedAnew(needs, ownerOf)) held.add(each);
  // With null and undefined for identifiers without an owner, which are all held.
  const changedPeople = new Set<number | null | undefined>(otherPeople);
  for (const each of held) changedPeople.add(ownerOf(each));
  // Most batches: events of known people.
  if (changedPeople.size === 0) return [];
  return needs.identifiers.filter((each) => changedPeople.has(ownerOf(each)));
}

/** Both identifiers of each link that is not there: an anonymous id that the person has already is not given to them again. */
function linkedAnew(
  { identifiers, links }: Pick<StateNeeds, 'identifiers' | 'links'>,
  ownerOf: (key: IdentifierKey) => number | null | undefined,
): NeededIdentifier[] {
  if (links.length === 0) return [];
  const byText = new Map(
    identifiers.map((each) => [identifierText(each.environmentId, each.kind, each.value), each]),
  );
  return links.flatMap(({ person, anonymousId }) => {
    const named = person === undefined ? undefined : byText.get(person);
    const anonymous = byText.get(anonymousId);
    const isLinked = named && ownerOf(named) === (anonymous && ownerOf(anonymous));
    return isLinked ? [] : [named, anonymous].filter((each) => each !== undefined);
  });
}
