/**
 * Loads the rows for a commit batch's operations, under locks.
 *
 * It sends a statement a table for any number of operations, and skips tables without a row to find. Only identifiers
 * that are merely asked for are not locked (`domain/src/state/held-identifiers.ts`), while merges are kept off.
 *
 * All transactions take locks in one order: names of halves of older intakes, event ids, identifiers, people, objects,
 * and inside each table by key. A lock on an identifier keeps others from creating, suppressing or moving its person. A
 * lock on a person keeps others from changing the rows that belong to it.
 *
 * Part of step 9 of the walk: after the claim in `process-commit-batch.ts`, before operations are applied.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import type { PipelinedTransaction } from '@sluice/database/connection/pipelined-transaction';
import { listDevicesOf } from '@sluice/database/people/devices';
import { claimEventIds, takeEventIds } from '@sluice/database/events/event-ids';
import { listMessageDeliveries } from '@sluice/database/events/message-deliveries';
import { lockObjects } from '@sluice/database/people/objects';
import {
  holdNames,
  listIdentifiers,
  listIdentifiersOf,
} from '@sluice/database/people/person-identifiers';
import { listRelationshipsOf } from '@sluice/database/people/relationships';
import { holdOwners, listHeldOwners } from '@sluice/database/people/deleted-identifiers';
import { listNewestVisitorPlaces, listVisitors } from '@sluice/database/people/visitors';
import { listSegmentMembersOf } from '@sluice/database/people/segment-members';
import type {
  IdentifierKey,
  IdentifierRow,
  MessageDeliveryRow,
  NewestVisitorPlace,
  ObjectKey,
  PersonRow,
  LoadedState,
  VisitorKey,
  VisitorRow,
} from '@sluice/domain/state/loaded-state';
import { LAST_PLACE } from '@sluice/domain/operations/order-place';
import { identifierText } from '@sluice/domain/operations/state-keys';
import type { StateNeeds } from '@sluice/domain/state/state-needs';
import { lockWithReleased, readOrLockIdentifiers, textOf } from './lock-identifiers.ts';
import { lockPeopleOf, personText } from './lock-people.ts';

export interface LoadOptions {
  /** As `claimCommitBatches` returned for this transaction. */
  readonly keepsMergesOff: boolean;
  /** Without a look, an event id that was taken ends the transaction with a conflict (`taken-id-watch.ts`). */
  readonly looksForTakenIds: boolean;
  /** Workspaces in which earlier writes of visitors may not be applied yet. */
  readonly waitingVisitorsOf: ReadonlySet<number>;
  /** Absent: they are read. */
  readonly unlocked?: UnlockedRows;
  /** Identifiers of the people who may give up some. Absent: they are looked up. */
  readonly released?: readonly IdentifierKey[];
  /** Looks whether an identifier that was given up while it was waited for is somebody's again. */
  readonly looksForRemadeNames: boolean;
}

/** Options that are right for every transaction, and not the cheapest for most. */
export const SAFEST: LoadOptions = {
  keepsMergesOff: false,
  looksForTakenIds: true,
  waitingVisitorsOf: new Set(),
  looksForRemadeNames: true,
};

/** Rows that are read without a lock: behind the claim, and before it is answered. */
export interface UnlockedRows {
  readonly messageDeliveries: readonly MessageDeliveryRow[];
  /** Empty if each of them must be locked. */
  readonly identifiers: readonly IdentifierRow[];
}

/** Both statements are sent at once. */
export async function readUnlocked(
  transaction: DatabaseOrTransaction,
  { messageDeliveries, identifiers }: StateNeeds,
  keepsMergesOff: boolean,
): Promise<UnlockedRows> {
  const isReading = keepsMergesOff && !identifiers.every(({ needsPerson }) => needsPerson);
  const [messages, found] = await Promise.all([
    listMessageDeliveries(transaction, messageDeliveries),
    isReading ? listIdentifiers(transaction, identifiers) : [],
  ]);
  return { messageDeliveries: messages, identifiers: found };
}

/** Takes the event ids and loads the rest. A row that is not found does not exist, and is not locked. */
export async function loadState(
  { transaction, sending }: PipelinedTransaction,
  named: StateNeeds,
  options: LoadOptions,
): Promise<LoadedState> {
  const { keepsMergesOff, looksForTakenIds, waitingVisitorsOf, looksForRemadeNames } = options;
  const { unlocked, released } = options;
  await holdNames(sending, named.halves);
  const takenEvents = looksForTakenIds ? await claimEventIds(transaction, named.events) : [];
  if (!looksForTakenIds) await takeEventIds(sending, named.events);
  const needs = await holdOwners(transaction, named);
  const { messageDeliveries: read, identifiers: listed } =
    unlocked ?? (await readUnlocked(transaction, needs, keepsMergesOff));
  const identifiers = keepsMergesOff
    ? await readOrLockIdentifiers(transaction, needs, read, listed, looksForRemadeNames)
    : await lockWithReleased(transaction, needs, needs.identifiers, looksForRemadeNames, released);
  const visitors = await listVisitors(transaction, visitorsIn(needs, identifiers));
  const { people, messageDeliveries } = await lockPeopleOf(
    transaction,
    withAdopters(needs, visitors),
    identifiers,
    read,
  );
  const suppressed = await suppressedBySvcId(transaction, needs, identifiers, people);
  const kept = keptBy(visitors);
  const objects = await lockObjects(transaction, needs.objectNames, [
    ...needs.objects,
    ...kept.objects,
  ]);
  // A merge moves everything of the secondary person.
  const { whole, others } = byMerging(needs, identifiers, people);
  const changesRelationships = needs.changesRelationships || kept.objects.length > 0;
  const deviceTokens = [...needs.deviceTokens, ...kept.deviceTokens];
  const [ofWhole, ofOthers, allDevices, devices, deletedIdentifiers, newestVisitorPlaces, members] =
    await Promise.all([
      listRelationshipsOf(transaction, whole, 'all'),
      changesRelationships ? listRelationshipsOf(transaction, others, objects) : [],
      listDevicesOf(transaction, whole, 'all'),
      listDevicesOf(transaction, others, deviceTokens),
      listHeldOwners(transaction, needs),
      newestPlaces(transaction, needs, waitingVisitorsOf),
      listSegmentMembersOf(transaction, whole),
    ]);
  return {
    takenEvents,
    messageDeliveries,
    identifiers: suppressed.length === 0 ? identifiers : [...identifiers, ...suppressed],
    people,
    objects,
    relationships: [...ofWhole, ...ofOthers],
    devices: [...allDevices, ...devices],
    visitors,
    deletedIdentifiers,
    newestVisitorPlaces,
    segmentMembers: members,
  };
}

/**
 * Names of suppressed people whom operations name by svc_id. Without them, a call would count as about an unknown person or
 * as about a suppressed one, as the calls beside it load them.
 */
async function suppressedBySvcId(
  transaction: DatabaseOrTransaction,
  needs: StateNeeds,
  identifiers: readonly IdentifierRow[],
  people: readonly PersonRow[],
): Promise<readonly IdentifierRow[]> {
  if (needs.people.length === 0) return [];
  const known = new Set([...people.map(personText), ...identifiers.map(personText)]);
  const missing = needs.people.filter((each) => !known.has(personText(each)));
  if (missing.length === 0) return [];
  return listIdentifiers(transaction, await listIdentifiersOf(transaction, [], missing));
}

/** The people who may be merged, and the others. */
function byMerging(
  { mergesPeople, releasing, people: named }: StateNeeds,
  identifiers: readonly IdentifierRow[],
  people: readonly PersonRow[],
): { readonly whole: readonly PersonRow[]; readonly others: readonly PersonRow[] } {
  if (!mergesPeople) return { whole: [], others: people };
  const merging = new Set([
    ...named.map(personText),
    ...identifiers.filter((row) => releasing.has(textOf(row))).map(personText),
  ]);
  const isMerging = (person: PersonRow): boolean => merging.has(personText(person));
  return { whole: people.filter(isMerging), others: people.filter((each) => !isMerging(each)) };
}

/** If a visitor's earlier write is still to be applied, every write of the person is recorded. */
async function newestPlaces(
  transaction: DatabaseOrTransaction,
  { attributesOf }: StateNeeds,
  waitingVisitorsOf: ReadonlySet<number>,
): Promise<NewestVisitorPlace[]> {
  const others = attributesOf.filter((environmentId) => !waitingVisitorsOf.has(environmentId));
  return [
    ...(await listNewestVisitorPlaces(transaction, others)),
    ...[...waitingVisitorsOf].map((environmentId) => ({ environmentId, place: LAST_PLACE })),
  ];
}

/** Anonymous ids without an owner that the operations may give to a person or write under. */
function visitorsIn(needs: StateNeeds, identifiers: readonly IdentifierRow[]): VisitorKey[] {
  const named = new Set(needs.links.map(({ anonymousId }) => anonymousId));
  for (const key of needs.identifiers)
    if (key.kind === 'anonymous_id' && key.needsPerson) named.add(textOf(key));
  if (named.size === 0) return [];
  return identifiers
    .filter((row) => row.personId === null && row.kind === 'anonymous_id' && named.has(textOf(row)))
    .map(({ environmentId, value }) => ({ environmentId, anonymousId: value }));
}

/** People to whom an event gives the kept data of a visitor are needed whole. */
function withAdopters(needs: StateNeeds, visitors: readonly VisitorRow[]): StateNeeds {
  if (visitors.length === 0) return needs;
  const kept = new Set(
    visitors.map(({ environmentId, anonymousId }) =>
      identifierText(environmentId, 'anonymous_id', anonymousId),
    ),
  );
  const adopters = new Set(
    needs.links.flatMap(({ person, anonymousId }) => (kept.has(anonymousId) ? [person] : [])),
  );
  return {
    ...needs,
    identifiers: needs.identifiers.map((key) =>
      adopters.has(textOf(key)) ? { ...key, needsPerson: true } : key,
    ),
  };
}

function keptBy(visitors: readonly VisitorRow[]): {
  readonly objects: readonly ObjectKey[];
  readonly deviceTokens: readonly string[];
} {
  return {
    objects: visitors.flatMap(({ environmentId, profile }) =>
      Object.keys(profile.relationships).map((number) => ({
        environmentId,
        objectNumber: Number(number),
      })),
    ),
    deviceTokens: visitors.flatMap(({ profile }) => Object.keys(profile.devices)),
  };
}
