/**
 * A database in memory for tests of the apply step: loads state as `worker/src/events/state/load-state.ts` does and takes
 * changes as `worker/src/events/write-changes.ts` does, with the refusals of unique keys. The real ones have tests of
 * their own, in `worker/test/integration`.
 */
import { applyOperations } from '../../src/apply/apply-operations.ts';
import type { Operation } from '../../src/operations/operation.ts';
import type {
  DeviceRow,
  EventRow,
  IdentifierRow,
  MessageDeliveryRow,
  ObjectRow,
  PersonRow,
  RelationshipRow,
  RowChanges,
  SegmentMemberRow,
  DeletedIdentifier,
  VisitorRow,
  LoadedState,
  StateChanges,
} from '../../src/state/loaded-state.ts';
import { NOW_MS } from '../../src/testing/sample-operations.ts';
import { eventText, identifierText } from '../../src/operations/state-keys.ts';
import { orderPlaceOf } from '../../src/operations/order-place.ts';
import { NO_SUBSCRIPTIONS } from '../../src/delivery/incoming-subscription.ts';
import { peopleToReport } from '../../src/reports/people-to-report.ts';
import { ownersWhoMayBeThere } from '../../src/state/replayed-calls.ts';
import { findStateNeeds } from '../../src/state/find-state-needs.ts';
import type { StateNeeds } from '../../src/state/state-needs.ts';

export const DAY_MS = 24 * 60 * 60 * 1000;

/** Both ways of sending must end the same: for `it.each`, with `applyEach`. */
export const WAYS = [
  ['in one envelope', true],
  ['in envelopes of their own', false],
] as const;

export class MemoryStore {
  identifiers: IdentifierRow[] = [];
  people: PersonRow[] = [];
  objects: ObjectRow[] = [];
  relationships: RelationshipRow[] = [];
  devices: DeviceRow[] = [];
  segmentMembers: SegmentMemberRow[] = [];
  messageDeliveries: MessageDeliveryRow[] = [];
  visitors: VisitorRow[] = [];
  deletedIdentifiers: DeletedIdentifier[] = [];
  events: EventRow[] = [];
  /** Of webhooks that take incoming events. */
  subscriptions = NO_SUBSCRIPTIONS;
  readonly #eventIds = new Set<string>();
  #lastNumber = 0;
  #lastId = 0;
  #batchCount = 0;

  /** Applies the operations as one commit batch. */
  apply(...given: Operation[]): StateChanges {
    const flushPlace = { major: 0, minor: ++this.#batchCount };
    const operations = given.map((operation, index) => ({
      ...operation,
      place: orderPlaceOf(flushPlace, index),
    }));
    const state = this.#load(this.#withFormerOwners(findStateNeeds(operations)));
    const changes = applyOperations(this.#withIncoming(state, operations), operations, {
      newPersonId: () => ++this.#lastNumber,
      newObjectNumber: () => ++this.#lastNumber,
      newId: () => `made-${++this.#lastId}`,
      nowMs: NOW_MS,
    });
    this.#write(changes);
    return changes;
  }

  /** Applies them as one commit batch, or each in its own. */
  applyEach(isTogether: boolean, ...operations: Operation[]): void {
    if (isTogether) this.apply(...operations);
    else for (const operation of operations) this.apply(operation);
  }

  #withIncoming(state: LoadedState, operations: readonly Operation[]): LoadedState {
    const { subscriptions } = this;
    if (subscriptions.isEmpty) return state;
    const numbers = new Set(
      peopleToReport(operations, subscriptions, state).map(({ personId }) => personId),
    );
    const read = this.people.filter(({ personId }) => numbers.has(personId));
    const people = new Map(read.map((row) => [row.personId, row]));
    return { ...state, incoming: { subscriptions, people } };
  }

  #withFormerOwners(needs: StateNeeds): StateNeeds {
    if (!needs.hasReplayed) return needs;
    const owners = ownersWhoMayBeThere(this.deletedIdentifiers);
    return { ...needs, people: [...needs.people, ...owners] };
  }

  #load(needs: StateNeeds): LoadedState {
    const takenEvents = needs.events.filter((key) =>
      this.#eventIds.has(eventText(key.environmentId, key.eventId)),
    );
    for (const key of needs.events) this.#eventIds.add(eventText(key.environmentId, key.eventId));
    const messageDeliveries = this.messageDeliveries.filter((row) =>
      needs.messageDeliveries.some(
        (key) => key.environmentId === row.environmentId && key.deliveryId === row.deliveryId,
      ),
    );
    const wanted = new Map(
      needs.identifiers.map((key) => [identifierText(key.environmentId, key.kind, key.value), key]),
    );
    const named = this.identifiers.filter((row) => wanted.has(textOf(row)));
    const releasing = new Set([
      ...named.filter((row) => needs.releasing.has(textOf(row))).map((row) => row.personId),
      ...needs.people.map((key) => key.personId),
    ]);
    releasing.delete(null);
    const bySvcId = new Set(needs.people.map((key) => key.personId));
    const identifiers = this.identifiers.filter(
      (row) =>
        wanted.has(textOf(row)) ||
        (needs.releasesIdentifiers && releasing.has(row.personId)) ||
        (row.suppressed && row.personId !== null && bySvcId.has(row.personId)),
    );
    const visitors = this.visitors.filter((row) =>
      wanted.has(identifierText(row.environmentId, 'anonymous_id', row.anonymousId)),
    );
    // People to whom an event gives the kept data of a visitor.
    const adopters = visitors.length > 0 ? needs.links.map(({ person }) => person) : [];
    const locked = new Set<number | null>([
      ...needs.people.map((key) => key.personId),
      ...messageDeliveries.map((row) => row.personId),
      ...named
        .filter(
          (row) =>
            !row.suppressed &&
            (wanted.get(textOf(row))?.needsPerson === true || adopters.includes(textOf(row))),
        )
        .map((row) => row.personId),
    ]);
    const people = this.people.filter((row) => locked.has(row.personId));
    const objects = this.objects.filter(
      (row) =>
        visitors.some(({ profile }) => String(row.objectNumber) in profile.relationships) ||
        needs.objects.some(
          (key) => key.environmentId === row.environmentId && key.objectNumber === row.objectNumber,
        ) ||
        needs.objectNames.some(
          (name) =>
            name.environmentId === row.environmentId &&
            name.objectTypeId === row.objectTypeId &&
            name.objectId === row.objectId,
        ),
    );
    const isOfPeople = (row: { personId: number }): boolean =>
      people.some((person) => person.personId === row.personId);
    const isOfObjects = (row: RelationshipRow): boolean =>
      objects.some((object) => object.objectNumber === row.objectNumber);
    const { changesRelationships, deviceTokens } = needs;
    const isMerging = ({ personId }: { personId: number }): boolean =>
      needs.mergesPeople && releasing.has(personId);
    return {
      takenEvents,
      visitors,
      deletedIdentifiers: needs.hasReplayed ? this.deletedIdentifiers : [],
      newestVisitorPlaces: needs.attributesOf.flatMap((environmentId) => {
        const places = this.visitors.flatMap((row) =>
          row.environmentId === environmentId ? (row.newestPlace ?? []) : [],
        );
        const place = places.toSorted().at(-1);
        return place === undefined ? [] : [{ environmentId, place }];
      }),
      messageDeliveries,
      identifiers,
      people,
      objects,
      relationships: this.relationships.filter(
        (row) =>
          isOfPeople(row) &&
          (isMerging(row) || ((changesRelationships || visitors.length > 0) && isOfObjects(row))),
      ),
      devices: this.devices.filter(
        (row) =>
          isOfPeople(row) &&
          (isMerging(row) || visitors.length > 0 || deviceTokens.includes(row.token)),
      ),
      segmentMembers: this.segmentMembers.filter((row) => isOfPeople(row) && isMerging(row)),
    };
  }

  #write(changes: StateChanges): void {
    for (const { fromPersonId, toPersonId, sinceMs } of changes.moves) {
      const move = <Row extends { readonly personId: number | null }>(row: Row): Row =>
        row.personId === fromPersonId ? { ...row, personId: toPersonId } : row;
      this.identifiers = this.identifiers.map(move);
      this.messageDeliveries = this.messageDeliveries.map(move);
      this.events = this.events.map((row) =>
        row.occurredAtMs >= sinceMs && row.receivedAtMs >= sinceMs ? move(row) : row,
      );
    }
    const suppressed = new Set<number | null>(changes.suppressedPeople.map((key) => key.personId));
    const removed = new Set<number | null>(changes.removedPeople.map((key) => key.personId));
    const gone = new Set<number | null>(changes.people.deleted.map((key) => key.personId));
    this.identifiers = this.identifiers
      .map((row) => (suppressed.has(row.personId) ? { ...row, suppressed: true } : row))
      .filter((row) => !removed.has(row.personId));
    this.devices = this.devices.filter((row) => !gone.has(row.personId));
    this.relationships = this.relationships.filter((row) => !gone.has(row.personId));
    this.segmentMembers = this.segmentMembers.filter((row) => !gone.has(row.personId));
    this.messageDeliveries = this.messageDeliveries.map((row) =>
      gone.has(row.personId) ? { ...row, personId: null } : row,
    );
    this.people = written(this.people, changes.people, (row) => `${row.personId}`);
    this.identifiers = written(this.identifiers, changes.identifiers, textOf, true);
    const deletedObjects = new Set(changes.objects.deleted.map((key) => key.objectNumber));
    this.relationships = this.relationships.filter((row) => !deletedObjects.has(row.objectNumber));
    this.objects = written(this.objects, changes.objects, (row) => `${row.objectNumber}`);
    this.relationships = written(
      this.relationships,
      changes.relationships,
      (row) => `${row.personId} ${row.objectNumber}`,
    );
    this.devices = written(this.devices, changes.devices, (row) => `${row.personId} ${row.token}`);
    this.segmentMembers = written(
      this.segmentMembers,
      changes.segmentMembers,
      (row) => `${row.segmentId} ${row.personId}`,
      true,
    );
    this.messageDeliveries = written(
      this.messageDeliveries,
      changes.messageDeliveries,
      (row) => row.deliveryId,
    );
    this.deletedIdentifiers.push(...changes.deletedIdentifiers);
    this.visitors = written(
      this.visitors,
      changes.visitors,
      (row) => `${row.environmentId} ${row.anonymousId}`,
    );
    for (const attachment of changes.attachments) {
      const { anonymousId, personId, sinceMs, untilMs, processedAtMs } = attachment;
      this.events = this.events.map((row) =>
        row.anonymousId === anonymousId &&
        row.personId === null &&
        row.occurredAtMs >= sinceMs &&
        row.receivedAtMs >= sinceMs &&
        (untilMs === null || row.receivedAtMs < untilMs)
          ? { ...row, personId, processedAtMs }
          : row,
      );
    }
    this.events.push(...changes.events);
  }
}

/** Refuses rows that a unique key would refuse. */
function written<Row extends Key, Key extends object>(
  rows: readonly Row[],
  { inserted, updated, deleted }: RowChanges<Row, Key>,
  textOfRow: (key: Key) => string,
  isUpsert = false,
): Row[] {
  const byKey = new Map(rows.map((row) => [textOfRow(row), row]));
  for (const key of deleted) byKey.delete(textOfRow(key));
  for (const row of updated) {
    if (!isUpsert && !byKey.has(textOfRow(row)))
      throw new Error(`updated and not there: ${textOfRow(row)}`);
    byKey.set(textOfRow(row), row);
  }
  for (const row of inserted) {
    if (byKey.has(textOfRow(row)) && !isUpsert)
      throw new Error(`inserted twice: ${textOfRow(row)}`);
    byKey.set(textOfRow(row), row);
  }
  return [...byKey.values()];
}

function textOf(key: {
  environmentId: number;
  kind: IdentifierRow['kind'];
  value: string;
}): string {
  return identifierText(key.environmentId, key.kind, key.value);
}
