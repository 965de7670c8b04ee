/**
 * The body of an incoming event: the sent data, its person, and the person's attributes for webhooks that ask for them.
 * Pure.
 *
 * `data` nests the client's members (`properties`, `attributes`), so that no name of a client's can replace one of
 * ours: the order of deliveries relies on `identifiers` (`domain/src/delivery/webhook.ts`).
 */
import type { JsonObject } from '../values/json.ts';
import { IMPORT_SOURCE, type PublishMessage, type TrackEvent } from '../operations/operation.ts';
import { LATE_AFTER_MS, type EventArrival } from '../delivery/incoming-subscription.ts';
import type { IncomingEventType } from '../delivery/incoming-event.ts';
import type { ReportingEvent } from '../delivery/reporting-event.ts';
import type { PersonRow } from '../state/loaded-state.ts';
import { svcId } from '../values/svc-id.ts';
import { identifiersOf } from './person-report.ts';

/** A person, with their row where it is known. */
export interface ReportedPerson {
  readonly personId: number;
  /** Undefined: not read, or deleted meanwhile. */
  readonly row: PersonRow | undefined;
}

/** Of calls that have no time of their own. */
export const ON_TIME: EventArrival = { isImported: false, isLate: false };

export function arrivalOf({ source, occurredAtMs, receivedAtMs }: TrackEvent): EventArrival {
  return {
    isImported: source === IMPORT_SOURCE,
    isLate: receivedAtMs - occurredAtMs > LATE_AFTER_MS,
  };
}

/** @param person - undefined for a visitor without a person, or while the person is unknown. */
export function trackedEvent(
  operation: TrackEvent,
  person: ReportedPerson | undefined,
): ReportingEvent {
  const { environmentId, envelopeNumber, eventId, kind, name, occurredAtMs } = operation;
  const named = operation.person;
  const visitor = named?.kind === 'anonymous_id' ? named.value : operation.anonymousId;
  return incomingEvent(
    { environmentId, envelopeNumber, eventId, eventType: kind, metric: name, occurredAtMs },
    person,
    {
      ...(visitor !== undefined && { anonymous_id: visitor }),
      name,
      properties: operation.data,
      ...(operation.source !== undefined && { source: operation.source }),
    },
  );
}

/** About no person; `payload` as sent. */
export function publishedMessage(operation: PublishMessage): ReportingEvent {
  const { environmentId, envelopeNumber, eventId, eventType, occurredAtMs } = operation;
  const { payload, eventTypeVersion, application, channel } = operation;
  return {
    environmentId,
    eventId,
    eventType: 'message',
    objectType: 'message',
    metric: eventType,
    occurredAtMs,
    ...(envelopeNumber !== undefined && { envelopeNumber }),
    data: {
      payload,
      ...(eventTypeVersion !== undefined && { event_type_version: eventTypeVersion }),
      ...(application !== undefined && { application }),
      ...(channel !== undefined && { channel }),
    },
  };
}

interface EventHead extends Pick<
  ReportingEvent,
  'environmentId' | 'eventId' | 'metric' | 'occurredAtMs'
> {
  readonly eventType: IncomingEventType;
  readonly envelopeNumber: number | undefined;
}

/** @param data - the call's data, without its person. */
export function incomingEvent(
  { envelopeNumber, ...head }: EventHead,
  person: ReportedPerson | undefined,
  data: JsonObject,
): ReportingEvent {
  return {
    ...head,
    objectType: head.eventType,
    ...(envelopeNumber !== undefined && { envelopeNumber }),
    ...(person && { personId: person.personId }),
    data: { ...whose(person), ...data },
    ...(person?.row && { content: { person_attributes: attributesOf(person.row) } }),
  };
}

/** As of the reporting events about a person's subscription. */
function whose(person: ReportedPerson | undefined): JsonObject {
  if (!person)
    return { customer_id: '', email_address: '', identifiers: { id: null, email: null } };
  const { personId, row } = person;
  return {
    customer_id: row?.id ?? '',
    email_address: row?.email ?? '',
    identifiers: row ? identifiersOf(row) : { id: null, email: null, svc_id: svcId(personId) },
  };
}

/** All that the person has, the flag too, if it was ever given. */
const attributesOf = ({ attributes, unsubscribed }: PersonRow): JsonObject =>
  unsubscribed === null ? attributes : { ...attributes, unsubscribed };
