/**
 * Locks the people whom operations name.
 *
 * Part of step 9 of the walk, used by `load-state.ts`, which describes the order of all locks.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { listMessageDeliveries } from '@sluice/database/events/message-deliveries';
import { lockPeople } from '@sluice/database/people/people';
import { identifierText } from '@sluice/domain/operations/state-keys';
import type {
  IdentifierRow,
  LoadedState,
  MessageDeliveryRow,
  PersonKey,
} from '@sluice/domain/state/loaded-state';
import type { StateNeeds } from '@sluice/domain/state/state-needs';

/**
 * Locks the people. A merge that was waited for has given a person's messages to somebody else. Then the messages are
 * read once more, and their present owner is locked out of order; a deadlock is a conflict like any other.
 */
export async function lockPeopleOf(
  transaction: DatabaseOrTransaction,
  needs: StateNeeds,
  identifiers: readonly IdentifierRow[],
  read: readonly MessageDeliveryRow[],
): Promise<Pick<LoadedState, 'people' | 'messageDeliveries'>> {
  const asked = peopleToLock(needs, identifiers, read);
  const people = await lockPeople(transaction, [...asked.values()]);
  const there = new Set(people.map(personText));
  const isLeft = (row: MessageDeliveryRow) => row.personId !== null && !there.has(personText(row));
  let messageDeliveries = read;
  while (messageDeliveries.some(isLeft)) {
    messageDeliveries = await listMessageDeliveries(transaction, needs.messageDeliveries);
    const moved = new Map<string, PersonKey>();
    for (const row of messageDeliveries) {
      const { environmentId, personId } = row;
      if (personId !== null && !asked.has(personText(row)))
        moved.set(personText(row), { environmentId, personId });
    }
    // A person who was asked for and is not there was deleted; the message still names them.
    if (moved.size === 0) break;
    for (const [text, key] of moved) asked.set(text, key);
    for (const person of await lockPeople(transaction, [...moved.values()])) {
      people.push(person);
      there.add(personText(person));
    }
  }
  return { people, messageDeliveries };
}

function peopleToLock(
  needs: StateNeeds,
  identifiers: readonly IdentifierRow[],
  messageDeliveries: readonly MessageDeliveryRow[],
): Map<string, PersonKey> {
  const people = new Map<string, PersonKey>();
  const add = (environmentId: number, personId: number | null): void => {
    if (personId === null) return;
    const key = { environmentId, personId };
    people.set(personText(key), key);
  };
  for (const { environmentId, personId } of needs.people) add(environmentId, personId);
  for (const { environmentId, personId } of messageDeliveries) add(environmentId, personId);
  const named = new Set<string>();
  for (const { environmentId, kind, value, needsPerson } of needs.identifiers) {
    if (needsPerson) named.add(identifierText(environmentId, kind, value));
  }
  if (named.size > 0) {
    for (const { environmentId, kind, value, personId, suppressed } of identifiers) {
      if (!suppressed && named.has(identifierText(environmentId, kind, value)))
        add(environmentId, personId);
    }
  }
  return people;
}

/** By workspace too: a caller may write any number after `cio_`, also the number of another tenant's person. */
export const personText = (key: { environmentId: number; personId: number | null }): string =>
  `${key.environmentId} ${key.personId}`;
