/** Sample operations for tests, here and of the packages above. Common fields have default values. */
import type { JsonObject } from '../values/json.ts';
import type {
  IdentifyObject,
  IdentifyPerson,
  Operation,
  PersonIdentifier,
  PersonIdentifierKind,
  PublishMessage,
  ReportMetric,
  TrackEvent,
} from '../operations/operation.ts';

/** When the operations were received. */
export const NOW_MS = Date.UTC(2026, 0, 31, 12);
const BASE = { environmentId: 1, receivedAtMs: NOW_MS };
let lastEvent = 0;

/** `id:5`, `email:a@x`, `svc_id:a3000001`, `anonymous_id:z`, `phone:+1`. */
function person(text: string): PersonIdentifier {
  const colon = text.indexOf(':');
  return { kind: text.slice(0, colon) as PersonIdentifierKind, value: text.slice(colon + 1) };
}

export function identify(
  who: string,
  attributes: JsonObject = {},
  more: Partial<IdentifyPerson> = {},
): IdentifyPerson {
  return {
    ...BASE,
    type: 'person.identify',
    person: person(who),
    attributes,
    mayCreate: true,
    ...more,
  };
}

export function track(
  who: string | null,
  name: string,
  more: Partial<TrackEvent> = {},
): TrackEvent {
  return {
    ...BASE,
    type: 'event.track',
    kind: 'event',
    person: who === null ? null : person(who),
    eventId: `event-${++lastEvent}`,
    name,
    data: {},
    occurredAtMs: NOW_MS,
    ...more,
  };
}

export function remove(who: string): Operation {
  return { ...BASE, type: 'person.delete', person: person(who) };
}

export function suppress(who: string): Operation {
  return { ...BASE, type: 'person.suppress', person: person(who) };
}

export function unsuppress(who: string): Operation {
  return { ...BASE, type: 'person.unsuppress', person: person(who) };
}

export function merge(primary: string, secondary: string): Operation {
  return { ...BASE, type: 'person.merge', primary: person(primary), secondary: person(secondary) };
}

export function relate(
  who: string,
  objectId: string,
  attributes: JsonObject = {},
  action: 'add' | 'delete' = 'add',
): Operation {
  const entries = [{ object: { objectTypeId: 1, objectId }, attributes }];
  return { ...BASE, type: 'person.relationships', person: person(who), action, entries };
}

export function relateObject(
  objectId: string,
  who: string,
  attributes: JsonObject = {},
  action: 'add' | 'delete' = 'add',
): Operation {
  const entries = [{ person: person(who), attributes }];
  return {
    ...BASE,
    type: 'object.relationships',
    object: { objectTypeId: 1, objectId },
    action,
    entries,
  };
}

export function identifyObject(
  objectId: string,
  attributes: JsonObject = {},
  more: Partial<IdentifyObject> = {},
): IdentifyObject {
  return {
    ...BASE,
    type: 'object.identify',
    object: { objectTypeId: 1, objectId },
    attributes,
    relationships: [],
    ...more,
  };
}

export function deleteObject(objectId: string): Operation {
  return { ...BASE, type: 'object.delete', object: { objectTypeId: 1, objectId } };
}

export function addDevice(who: string, token: string, attributes: JsonObject = {}): Operation {
  return { ...BASE, type: 'device.add', person: person(who), token, platform: 'ios', attributes };
}

export function deleteDevice(who: string, token: string): Operation {
  return { ...BASE, type: 'device.delete', person: person(who), token };
}

export function segment(
  action: 'add' | 'remove',
  segmentId: number,
  ...people: string[]
): Operation {
  return { ...BASE, type: 'segment.change', action, segmentId, people: people.map(person) };
}

export function metric(
  deliveryId: string,
  name: string,
  more: Partial<ReportMetric> = {},
): ReportMetric {
  const eventId = `event-${++lastEvent}`;
  return {
    ...BASE,
    type: 'metric.report',
    deliveryId,
    metric: name,
    occurredAtMs: NOW_MS,
    eventId,
    ...more,
  };
}

export function publish(eventType: string, more: Partial<PublishMessage> = {}): PublishMessage {
  const eventId = `event-${++lastEvent}`;
  return {
    ...BASE,
    type: 'message.publish',
    eventId,
    eventType,
    payload: {},
    occurredAtMs: NOW_MS,
    ...more,
  };
}

export function unsubscribeDelivery(deliveryId: string): Operation {
  return { ...BASE, type: 'delivery.unsubscribe', deliveryId };
}

export function form(who: string, formId: string, fields: JsonObject): Operation {
  return { ...BASE, type: 'form.submit', formId, person: person(who), fields };
}
