/**
 * Loads what an envelope's operations may read or change, under locks: a statement a table, whatever
 * the number of operations, and none where there is nothing to look for.
 *
 * Locks are taken in one order by everybody: event ids, identifiers, people, objects, and inside
 * each table by key. Whoever holds an identifier keeps others from creating, suppressing or moving
 * its person; whoever holds a person, from changing what hangs on them.
 *
 * Part of step 9 of the walk: after the claim in `process-envelope.ts`, before the fold.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection';
import { listDevicesOf } from '@sluice/database/devices';
import { claimEventIds } from '@sluice/database/event-ids';
import { listMessageDeliveries } from '@sluice/database/message-deliveries';
import { lockObjects } from '@sluice/database/objects';
import { lockPeople } from '@sluice/database/people';
import { listIdentifiersOf, lockIdentifiers } from '@sluice/database/person-identifiers';
import { listRelationshipsOf } from '@sluice/database/relationships';
import { listSegmentMembersOf } from '@sluice/database/segment-members';
import type {
  IdentifierKey,
  IdentifierRow,
  MessageDeliveryRow,
  PersonKey,
  Slice,
} from '@sluice/domain/slice';
import { identifierText, type SliceNeeds } from '@sluice/domain/slice-needs';

/** Claims the event ids and loads the rest. What is not found does not exist, and is not locked. */
export async function loadSlice(
  transaction: DatabaseOrTransaction,
  needs: SliceNeeds,
): Promise<Slice> {
  const takenEvents = await claimEventIds(transaction, needs.events);
  const messageDeliveries = await listMessageDeliveries(transaction, needs.messageDeliveries);
  const identifiers = await lockIdentifiers(
    transaction,
    await identifiersToLock(transaction, needs),
  );
  const people = await lockPeople(transaction, peopleToLock(needs, identifiers, messageDeliveries));
  const objects = await lockObjects(transaction, needs.objectNames, needs.objects);
  const { mergesPeople, changesRelationships, changesDevices } = needs;
  return {
    takenEvents,
    messageDeliveries,
    identifiers,
    people,
    objects,
    // A merge takes all that the secondary has along.
    relationships:
      mergesPeople || changesRelationships
        ? await listRelationshipsOf(transaction, people, mergesPeople ? 'all' : objects)
        : [],
    devices: mergesPeople || changesDevices ? await listDevicesOf(transaction, people) : [],
    segmentMembers: mergesPeople ? await listSegmentMembersOf(transaction, people) : [],
  };
}

/**
 * Where identifiers may be given up that no operation names, whoever holds them through another
 * shard is waited for here, in order, and not later in a circle. Only the waiting depends on this
 * unlocked look: what is given up is found by person when it is written.
 */
async function identifiersToLock(
  transaction: DatabaseOrTransaction,
  needs: SliceNeeds,
): Promise<readonly IdentifierKey[]> {
  if (!needs.releasesIdentifiers) return needs.identifiers;
  const keys = new Map<string, IdentifierKey>();
  const all = await listIdentifiersOf(transaction, needs.identifiers, needs.people);
  for (const key of [...needs.identifiers, ...all])
    keys.set(identifierText(key.environmentId, key.kind, key.value), key);
  return [...keys.values()];
}

function peopleToLock(
  needs: SliceNeeds,
  identifiers: readonly IdentifierRow[],
  messageDeliveries: readonly MessageDeliveryRow[],
): PersonKey[] {
  const people = new Map<number, PersonKey>();
  const add = (environmentId: number, personId: number | null): void => {
    if (personId !== null) people.set(personId, { environmentId, personId });
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
  return [...people.values()];
}
