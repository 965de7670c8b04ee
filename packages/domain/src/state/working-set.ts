/**
 * The loaded state while operations are applied to it, with the changes.
 *
 * It has the rows as they are at that point, and the new rows. The rules (`upsert-person.ts`, `track-event.ts` and
 * their neighbours) read and change it one operation after the other; `changes()` returns the rows to write. Pure: ids
 * and the clock come in as effects.
 */
import type { Issue } from '../operations/issue.ts';
import type { JsonObject } from '../values/json.ts';
import type { ObjectIdentifier, Operation } from '../operations/operation.ts';
import { followMerges, PersonDirectory, type PersonState } from './person-directory.ts';
import { ATTACHED_AGE_MS_MAX, PendingEvents, type NewEvent } from './pending-events.ts';
import type { ReportingEvent } from '../delivery/reporting-event.ts';
import type {
  ActivityKind,
  DeviceRow,
  IssueRow,
  MessageDeliveryRow,
  ObjectRow,
  PersonKey,
  PersonRow,
  RelationshipRow,
  SegmentMemberRow,
  VisitorRow,
  LoadedIncoming,
  LoadedState,
  StateChanges,
} from './loaded-state.ts';
import type { OrderPlace } from '../operations/order-place.ts';
import { eventText, objectText } from '../operations/state-keys.ts';
import { objectNumberOf, svcObjectId } from '../values/svc-id.ts';
import { Deletions } from './replayed-calls.ts';
import { TenantMap } from './tenant-map.ts';
import { RowsOfPeople, TrackedRows } from './tracked-rows.ts';

/** Effects that the apply step needs. */
export interface ApplyEffects {
  /** Never given before, to anybody. */
  readonly newPersonId: () => number;
  /** Never given before, to anything. */
  readonly newObjectNumber: () => number;
  /** A ULID. */
  readonly newId: () => string;
  /** The time of this processing. */
  readonly nowMs: number;
}

export class WorkingSet {
  readonly effects: ApplyEffects;
  readonly directory: PersonDirectory;
  readonly relationships: RowsOfPeople<RelationshipRow>;
  readonly devices: RowsOfPeople<DeviceRow>;
  readonly segmentMembers: RowsOfPeople<SegmentMemberRow>;
  readonly messageDeliveries: TrackedRows<MessageDeliveryRow>;
  readonly deletions: Deletions;
  readonly visitors: TrackedRows<VisitorRow>;
  readonly incoming: LoadedIncoming | undefined;
  readonly #newestVisitorPlaces: Map<number, OrderPlace>;
  readonly #objects: TrackedRows<ObjectRow>;
  readonly #objectsByName = new Map<string, ObjectRow>();
  readonly #deletedObjects = new Set<number>();
  readonly #takenEvents = new TenantMap<true>();
  readonly #events = new PendingEvents();
  readonly #moves: { from: PersonState; sinceMs: number }[] = [];
  readonly #reports: ReportingEvent[] = [];
  #hasMerges = false;
  readonly #issues: IssueRow[] = [];

  constructor(state: LoadedState, effects: ApplyEffects) {
    this.effects = effects;
    this.incoming = state.incoming;
    this.directory = new PersonDirectory(state.identifiers, state.people);
    this.relationships = new RowsOfPeople(relationshipText, state.relationships);
    this.devices = new RowsOfPeople((row) => deviceText(row, row.token), state.devices);
    this.segmentMembers = new RowsOfPeople(
      (row) => `${row.segmentId} ${row.personId}`,
      state.segmentMembers,
    );
    this.messageDeliveries = new TrackedRows(
      (row) => eventText(row.environmentId, row.deliveryId),
      state.messageDeliveries,
    );
    this.deletions = new Deletions(state.deletedIdentifiers);
    this.visitors = new TrackedRows(
      (row) => eventText(row.environmentId, row.anonymousId),
      state.visitors,
    );
    this.#newestVisitorPlaces = new Map(
      state.newestVisitorPlaces.map(({ environmentId, place }) => [environmentId, place]),
    );
    this.#objects = new TrackedRows((row) => String(row.objectNumber), state.objects);
    for (const row of state.objects) this.#objectsByName.set(nameOf(row), row);
    for (const { environmentId, eventId } of state.takenEvents)
      this.#takenEvents.set(environmentId, eventId, true);
  }

  /** Takes an event id; false if it is already taken. */
  takeEventId(environmentId: number, eventId: string): boolean {
    if (this.#takenEvents.get(environmentId, eventId)) return false;
    this.#takenEvents.set(environmentId, eventId, true);
    return true;
  }

  findObject(environmentId: number, object: ObjectIdentifier): ObjectRow | undefined {
    if ('objectTypeId' in object)
      return this.#objectsByName.get(
        objectText(environmentId, object.objectTypeId, object.objectId),
      );
    const objectNumber = objectNumberOf(object.svcObjectId);
    return objectNumber === undefined
      ? undefined
      : this.findObjectByNumber(environmentId, objectNumber);
  }

  findObjectByNumber(environmentId: number, objectNumber: number): ObjectRow | undefined {
    const row = this.#objects.get(String(objectNumber));
    return row?.environmentId === environmentId ? row : undefined;
  }

  findVisitor(environmentId: number, anonymousId: string): VisitorRow | undefined {
    return this.visitors.get(eventText(environmentId, anonymousId));
  }

  /** The last write of an attribute by a visitor of the workspace; undefined if no comparison is needed. */
  newestVisitorPlace(environmentId: number): OrderPlace | undefined {
    return this.#newestVisitorPlaces.get(environmentId);
  }

  setVisitor(row: VisitorRow): void {
    this.visitors.set(row);
    const known = this.#newestVisitorPlaces.get(row.environmentId);
    if (row.newestPlace !== null && (known === undefined || known < row.newestPlace))
      this.#newestVisitorPlaces.set(row.environmentId, row.newestPlace);
  }

  setObject(row: ObjectRow): void {
    this.#objects.set(row);
    this.#objectsByName.set(nameOf(row), row);
  }

  /** Its relationships go with it. */
  deleteObject(row: ObjectRow): void {
    this.#objects.delete(row);
    this.#objectsByName.delete(nameOf(row));
    this.#deletedObjects.add(row.objectNumber);
    for (const relationship of this.relationships.rows()) {
      if (relationship.objectNumber === row.objectNumber) this.relationships.delete(relationship);
    }
  }

  /** Adds a client's event, which is changed until it is written. Without a person it waits under its anonymous id, if it has one. One of a former person is left out. */
  addEvent(event: NewEvent, person: PersonState | undefined): void {
    if (person?.isFormer) return;
    this.#events.add(event, person, this.effects.nowMs);
  }

  /** Adds an entry of our own to the person's history. */
  addActivity(
    person: PersonState,
    operation: Operation,
    kind: ActivityKind,
    name: string | null,
    data: JsonObject,
  ): void {
    const { environmentId, receivedAtMs, envelopeNumber, flushIndex } = operation;
    const eventId = this.effects.newId();
    this.addEvent(
      {
        environmentId,
        eventId,
        kind,
        personId: null,
        anonymousId: null,
        name,
        data,
        occurredAtMs: receivedAtMs,
        receivedAtMs,
        processedAtMs: null,
        envelopeNumber,
        flushIndex,
      },
      person,
    );
  }

  /** Adds an entry about a relationship to the person's history. */
  addRelationshipActivity(
    person: PersonState,
    operation: Operation,
    kind: 'add_relationship' | 'delete_relationship',
    { objectTypeId, objectId, objectNumber }: ObjectRow,
    attributes: JsonObject,
  ): void {
    this.addActivity(person, operation, kind, null, {
      object_type_id: String(objectTypeId),
      object_id: objectId,
      svc_object_id: svcObjectId(objectNumber),
      relationship_attributes: attributes,
    });
  }

  /** Gives the person the events that waited under an anonymous id. */
  attachEvents(
    person: PersonState,
    anonymousId: string,
    atMs: number,
    untilMs: number | null = null,
  ): void {
    const isStored = this.directory.isStoredAnonymousId(person.environmentId, anonymousId);
    const sinceMs = atMs - ATTACHED_AGE_MS_MAX;
    this.#events.attach(person, anonymousId, isStored, sinceMs, untilMs, this.effects.nowMs);
  }

  /** The person's recent events, messages and identifiers go to whom they are about to be merged into. */
  addMove(from: PersonState, atMs: number): void {
    const sinceMs = atMs - ATTACHED_AGE_MS_MAX;
    this.#hasMerges = true;
    if (from.stored === 'person') this.#moves.push({ from, sinceMs });
    this.#events.leaveBehind(from, sinceMs);
  }

  /** A report about a former person is left out. */
  addReport(report: ReportingEvent): void {
    if (report.personId !== undefined && this.directory.isFormer(report.personId)) return;
    this.#reports.push(report);
  }

  addIssue(operation: Operation, issue: Issue, source: string = operation.type, count = 1): void {
    this.#issues.push({
      environmentId: operation.environmentId,
      source,
      issue,
      count,
      atMs: operation.receivedAtMs,
    });
  }

  changes(): StateChanges {
    const isOfGone = (row: PersonKey): boolean => this.directory.isGone(row.personId);
    const people = this.#peopleChanges();
    return {
      ...people,
      moves: this.#moves.map(({ from, sinceMs }) => ({
        environmentId: from.environmentId,
        fromPersonId: from.personId,
        toPersonId: followMerges(from).personId,
        sinceMs,
      })),
      identifiers: this.directory.identifierChanges(),
      objects: this.#objects.changes(() => false),
      relationships: this.relationships.changes(
        (row) => isOfGone(row) || this.#deletedObjects.has(row.objectNumber),
      ),
      devices: this.devices.changes(isOfGone),
      segmentMembers: this.segmentMembers.changes(isOfGone),
      messageDeliveries: this.#messageDeliveryChanges(),
      deletedIdentifiers: this.deletions.added(),
      visitors: this.visitors.changes(
        () => false,
        (loaded, current) => loaded.week !== current.week,
      ),
      attachments: this.#events.attachments(),
      events: this.#events.rows(),
      reports: this.#hasMerges ? this.#reportsAfterMerges() : this.#reports,
      issues: this.#issues,
    };
  }

  /**
   * Messages of people who were merged meanwhile go to the other person; messages of deleted people lose their person.
   */
  #messageDeliveryChanges(): StateChanges['messageDeliveries'] {
    const { inserted, updated, deleted } = this.messageDeliveries.changes(() => false);
    const mend = (row: MessageDeliveryRow): MessageDeliveryRow => ({
      ...row,
      personId:
        row.personId === null
          ? null
          : (this.directory.find(row.environmentId, row.personId)?.personId ?? null),
    });
    return { inserted: inserted.map(mend), updated: updated.map(mend), deleted };
  }

  /** Reports about people who were merged meanwhile are about whom they are part of: for the order of deliveries. */
  #reportsAfterMerges(): ReportingEvent[] {
    return this.#reports.map((report) => {
      const { environmentId, personId } = report;
      const now = personId === undefined ? undefined : this.directory.find(environmentId, personId);
      return now ? { ...report, personId: now.personId } : report;
    });
  }

  #peopleChanges(): Pick<StateChanges, 'people' | 'removedPeople' | 'suppressedPeople'> {
    const inserted: PersonRow[] = [];
    const updated: PersonRow[] = [];
    const deleted: PersonKey[] = [];
    const removedPeople: PersonKey[] = [];
    const suppressedPeople: PersonKey[] = [];
    // A person who was made and is gone again may have been given stored rows in between.
    const heirs = new Set(this.#moves.map(({ from }) => followMerges(from)));
    for (const person of this.directory.people()) {
      if (person.fate === 'present') {
        if (person.stored === 'nothing') inserted.push(person.row as PersonRow);
        else if (person.row !== person.loadedRow) updated.push(person.row as PersonRow);
        continue;
      }
      const hasRows = person.stored === 'person' || heirs.has(person);
      if (hasRows) deleted.push(person);
      if (person.fate === 'removed' && (hasRows || person.stored === 'suppression'))
        removedPeople.push(person);
      if (person.fate === 'suppressed' && hasRows) suppressedPeople.push(person);
    }
    return { people: { inserted, updated, deleted }, removedPeople, suppressedPeople };
  }
}

/** The key of a relationship; numbers of people and objects are never given twice. */
export function relationshipText(key: {
  readonly personId: number;
  readonly objectNumber: number;
}): string {
  return `${key.personId} ${key.objectNumber}`;
}

/** The key of a device. */
export function deviceText(person: PersonKey, token: string): string {
  return `${person.personId} ${token}`;
}

function nameOf(row: ObjectRow): string {
  return objectText(row.environmentId, row.objectTypeId, row.objectId);
}
