/**
 * Batches of other shards that must take effect before some operations.
 *
 * They are batches that intake added earlier and that name the same people or objects, by any identifier. Two
 * operations can be about one person and have no identifier in common: an event by email, a merge by id. So the
 * operations' people are looked up, and all their identifiers count. That suffices: an operation that will give a
 * person another identifier names one that the person has already, or names both.
 *
 * The lowest place never waits, so there is no circle. A batch waits until the workers of the other shards have applied
 * the batches before it. If they do not, as when one has died, it applies those itself, in the same transaction.
 *
 * Part of step 9 of the walk, called by `process-commit-batch.ts` after the claim.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { withFormerOwners } from '@sluice/database/people/deleted-identifiers';
import { listNamesOfObjects } from '@sluice/database/people/objects';
import { listNamesOfOwners, type NamesOfOwners } from '@sluice/database/people/person-names';
import { listObjectsOfVisitors, listVisitorsOfObjects } from '@sluice/database/people/visitors';
import { findStateNeeds } from '@sluice/domain/state/find-state-needs';
import type { StateNeeds } from '@sluice/domain/state/state-needs';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import {
  environmentOf,
  isKnownFormat,
  unpackOperation,
  type QueuedOperation,
} from '@sluice/domain/operations/packed-event';
import type { Operation } from '@sluice/domain/operations/operation';
import { keysOf, unsubscribeHashOf, visitorHashOf } from '@sluice/domain/operations/operation-keys';
import { deliveryKey, keyHashOf } from '@sluice/domain/operations/shard';
import type { IdentifierKey } from '@sluice/domain/state/loaded-state';
import type { PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import { within } from '@sluice/platform/process/within';

/** A batch that is about to be applied. */
export interface HeldBatch {
  readonly batch: PendingBatch;
  readonly operations: readonly Operation[];
}

/** Batches that must be applied before the held ones, and names from the look at their people. */
export interface EarlierBatches {
  readonly batches: readonly PendingBatch[];
  /**
   * Identifiers of the people who may be deleted, suppressed or merged, as they are without a lock. Absent: no batch is
   * waited for, and they were not looked up.
   */
  readonly released?: readonly IdentifierKey[];
}

/**
 * Finds the batches that must be applied first.
 *
 * ```
 *   shard 3   … [event of e] …          place 7   ◀─ earlier, and e is p's
 *   shard 9   … [merge p <- s] …        place 9   ◀─ in progress
 * ```
 *
 * @param held - the batches that the transaction applies together; they are never in the answer.
 * @param known - the needs of all operations of the transaction, if they were found.
 * @param reports - events are reported to webhooks, a person's in their order. Without reports, events that name their
 * person
 *   alone need no order among themselves, and they are most of the traffic. To look up the other names of their people was a
 *   tenth of the worker's time.
 */
export async function findEarlierBatches(
  transaction: DatabaseOrTransaction,
  pending: PendingView,
  held: readonly HeldBatch[],
  known: StateNeeds | undefined,
  reports: boolean,
): Promise<EarlierBatches> {
  const isOrderFree = !reports && held.every(({ batch }) => batch.isOrderFree);
  const waiting = held.filter(({ batch }) =>
    isOrderFree ? pending.hasEarlierOrdered(batch) : pending.hasEarlier(batch),
  );
  if (waiting.length === 0) return { batches: [] };
  const needs = known ?? findStateNeeds(held.flatMap(({ operations }) => operations));
  const forgotten = pending.watchForgotten();
  try {
    const { keys, released } = await keysOfHeld(transaction, held, needs);
    const batches = waiting.map(({ batch }) => batch);
    // Keys of all for all, the first one's too: it can give one of its names to a person that a later one names, and join people
    // whom a batch between them names.
    const found = pending.earlier(batches, keys);
    if (!isOrderFree)
      for (const each of await findUnsubscribes(transaction, pending, batches, held, keys))
        found.add(each);
    // Applied since the names were looked up, perhaps with another name of one of our people. It is looked at again.
    const lastPlace = Math.max(...batches.map(({ place }) => place));
    for (const each of forgotten.batches)
      if (each.place < lastPlace && each.keys.some((key) => keys.has(key | 0))) found.add(each);
    const ids = new Set(held.map(({ batch }) => batch.id));
    return {
      batches: [...found].filter((each) => !ids.has(each.id) && !(isOrderFree && each.isOrderFree)),
      released,
    };
  } finally {
    forgotten.end();
  }
}

/** Browsers make visitors without a credential of their own, and any number of them can name one object. */
const RELATED_VISITOR_COUNT_MAX = 10_000;

/**
 * Hashes of all names of the people and objects of the held batches, as signed integers.
 *
 * Messages of the people who may be deleted, suppressed or merged are among them. An earlier report on such a message is
 * about its person, even if it names the address of another one. Other calls may come before it, so the many messages of
 * their people are not looked up.
 */
async function keysOfHeld(
  transaction: DatabaseOrTransaction,
  held: readonly HeldBatch[],
  needs: StateNeeds,
): Promise<{
  readonly keys: ReadonlySet<number>;
  readonly released: NamesOfOwners['released'];
}> {
  const keys = new Set<number>();
  const visitors = needs.identifiers.flatMap(({ environmentId, kind, value }) =>
    kind === 'anonymous_id' ? [{ environmentId, anonymousId: value }] : [],
  );
  const [{ messages, released }, ofVisitors, ofObjects] = await Promise.all([
    addNamesOfOwners(keys, transaction, needs),
    // An object to which a visitor will relate somebody may be deleted by an earlier call, and an earlier call may identify
    // a visitor of an object that is deleted.
    listObjectsOfVisitors(transaction, visitors),
    listVisitorsOfObjects(transaction, needs.deletedObjects, RELATED_VISITOR_COUNT_MAX),
  ]);
  for (const { environmentId, key } of ofVisitors) keys.add(keyHashOf(environmentId, key) | 0);
  for (const { environmentId, anonymousId } of ofObjects)
    keys.add(keyHashOf(environmentId, anonymousId) | 0);
  for (const message of messages)
    keys.add(keyHashOf(message.environmentId, deliveryKey(message)) | 0);
  // The names in the operations themselves stand in the log: to hash them again was a twentieth of the worker's time.
  for (const { batch, operations } of held) {
    // A batch that was applied before needs no person.
    if (operations.length === 0) continue;
    const marks = marksOf(operations);
    for (const key of batch.keys) if (!marks.has(key | 0)) keys.add(key | 0);
  }
  return { keys, released };
}

/** Longer than a healthy broker takes. The transaction holds claims meanwhile. */
const READ_MS_MAX = 5_000;

/** The clicks in batches with a mark: each such batch is read once, however many wait for it. */
const clicksOf = new WeakMap<PendingBatch, readonly Operation[]>();

/**
 * Earlier batches that unsubscribe people by messages, if one of the people is among ours. Such a batch is rare, and a
 * person can have many messages. So its people are looked up, and not our people's messages.
 *
 * @param keys - hashes of all names of our people.
 */
async function findUnsubscribes(
  transaction: DatabaseOrTransaction,
  pending: PendingView,
  batches: readonly PendingBatch[],
  held: readonly HeldBatch[],
  keys: ReadonlySet<number>,
): Promise<readonly PendingBatch[]> {
  const environmentIds = new Set(
    held.flatMap(({ operations }) => operations.map(({ environmentId }) => environmentId)),
  );
  const marked = [...pending.earlier(batches, [...environmentIds].map(unsubscribeHashOf))];
  const unread = marked.filter((each) => !clicksOf.has(each));
  if (unread.length > 0) {
    const contents = await within(READ_MS_MAX, pending.read(unread));
    for (const [index, each] of unread.entries()) {
      const content = contents[index];
      if (content) clicksOf.set(each, clicksIn(content));
    }
  }
  const owners = new Set<number>();
  const clicks = marked.flatMap((each) => clicksOf.get(each) ?? []);
  if (clicks.length > 0) await addNamesOfOwners(owners, transaction, findStateNeeds(clicks));
  // One of them is enough to wait for all of these few.
  if ([...owners].some((key) => keys.has(key))) return marked;
  // Applied, or not queued yet: `readEarlier` finds it out.
  return marked.filter((each) => !clicksOf.has(each));
}

const clicksIn = ({ operations }: CommitBatch): readonly Operation[] =>
  operations
    .filter(isKnownFormat)
    .map((queued) => unpackOperation(queued))
    .filter(({ type }) => type === 'delivery.unsubscribe');

/**
 * Workspaces of the held batches with a visitor's write that was added before one of them and may not be applied yet.
 * Writes to people there must be comparable with it later. The visitor is not waited for: it may be anybody.
 */
export function waitingVisitorsOf(
  pending: PendingView | undefined,
  held: readonly HeldBatch[],
): ReadonlySet<number> {
  const found = new Set<number>();
  if (!pending) return found;
  for (const { batch, operations } of held) {
    if (!pending.hasEarlierOrdered(batch)) continue;
    for (const environmentId of new Set(operations.map((each) => each.environmentId)))
      if (pending.earlier([batch], [visitorHashOf(environmentId)]).size > 0)
        found.add(environmentId);
  }
  return found;
}

/**
 * Batches that must be applied first by the log alone, without a look at the people.
 *
 * @param operations - of the batch.
 */
export function earlierByKeys(
  pending: PendingView,
  batch: PendingBatch,
  operations: readonly QueuedOperation[],
): PendingBatch[] {
  // Reported events have an order too; the transaction looks for it (`findEarlierBatches`).
  const hasEarlier = batch.isOrderFree
    ? pending.hasEarlierOrdered(batch)
    : pending.hasEarlier(batch);
  if (!hasEarlier) return [];
  const found = pending.earlier([batch], batch.keys, marksOf(operations));
  return [...found].filter((each) => !isOfFlush(each, batch));
}

/** Marks among the keys of a batch with these operations: no batch waits for one. As signed integers. */
function marksOf(operations: readonly QueuedOperation[]): ReadonlySet<number> {
  const marks = new Set<number>();
  let last: number | undefined;
  for (const operation of operations) {
    const environmentId = environmentOf(operation);
    if (environmentId === last) continue;
    last = environmentId;
    marks.add(visitorHashOf(environmentId) | 0).add(unsubscribeHashOf(environmentId) | 0);
  }
  return marks;
}

/** Hashes of all keys that operations name, and of all other names of the people and objects that they name. */
export async function keysOfOwners(
  database: DatabaseOrTransaction,
  operations: readonly Operation[],
): Promise<Set<number>> {
  const keys = new Set<number>();
  for (const operation of operations)
    for (const key of keysOf(operation)) keys.add(keyHashOf(operation.environmentId, key) | 0);
  await addNamesOfOwners(keys, database, findStateNeeds(operations));
  return keys;
}

async function addNamesOfOwners(
  keys: Set<number>,
  database: DatabaseOrTransaction,
  needs: StateNeeds,
): Promise<NamesOfOwners> {
  const [ofOwners, ofObjects] = await Promise.all([
    listNamesOfOwners(database, await withFormerOwners(database, needs)),
    listNamesOfObjects(database, needs),
  ]);
  for (const { environmentId, key } of [...ofOwners.names, ...ofObjects])
    keys.add(keyHashOf(environmentId, key) | 0);
  return ofOwners;
}

/** True for two parts of one call: they are applied together. */
const isOfFlush = (one: PendingBatch, other: PendingBatch): boolean =>
  one.flushId !== undefined && one.flushId === other.flushId;
