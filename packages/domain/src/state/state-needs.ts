/**
 * Draft of the state that operations need: each identifier and object once, however often it is named.
 *
 * Step 9 of the walk. `find-state-needs.ts` fills the draft; `worker/src/events/state/load-state.ts` loads its content.
 */
import type {
  ObjectIdentifier,
  PersonIdentifier,
  PublishMessage,
  ReportMetric,
  TrackEvent,
} from '../operations/operation.ts';
import {
  eventText,
  identifierText,
  objectText,
  storedValue,
  type StoredIdentifierKind,
} from '../operations/state-keys.ts';
import type {
  EventClaim,
  IdentifierKey,
  MessageDeliveryKey,
  ObjectKey,
  PersonKey,
} from './loaded-state.ts';
import { objectNumberOf, personIdOf } from '../values/svc-id.ts';
import { IdentifierMap, TenantMap } from './tenant-map.ts';

export interface NeededIdentifier extends IdentifierKey {
  /** False if only events name it: they need the person's number, not the row. */
  needsPerson: boolean;
}

/** An event gives a person an anonymous id. Both as `identifierText`. */
export interface IdentifierLink {
  /** Undefined: named by svc_id. */
  readonly person: string | undefined;
  readonly anonymousId: string;
}

export interface ObjectName {
  readonly environmentId: number;
  readonly objectTypeId: number;
  readonly objectId: string;
}

/** Objects by both kinds of names. */
export interface NamedObjects {
  readonly objectNames: readonly ObjectName[];
  /** Objects named by svc object id; some may be named twice. */
  readonly objects: readonly ObjectKey[];
}

export interface StateNeeds extends NamedObjects {
  /** Each once. */
  readonly identifiers: readonly NeededIdentifier[];
  /** People named by svc_id; some may be named twice. */
  readonly people: readonly PersonKey[];
  /** Of the objects, the ones that are deleted; some may be named twice. */
  readonly deletedObjects: NamedObjects;
  readonly messageDeliveries: readonly MessageDeliveryKey[];
  /** Event ids to claim, each once. */
  readonly events: readonly EventClaim[];
  /** Links between two identifiers of one event. */
  readonly links: readonly IdentifierLink[];
  /** Names of the people whom halves of older intakes are about: the other half must not be applied meanwhile. */
  readonly halves: readonly IdentifierKey[];
  /** Workspaces with people whose attributes may be written, each once. */
  readonly attributesOf: readonly number[];
  /**
   * True if calls that waited in a disk buffer are among them: the people that they name may have been deleted since.
   */
  readonly hasReplayed: boolean;
  readonly changesRelationships: boolean;
  /** Of the devices that are added or deleted; some may be named twice. */
  readonly deviceTokens: readonly string[];
  readonly mergesPeople: boolean;
  /** Identifiers that no operation names may be given up; other transactions that hold them must be waited for. */
  readonly releasesIdentifiers: boolean;
  /** Names of people who may give up identifiers or be merged, as `identifierText`; beside all of `people`. */
  readonly releasing: ReadonlySet<string>;
  /** How many people and objects can be new, at most. */
  readonly newNumbersMax: number;
}

/** Needs as they are gathered, operation by operation. `finish` is called once, last. */
export class NeedsDraft {
  readonly people: PersonKey[] = [];
  readonly objects: ObjectKey[] = [];
  readonly #deletedObjects = { objectNames: [] as ObjectName[], objects: [] as ObjectKey[] };
  readonly halves: IdentifierKey[] = [];
  readonly deviceTokens: string[] = [];
  hasReplayed = false;
  changesRelationships = false;
  mergesPeople = false;
  releasesIdentifiers = false;
  #newNumbersMax = 0;
  readonly #attributesOf = new Set<number>();
  readonly #identifiers: NeededIdentifier[] = [];
  readonly #byIdentifier = new IdentifierMap<NeededIdentifier>();
  readonly #links: IdentifierLink[] = [];
  readonly #objectNames = new Map<string, ObjectName>();
  readonly #messageDeliveries = new Map<string, MessageDeliveryKey>();
  readonly #events: EventClaim[] = [];
  readonly #eventIds = new TenantMap<EventClaim>();

  person(environmentId: number, identifier: PersonIdentifier, needsPerson: boolean): void {
    if (identifier.kind === 'svc_id') {
      const personId = personIdOf(identifier.value);
      if (personId !== undefined) this.people.push({ environmentId, personId });
    } else {
      this.identifier(environmentId, identifier.kind, identifier.value, needsPerson);
    }
  }

  identifier(
    environmentId: number,
    kind: StoredIdentifierKind,
    given: string,
    needsPerson: boolean,
  ): void {
    this.#newNumbersMax++;
    const value = storedValue(kind, given);
    const known = this.#byIdentifier.get(environmentId, kind, value);
    if (known) {
      if (needsPerson) known.needsPerson = true;
      return;
    }
    const needed = { environmentId, kind, value, needsPerson };
    this.#byIdentifier.set(environmentId, kind, value, needed);
    this.#identifiers.push(needed);
  }

  /** An event gives a person an anonymous id, under which a later operation may mean them. */
  link(environmentId: number, { kind, value }: PersonIdentifier, anonymousId: string): void {
    this.#links.push({
      person:
        kind === 'svc_id'
          ? undefined
          : identifierText(environmentId, kind, storedValue(kind, value)),
      anonymousId: identifierText(environmentId, 'anonymous_id', anonymousId),
    });
  }

  half(environmentId: number, { kind, value }: PersonIdentifier): void {
    if (kind !== 'svc_id')
      this.halves.push({ environmentId, kind, value: storedValue(kind, value) });
  }

  /** Attributes of a person of the workspace may be written. */
  attributesOf(environmentId: number): void {
    this.#attributesOf.add(environmentId);
  }

  object(environmentId: number, object: ObjectIdentifier, isDeleted = false): void {
    this.#newNumbersMax++;
    if ('svcObjectId' in object) {
      const objectNumber = objectNumberOf(object.svcObjectId);
      if (objectNumber === undefined) return;
      this.objects.push({ environmentId, objectNumber });
      if (isDeleted) this.#deletedObjects.objects.push({ environmentId, objectNumber });
    } else {
      const { objectTypeId, objectId } = object;
      const name = { environmentId, objectTypeId, objectId };
      this.#objectNames.set(objectText(environmentId, objectTypeId, objectId), name);
      if (isDeleted) this.#deletedObjects.objectNames.push(name);
    }
  }

  /** The first of an id is the one that counts. */
  event(operation: TrackEvent | ReportMetric | PublishMessage): void {
    const { environmentId, eventId } = operation;
    if (this.#eventIds.get(environmentId, eventId)) return;
    this.#eventIds.set(environmentId, eventId, operation);
    this.#events.push(operation);
  }

  messageDelivery(environmentId: number, deliveryId: string): void {
    this.#messageDeliveries.set(eventText(environmentId, deliveryId), {
      environmentId,
      deliveryId,
    });
  }

  /** Each identifier, as `identifierText`. */
  names(): readonly string[] {
    return this.#identifiers.map(textOf);
  }

  finish(releasing: ReadonlySet<string>): StateNeeds {
    if (this.#links.length > 0) this.#needLinkedPeople();
    return {
      identifiers: this.#identifiers,
      people: this.people,
      objectNames: [...this.#objectNames.values()],
      objects: this.objects,
      deletedObjects: this.#deletedObjects,
      messageDeliveries: [...this.#messageDeliveries.values()],
      events: this.#events,
      links: this.#links,
      halves: this.halves,
      attributesOf: [...this.#attributesOf],
      hasReplayed: this.hasReplayed,
      changesRelationships: this.changesRelationships,
      deviceTokens: this.deviceTokens,
      mergesPeople: this.mergesPeople,
      releasesIdentifiers: this.releasesIdentifiers,
      releasing,
      newNumbersMax: this.#newNumbersMax,
    };
  }

  #needLinkedPeople(): void {
    const byText = new Map(this.#identifiers.map((each) => [textOf(each), each]));
    for (const { person, anonymousId } of this.#links) {
      const named = person === undefined ? undefined : byText.get(person);
      if (named && byText.get(anonymousId)?.needsPerson === true) named.needsPerson = true;
    }
  }
}

const textOf = ({ environmentId, kind, value }: IdentifierKey): string =>
  identifierText(environmentId, kind, value);
