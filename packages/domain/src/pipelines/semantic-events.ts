/**
 * Pipelines track calls whose name is a command (`ingestion-webhooks.md` §6, `ingestion-conventions.md` §3.4). Names
 * that the specification uses only in passing are synonyms.
 *
 * Commands about people, objects, relationships and deliveries replace the event. The mobile lifecycle events
 * (Application …) stay events and change the device beside it: campaigns start from them, and the field's own mapping
 * sends both.
 *
 * 'Report Content Event' becomes an ordinary event with the name of its action (`viewed_content`, `clicked_content`),
 * like Track v2's actions of those names. It names no delivery, and no reporting webhook has a type for it. So a metric
 * would be a fact that no client could read.
 */
import { isAbsent } from '../value-rules/verdict.ts';
import { joinAttributes, readOptionalAttributes } from '../parsing/read-attributes.ts';
import { takeMetric } from '../parsing/delivery-metrics.ts';
import {
  platformOf,
  readDeviceToken,
  readPlatform,
  takeDevice,
  takeDeviceDeletion,
} from '../parsing/devices.ts';
import { readEventId } from '../parsing/event-fields.ts';
import { readObjectId, readObjectTypeId } from '../parsing/identifiers.ts';
import { isJsonObject, setKey, type Json, type JsonObject } from '../values/json.ts';
import type { ObjectIdentifier, PersonIdentifier } from '../operations/operation.ts';
import type { CallDraft } from '../parsing/parse.ts';

/** A track call whose ids, name and time are read. */
export interface TrackCall {
  readonly call: JsonObject;
  /** The batch around it, whose context holds for every item. */
  readonly batch: JsonObject | undefined;
  /** Empty if they are null or absent. */
  readonly properties: JsonObject;
  /** From userId. */
  readonly person: PersonIdentifier | undefined;
  readonly anonymousId: string | undefined;
  readonly occurredAtMs: number;
}

type Command = (draft: CallDraft, track: TrackCall) => void;

/** Commands by event name: they replace the event. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['User Deleted', (draft, track) => takePersonCommand(draft, track, 'person.delete')],
  ['Delete Person', (draft, track) => takePersonCommand(draft, track, 'person.delete')],
  ['User Suppressed', (draft, track) => takePersonCommand(draft, track, 'person.suppress')],
  ['Suppress Person', (draft, track) => takePersonCommand(draft, track, 'person.suppress')],
  ['User Unsuppressed', (draft, track) => takePersonCommand(draft, track, 'person.unsuppress')],
  ['Unsuppress Person', (draft, track) => takePersonCommand(draft, track, 'person.unsuppress')],
  ['Device Created or Updated', addDevice],
  ['Device Deleted', deleteDevice],
  ['Relationship Deleted', deleteRelationship],
  ['Object Deleted', deleteObject],
  ['Report Delivery Event', reportDelivery],
]);

/** Mobile lifecycle events, each with its effect besides the event, if it names a device. */
export const LIFECYCLE_EVENTS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['Application Installed', addLifecycleDevice],
  ['Application Opened', addLifecycleDevice],
  ['Application Uninstalled', deleteLifecycleDevice],
]);

const CONTENT_EVENT = 'Report Content Event';

/** Every name by which a track call is more, or other, than the event it names. */
export const SEMANTIC_EVENT_NAMES: readonly string[] = [
  ...COMMANDS.keys(),
  ...LIFECYCLE_EVENTS.keys(),
  CONTENT_EVENT,
];

/** The name and data of a content event; `undefined` if the call does not have them. */
export function readContentEvent(
  properties: JsonObject,
): { name: string; data: JsonObject } | undefined {
  const { actionType } = properties;
  if (actionType !== 'viewed_content' && actionType !== 'clicked_content') return undefined;
  return { name: actionType, data: without(properties, ['actionType']) };
}

function takePersonCommand(
  draft: CallDraft,
  track: TrackCall,
  type: 'person.delete' | 'person.suppress' | 'person.unsuppress',
): void {
  const person = requirePerson(draft, track);
  const { environmentId, receivedAtMs } = draft.context;
  if (person) draft.take({ type, environmentId, receivedAtMs, person });
}

/** Also of a visitor: a push token is given before anybody logs in. */
function addDevice(draft: CallDraft, track: TrackCall): void {
  const person = personOf(track) ?? requirePerson(draft, track);
  const device = requireContextDevice(draft, track);
  if (device === undefined) return;
  const token = readDeviceToken(draft, device.token, 'context.device.token');
  const platform = readPlatform(draft, device.type, 'context.device.type');
  const attributes = readDeviceAttributes(draft, device, track.properties);
  if (person && token !== undefined && platform !== undefined) {
    takeDevice(draft, person, token, platform, track.occurredAtMs, attributes);
  }
}

function deleteDevice(draft: CallDraft, track: TrackCall): void {
  const person = personOf(track) ?? requirePerson(draft, track);
  const device = requireContextDevice(draft, track);
  if (device === undefined) return;
  const token = readDeviceToken(draft, device.token, 'context.device.token');
  if (person && token !== undefined) takeDeviceDeletion(draft, person, token);
}

/** Without a complete device it is still an event. */
function addLifecycleDevice(draft: CallDraft, track: TrackCall): void {
  const device = lifecycleDevice(draft, track);
  const person = personOf(track);
  if (person === undefined || device === undefined) return;
  const platform = platformOf(device.type);
  if (platform === undefined) {
    if (isAbsent(device.type)) return;
    const problem = 'context.device.type is neither ios nor android; the device is left out';
    draft.warn('value_not_understood', 'context.device.type', problem, device.type);
    return;
  }
  const token = readDeviceToken(draft, device.token, 'context.device.token');
  if (token === undefined) return;
  // The properties are the event's own here: only the context's data are about the device.
  const attributes = readDeviceAttributes(draft, device, {});
  takeDevice(draft, person, token, platform, track.occurredAtMs, attributes);
}

function deleteLifecycleDevice(draft: CallDraft, track: TrackCall): void {
  const device = lifecycleDevice(draft, track);
  const person = personOf(track);
  if (person === undefined || device === undefined) return;
  const token = readDeviceToken(draft, device.token, 'context.device.token');
  if (token !== undefined) takeDeviceDeletion(draft, person, token);
}

/** The object's side of it, so that it keeps its place among the calls about that object (`shard.ts`). */
function deleteRelationship(draft: CallDraft, track: TrackCall): void {
  const object = readObject(draft, track.properties);
  const person = personOf(track);
  const { environmentId, receivedAtMs } = draft.context;
  if (object === undefined || person === undefined) return;
  const entries = [{ person, attributes: {} }];
  draft.take({
    type: 'object.relationships',
    environmentId,
    receivedAtMs,
    object,
    action: 'delete',
    entries,
  });
}

function deleteObject(draft: CallDraft, track: TrackCall): void {
  const object = readObject(draft, track.properties);
  const { environmentId, receivedAtMs } = draft.context;
  if (object) draft.take({ type: 'object.delete', environmentId, receivedAtMs, object });
}

function reportDelivery(draft: CallDraft, track: TrackCall): void {
  const { properties } = track;
  takeMetric(draft, {
    deliveryId: properties.deliveryId,
    deliveryIdField: 'properties.deliveryId',
    metric: properties.metric,
    metricField: 'properties.metric',
    eventId: readEventId(draft, track.call.messageId, 'messageId'),
    occurredAtMs: track.occurredAtMs,
    texts: [
      ['recipient', properties.recipient, 'properties.recipient'],
      ['reason', properties.reason, 'properties.reason'],
      ['href', properties.href, 'properties.href'],
      ['actionName', properties.actionName, 'properties.actionName'],
      ['actionValue', properties.actionValue, 'properties.actionValue'],
    ],
  });
}

function requirePerson(draft: CallDraft, track: TrackCall): PersonIdentifier | undefined {
  if (track.person === undefined)
    draft.refuse('required', 'userId', 'userId is required for this event');
  return track.person;
}

/** The person that the call names; a visitor if it has no `userId`. */
function personOf({ person, anonymousId }: TrackCall): PersonIdentifier | undefined {
  return (
    person ?? (anonymousId === undefined ? undefined : { kind: 'anonymous_id', value: anonymousId })
  );
}

/** The call's data about its device, else the batch's. */
function contextDevice({ call, batch }: TrackCall): unknown {
  const own = deviceOf(call.context);
  return isAbsent(own) ? deviceOf(batch?.context) : own;
}

const deviceOf = (context: unknown): unknown =>
  isJsonObject(context) ? context.device : undefined;

function requireContextDevice(draft: CallDraft, track: TrackCall): JsonObject | undefined {
  const device = contextDevice(track);
  if (isJsonObject(device)) return device;
  if (isAbsent(device))
    draft.refuse('required', 'context.device', 'context.device is required for this event');
  else draft.refuse('invalid', 'context.device', 'context.device must be an object', device);
  return undefined;
}

/** A device with a token. Without one the event is not about a device; a device of another shape is an issue. */
function lifecycleDevice(draft: CallDraft, track: TrackCall): JsonObject | undefined {
  const device = contextDevice(track);
  if (isAbsent(device)) return undefined;
  const isObject = isJsonObject(device);
  if (isObject && isAbsent(device.token)) return undefined;
  if (isObject && (typeof device.token === 'string' || typeof device.token === 'number'))
    return device;
  const field = isObject ? 'context.device.token' : 'context.device';
  const problem = `${field} must be ${isObject ? 'a string' : 'an object'}; the device is left out`;
  draft.warn('value_not_understood', field, problem, isObject ? device.token : device);
  return undefined;
}

function readDeviceAttributes(
  draft: CallDraft,
  device: JsonObject,
  properties: JsonObject,
): JsonObject {
  const own = readOptionalAttributes(
    draft,
    without(device, ['token', 'type', '_last_status']),
    'context.device',
  );
  const given = readOptionalAttributes(draft, without(properties, ['_last_status']), 'properties');
  return joinAttributes(draft, own, given, 'context.device');
}

function readObject(draft: CallDraft, properties: JsonObject): ObjectIdentifier | undefined {
  const idKey =
    isAbsent(properties.objectId) && !isAbsent(properties.object_id) ? 'object_id' : 'objectId';
  const typeKey = isAbsent(properties.object_type_id) ? 'objectTypeId' : 'object_type_id';
  const objectId = readObjectId(draft, properties[idKey], `properties.${idKey}`);
  const objectTypeId = readObjectTypeId(draft, properties[typeKey], `properties.${typeKey}`) ?? 1;
  return objectId === undefined ? undefined : { objectTypeId, objectId };
}

function without(source: JsonObject, keys: readonly string[]): JsonObject {
  const rest: JsonObject = {};
  for (const key in source) {
    if (!keys.includes(key)) setKey(rest, key, source[key] as Json);
  }
  return rest;
}
