/**
 * Identifiers that a commit batch locks, and the ones that it only reads.
 *
 * A simple event of a known person asks whose an identifier is and changes nothing about it. If another operation
 * deletes, suppresses or renames the person meanwhile, it is as if the event had come first: the history stays
 * theirs. A merge is the exception, because it moves what is stored: nobody may read without holding while one goes
 * on (`database/src/people/merge-gate.ts`).
 *
 * Everything else that an operation may change is held, and every other name of the same people: within one commit
 * batch each operation must meet what the one before it did.
 *
 * Part of step 9 of the walk, called by `worker/src/events/load-state.ts`. Pure.
 */
import { typeOfQueued, type QueuedOperation } from '../operations/packed-event.ts';
import type { IdentifierRow } from './loaded-state.ts';
import { identifierText } from '../operations/state-keys.ts';
import type { NeededIdentifier, StateNeeds } from './state-needs.ts';

/**
 * How a commit batch stands to merges of people: it `merges`, it `reads` who people are and keeps merges off meanwhile,
 * or it `holds` whatever it names and needs neither.
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
 * Those of `needs.identifiers` that must be locked before they are relied on.
 *
 * @param found - the identifiers as they were read, with or without a lock.
 * @param otherPeople - numbers of people whom the operations may change without naming an identifier.
 */
export function identifiersToHold(
  needs: Pick<StateNeeds, 'identifiers' | 'links'>,
  found: readonly IdentifierRow[],
  otherPeople: Iterable<number>,
): NeededIdentifier[] {
  const owners = new Map<string, number | null>();
  for (const { environmentId, kind, value, personId } of found)
    owners.set(identifierText(environmentId, kind, value), personId);

  // Nobody has it: operations that would make or attach it must meet each other.
  const held = new Set<string>();
  for (const { environmentId, kind, value, needsPerson } of needs.identifiers) {
    const text = identifierText(environmentId, kind, value);
    if (needsPerson || owners.get(text) == null) held.add(text);
  }
  // An anonymous id that the person has already is not given to them again.
  for (const { person, anonymousId } of needs.links) {
    if (person !== undefined && owners.get(person) === owners.get(anonymousId)) continue;
    if (person !== undefined) held.add(person);
    held.add(anonymousId);
  }
  const changedPeople = new Set<number | null | undefined>(otherPeople);
  for (const text of held) changedPeople.add(owners.get(text) ?? undefined);
  changedPeople.delete(undefined);
  return needs.identifiers.filter(({ environmentId, kind, value }) => {
    const text = identifierText(environmentId, kind, value);
    return held.has(text) || changedPeople.has(owners.get(text));
  });
}
