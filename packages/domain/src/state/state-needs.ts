/**
 * Draft of the state that operations need: each identifier and object once, however often it is named.
 *
 * Step 9 of the walk. `find-state-needs.ts` fills the draft; `worker/src/events/load-state.ts` loads what it came to.
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

export interface NeededIdentifier extends IdentifierKey {
  /** False if only events name it: they need to know who it is, not how they are. */
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

export interface StateNeeds {
  /** Each once. */
  readonly identifiers: readonly NeededIdentifier[];
  /** People named by svc_id; some may be named twice. */
  readonly people: readonly PersonKey[];
  readonly objectNames: readonly ObjectName[];
  /** Objects named by svc object id; some may be named twice. */
  readonly objects: readonly ObjectKey[];
  readonly messageDeliveries: readonly MessageDeliveryKey[];
  /** Event ids to claim, each once. */
  readonly events: readonly EventClaim[];
  /** What events that name two identifiers make of them. */
  readonly links: readonly IdentifierLink[];
  /** Names of the people whom halves of older intakes are about: the other half must not be applied meanwhile. */
  readonly halves: readonly IdentifierKey[];
  /** Workspaces with people whose attributes may be written, each once. */
  readonly attributesOf: readonly number[];
  /** Calls that waited in a disk buffer are among them: whoever they name may have been deleted since. */
  readonly hasReplayed: boolean;
  readonly changesRelationships: boolean;
  /** Of the devices that are added or deleted; some may be named twice. */
  readonly deviceTokens: readonly string[];
  readonly mergesPeople: boolean;
  /** Identifiers that no operation names may be given up; other transactions that hold them must be waited for. */
  readonly releasesIdentifiers: boolean;
  /** Of whom: the names of people who may give up identifiers or be merged, as `identifierText`; beside all of `people`. */
  readonly releasing: ReadonlySet<string>;
  /** How many people and objects can be new, at most. */
  readonly newNumbersMax: number;
}

/** Needs as they are gathered, operation by operation. `finish` is called once, last. */
export class NeedsDraft {
  readonly people: PersonKey[] = [];
  readonly objects: ObjectKey[] = [];
  readonly halves: IdentifierKey[] = [];
  readonly deviceTokens: string[] = [];
  hasReplayed = false;
  changesRelationships = false;
  mergesPeople = false;
  releasesIdentifiers = false;
  #newNumbersMax = 0;
  readonly #attributesOf = new Set<number>();
  readonly #identifiers = new Map<string, NeededIdentifier>();
  readonly #links: IdentifierLink[] = [];
  readonly #objectNames = new Map<string, ObjectName>();
  readonly #messageDeliveries = new Map<string, MessageDeliveryKey>();
  readonly #events = new Map<string, EventClaim>();

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
    const text = identifierText(environmentId, kind, value);
    const known = this.#identifiers.get(text);
    if (!known) this.#identifiers.set(text, { environmentId, kind, value, needsPerson });
    else if (needsPerson) known.needsPerson = true;
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

  object(environmentId: number, object: ObjectIdentifier): void {
    this.#newNumbersMax++;
    if ('svcObjectId' in object) {
      const objectNumber = objectNumberOf(object.svcObjectId);
      if (objectNumber !== undefined) this.objects.push({ environmentId, objectNumber });
    } else {
      const { objectTypeId, objectId } = object;
      this.#objectNames.set(objectText(environmentId, objectTypeId, objectId), {
        environmentId,
        objectTypeId,
        objectId,
      });
    }
  }

  /** The first of an id is the one that counts. */
  event(operation: TrackEvent | ReportMetric | PublishMessage): void {
    const { environmentId, eventId, receivedAtMs } = operation;
    const text = eventText(environmentId, eventId);
    if (!this.#events.has(text))
      this.#events.set(text, {
        environmentId,
        eventId,
        receivedAtMs,
        source: operation.source ?? null,
        envelopeNumber: operation.envelopeNumber ?? null,
      });
  }

  messageDelivery(environmentId: number, deliveryId: string): void {
    this.#messageDeliveries.set(eventText(environmentId, deliveryId), {
      environmentId,
      deliveryId,
    });
  }

  /** Each identifier, as `identifierText`. */
  names(): readonly string[] {
    return [...this.#identifiers.keys()];
  }

  finish(releasing: ReadonlySet<string>): StateNeeds {
    for (const { person, anonymousId } of this.#links) {
      const named = person === undefined ? undefined : this.#identifiers.get(person);
      if (named && this.#identifiers.get(anonymousId)?.needsPerson === true)
        named.needsPerson = true;
    }
    return {
      identifiers: [...this.#identifiers.values()],
      people: this.people,
      objectNames: [...this.#objectNames.values()],
      objects: this.objects,
      messageDeliveries: [...this.#messageDeliveries.values()],
      events: [...this.#events.values()],
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
}
