/**
 * Track v2: the meaning of a body is in its `type` and `action` (`ingestion-conventions.md` §2.1).
 *
 * Step 4 of the walk, after `intake/src/auth/rate-limit.ts` and before `intake/src/calls/accept.ts`. See `parse.ts`.
 */
import { isAbsent } from '../value-rules/verdict.ts';
import { OBJECT_CONTROL_KEYS, readAttributes } from '../parsing/read-attributes.ts';
import { readBatch, readBatchInSteps, type BatchItems, type BatchSteps } from '../parsing/batch.ts';
import { PUSH_METRICS, takeMetric } from '../parsing/delivery-metrics.ts';
import {
  isDeviceObject,
  readDeviceToken,
  takeDeviceDeletion,
  takeTrackDevice,
} from '../parsing/devices.ts';
import { readData, readEventId, readEventName, takeEvent } from '../parsing/event-fields.ts';
import { readObjectIdentifiers, readPersonIdentifiers } from '../parsing/identifiers.ts';
import { takeIdentifyPerson } from '../parsing/take-identify-person.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import {
  EVENT_NAME_SIZE_BYTES_MAX,
  PAGE_NAME_SIZE_BYTES_MAX,
  TRACK_BATCH_COUNT_MAX,
  TRACK_BATCH_ITEM_SIZE_BYTES_MAX,
} from '../operations/limits.ts';
import type { ObjectIdentifier, PersonIdentifier, TrackEvent } from '../operations/operation.ts';
import {
  CallDraft,
  fieldIn,
  isBodyObject,
  type ParseContext,
  type Parsed,
} from '../parsing/parse.ts';
import {
  readObjectRelationships,
  readPersonRelationships,
  relationshipsKey,
} from '../parsing/relationships.ts';
import { takeIdentifyObject } from '../parsing/take-identify-object.ts';
import { readTimestamp, takeMerge } from './track-call.ts';

const KNOWN_PERSON = { mayBePhone: true, mayBeAnonymous: false };
const ANY_PERSON = { mayBePhone: true, mayBeAnonymous: true };
const BATCH_BOUNDS = {
  countMax: TRACK_BATCH_COUNT_MAX,
  itemSizeBytesMax: TRACK_BATCH_ITEM_SIZE_BYTES_MAX,
};

/** Cases of `readPersonEntity`; the compiler compares them. */
const PERSON_ACTIONS = [
  'identify',
  'event',
  'page',
  'screen',
  'viewed_content',
  'clicked_content',
  'add_relationships',
  'delete_relationships',
  'merge',
  'delete',
  'suppress',
  'unsuppress',
  'add_device',
  'delete_device',
] as const;
/** Cases of `readObjectEntity`. */
const OBJECT_ACTIONS = [
  'identify',
  'identify_anonymous',
  'delete',
  'add_relationships',
  'delete_relationships',
] as const;

/** `POST /v2/entity` */
export function parseEntity(body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  if (isBodyObject(draft, body)) readEntity(draft, body);
  return draft.finish();
}

/** `POST /v2/batch` */
export function parseTrackBatch(body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  readBatch(draft, body, BATCH_BOUNDS, readEntity);
  return draft.finish();
}

/** As `parseTrackBatch`, for items that are read one by one; see `readBatchInSteps`. */
export const parseTrackBatchInSteps = (
  body: unknown,
  items: BatchItems,
  context: ParseContext,
): BatchSteps =>
  readBatchInSteps(new CallDraft(context, 'track'), body, items, BATCH_BOUNDS, readEntity);

function readEntity(draft: CallDraft, body: JsonObject): void {
  const { type, action } = body;
  if (
    typeof type !== 'string' ||
    typeof action !== 'string' ||
    isAbsent(type) ||
    isAbsent(action)
  ) {
    requireText(draft, type, 'type');
    requireText(draft, action, 'action');
  } else if (type === 'person') {
    readPersonEntity(draft, action, body);
  } else if (type === 'object') {
    readObjectEntity(draft, action, body);
  } else if (type === 'delivery') {
    readDeliveryEntity(draft, action, body);
  } else {
    draft.refuse('unsupported', 'type', 'type must be person, object or delivery', type);
  }
}

function requireText(draft: CallDraft, value: unknown, field: string): void {
  if (isAbsent(value)) draft.refuse('required', field, `${field} is required`);
  else if (typeof value !== 'string')
    draft.refuse('invalid', field, `${field} must be a string`, value);
}

function readPersonEntity(draft: CallDraft, action: string, body: JsonObject): void {
  if (!isOneOf(PERSON_ACTIONS, action))
    return refuseAction(draft, 'a person', PERSON_ACTIONS, action);
  switch (action) {
    case 'identify':
      return readIdentify(draft, body);
    case 'event':
    case 'page':
    case 'screen':
      return readEvent(draft, action, body);
    case 'viewed_content':
    case 'clicked_content':
      return readContentEvent(draft, action, body);
    case 'add_relationships':
    case 'delete_relationships':
      return readPersonRelationshipChange(draft, action, body);
    case 'merge':
      return takeMerge(draft, body);
    case 'delete':
    case 'suppress':
    case 'unsuppress': {
      const person = readPerson(draft, body, KNOWN_PERSON);
      const { environmentId, receivedAtMs } = draft.context;
      if (person) draft.take({ type: `person.${action}`, environmentId, receivedAtMs, person });
      return;
    }
    case 'add_device': {
      const person = readPerson(draft, body, ANY_PERSON);
      if (isDeviceObject(draft, body.device) && person)
        takeTrackDevice(draft, person, body.device, 'token');
      return;
    }
    case 'delete_device': {
      const person = readPerson(draft, body, ANY_PERSON);
      if (!isDeviceObject(draft, body.device)) return;
      const token = readDeviceToken(draft, body.device.token, 'device.token');
      if (person && token !== undefined) takeDeviceDeletion(draft, person, token);
    }
  }
}

function readIdentify(draft: CallDraft, body: JsonObject): void {
  const person = readPerson(draft, body, ANY_PERSON);
  const attributes = readAttributesObject(draft, body);
  const key = relationshipsKey(draft, body, '');
  const entries = readObjectRelationships(draft, body[key], key);
  if (person === undefined || attributes === undefined || entries === undefined) return;
  const relationships = entries.length === 0 ? undefined : { action: 'add' as const, entries };
  takeIdentifyPerson(draft, person, attributes, 'attributes', {
    timestamp: body.timestamp,
    relationships,
  });
}

function readEvent(draft: CallDraft, kind: TrackEvent['kind'], body: JsonObject): void {
  const person = readPerson(draft, body, ANY_PERSON);
  const sizeBytesMax = kind === 'event' ? EVENT_NAME_SIZE_BYTES_MAX : PAGE_NAME_SIZE_BYTES_MAX;
  const name = readEventName(draft, body.name, 'name', sizeBytesMax);
  if (name !== undefined) takeEntityEvent(draft, kind, person, name, body);
}

/**
 * Like Pipelines' 'Report Content Event', it is an ordinary event with the name of its action (`semantic-events.ts`).
 */
function readContentEvent(draft: CallDraft, action: string, body: JsonObject): void {
  takeEntityEvent(draft, 'event', readPerson(draft, body, ANY_PERSON), action, body);
}

function takeEntityEvent(
  draft: CallDraft,
  kind: TrackEvent['kind'],
  person: PersonIdentifier | undefined,
  name: string,
  body: JsonObject,
): void {
  const data = readData(draft, body.attributes, 'attributes');
  const occurredAtMs = readTimestamp(draft, body);
  const eventId = readEventId(draft, body.id, 'id');
  if (person) takeEvent(draft, kind, person, undefined, eventId, name, data, occurredAtMs);
}

function readPersonRelationshipChange(draft: CallDraft, action: string, body: JsonObject): void {
  const person = readPerson(draft, body, KNOWN_PERSON);
  const key = relationshipsKey(draft, body, '');
  const entries = readObjectRelationships(draft, body[key], key);
  if (entries?.length === 0) draft.refuse('required', key, `${key} must hold at least one entry`);
  if (person === undefined || entries === undefined) return;
  const { environmentId, receivedAtMs } = draft.context;
  draft.take({
    type: 'person.relationships',
    environmentId,
    receivedAtMs,
    person,
    action: verbOf(action),
    entries,
  });
}

function readObjectEntity(draft: CallDraft, action: string, body: JsonObject): void {
  if (!isOneOf(OBJECT_ACTIONS, action))
    return refuseAction(draft, 'an object', OBJECT_ACTIONS, action);
  switch (action) {
    case 'identify':
    case 'identify_anonymous':
      return readObjectIdentify(draft, body);
    case 'delete': {
      const object = readObject(draft, body);
      const { environmentId, receivedAtMs } = draft.context;
      if (object) draft.take({ type: 'object.delete', environmentId, receivedAtMs, object });
      return;
    }
    case 'add_relationships':
    case 'delete_relationships': {
      const object = readObject(draft, body);
      const key = relationshipsKey(draft, body, '');
      const entries = readPersonRelationships(draft, body[key], key);
      if (entries?.length === 0)
        draft.refuse('required', key, `${key} must hold at least one entry`);
      if (object === undefined || entries === undefined) return;
      const { environmentId, receivedAtMs } = draft.context;
      const verb = verbOf(action);
      draft.take({
        type: 'object.relationships',
        environmentId,
        receivedAtMs,
        object,
        action: verb,
        entries,
      });
    }
  }
}

function readObjectIdentify(draft: CallDraft, body: JsonObject): void {
  const object = readObject(draft, body);
  const source = readAttributesObject(draft, body);
  const key = relationshipsKey(draft, body, '');
  const relationships = readPersonRelationships(draft, body[key], key);
  if (object === undefined || source === undefined || relationships === undefined) return;
  const attributes = readAttributes(draft, source, 'attributes', OBJECT_CONTROL_KEYS, 'object');
  takeIdentifyObject(draft, object, attributes, relationships, body.timestamp);
}

/** A delivery is reported about by the device that got it, so the channel is push. */
function readDeliveryEntity(draft: CallDraft, action: string, body: JsonObject): void {
  if (action !== 'event') return refuseAction(draft, 'a delivery', ['event'], action);
  const { identifiers } = body;
  const attributes = readAttributesObject(draft, body);
  takeMetric(draft, {
    deliveryId: isJsonObject(identifiers) ? identifiers.id : undefined,
    deliveryIdField: 'identifiers.id',
    metric: body.name,
    metricField: 'name',
    metrics: PUSH_METRICS,
    channel: 'push',
    eventId: readEventId(draft, body.id, 'id'),
    occurredAtMs: readTimestamp(draft, body),
    texts: [['deviceToken', attributes?.device_token, fieldIn('attributes', 'device_token')]],
  });
}

function readPerson(
  draft: CallDraft,
  body: JsonObject,
  kinds: typeof KNOWN_PERSON,
): PersonIdentifier | undefined {
  return readPersonIdentifiers(draft, body.identifiers, 'identifiers', kinds);
}

function readObject(draft: CallDraft, body: JsonObject): ObjectIdentifier | undefined {
  return readObjectIdentifiers(draft, body.identifiers, 'identifiers');
}

/** Null and absent are no attributes. `undefined` after an issue. */
function readAttributesObject(draft: CallDraft, body: JsonObject): JsonObject | undefined {
  const { attributes } = body;
  if (isAbsent(attributes)) return {};
  if (isJsonObject(attributes)) return attributes;
  draft.refuse('invalid', 'attributes', 'attributes must be an object', attributes);
  return undefined;
}

function verbOf(action: string): 'add' | 'delete' {
  return action === 'add_relationships' ? 'add' : 'delete';
}

function isOneOf<Action extends string>(
  actions: readonly Action[],
  action: string,
): action is Action {
  return (actions as readonly string[]).includes(action);
}

function refuseAction(
  draft: CallDraft,
  subject: string,
  actions: readonly string[],
  action: string,
): void {
  const listed = actions.join(', ').replace(/, (?=[^,]*$)/, ' or ');
  const message = `action is not an action of ${subject}; send ${listed}`;
  draft.refuse('unsupported', 'action', message, action);
}
