/** Bodies of the Track API as JSON Schema. Of v1 and v2; `domain/src/track/` reads them. */
import {
  ATTRIBUTE_COUNT_MAX,
  DEVICE_TOKEN_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
  METRIC_TEXT_SIZE_BYTES_MAX,
  PAGE_NAME_SIZE_BYTES_MAX,
  SEGMENT_MEMBER_COUNT_MAX,
  TRACK_BATCH_COUNT_MAX,
} from '@sluice/domain/operations/limits';
import {
  anonymousId,
  anyObject,
  attributes,
  email,
  EVENT_ID,
  EVENT_NAME,
  identifier,
  type JsonSchema,
  listOf,
  object,
  oneOf,
  reference,
  text,
  UNIX_SECONDS,
} from './json-schema.ts';

const personIdentifiers = (
  names: readonly ('id' | 'email' | 'phone' | 'svc_id' | 'anonymous_id')[],
) => {
  const all = {
    id: identifier('The id.'),
    email: email(),
    phone: {
      type: 'string',
      pattern: '^\\+[1-9]\\d{1,14}$',
      description: 'E.164, if the workspace allows phone numbers to identify.',
    },
    svc_id: text(ID_SIZE_BYTES_MAX, 'The id that Sluice gave.'),
    anonymous_id: anonymousId,
  };
  return {
    ...object(Object.fromEntries(names.map((name) => [name, all[name]]))),
    minProperties: 1,
    maxProperties: 1,
    description: 'Exactly one of them.',
  };
};

const KNOWN_PERSON = personIdentifiers(['id', 'email', 'phone', 'svc_id']);
const ANY_PERSON = personIdentifiers(['id', 'email', 'phone', 'svc_id', 'anonymous_id']);
const SIDE_OF_MERGE = personIdentifiers(['id', 'email', 'svc_id']);
const OBJECT_IDENTIFIERS = object(
  { object_type_id: identifier('A positive whole number.'), object_id: identifier('The object.') },
  ['object_type_id', 'object_id'],
);
const relationship = (identifiers: JsonSchema): JsonSchema =>
  object({ identifiers, relationship_attributes: attributes('Of the relationship.') }, [
    'identifiers',
  ]);
const relationships = (identifiers: JsonSchema, countMin: number): JsonSchema => ({
  type: 'array',
  minItems: countMin,
  items: relationship(identifiers),
});

const device = (id: 'id' | 'token'): JsonSchema =>
  object(
    {
      [id]: text(DEVICE_TOKEN_SIZE_BYTES_MAX, 'The push token.'),
      platform: { enum: ['ios', 'android'] },
      last_used: UNIX_SECONDS,
      attributes: attributes('Of the device.'),
    },
    [id, 'platform'],
  );

const PERSON_ATTRIBUTES = attributes(
  '`null` or an empty text removes one. `_update: true` never makes a person; `_timestamp` orders competing writes.',
);
const EVENT = {
  name: EVENT_NAME,
  timestamp: UNIX_SECONDS,
  id: EVENT_ID,
};
const metricText = (description: string) => text(METRIC_TEXT_SIZE_BYTES_MAX, description);

const V1: Readonly<Record<string, JsonSchema>> = {
  TrackAttributes: {
    ...object({
      email: email('Identifies too. Letter case does not count.'),
      anonymous_id: anonymousId,
      svc_relationships: object(
        {
          action: { enum: ['add_relationships', 'delete_relationships'] },
          relationships: relationships(OBJECT_IDENTIFIERS, 0),
        },
        ['action', 'relationships'],
      ),
      _update: { type: 'boolean', description: 'True never makes a person.' },
      _timestamp: {
        ...UNIX_SECONDS,
        description: 'If it is older than the stored values, the attributes are skipped.',
      },
    }),
    additionalProperties: true,
    maxProperties: ATTRIBUTE_COUNT_MAX + 5,
    description: 'Attributes as direct key-value pairs.',
  },
  TrackEvent: object(
    {
      ...EVENT,
      type: { enum: ['event', 'page', 'screen'], description: '`event` by default.' },
      name: { ...EVENT_NAME, maxLength: PAGE_NAME_SIZE_BYTES_MAX },
      data: anyObject(
        'Of any structure. `recipient`, `from_address` and `reply_to` are of emails.',
      ),
      anonymous_id: anonymousId,
    },
    ['name'],
  ),
  TrackDevice: object({ device: device('id') }, ['device']),
  TrackMerge: object({ primary: SIDE_OF_MERGE, secondary: SIDE_OF_MERGE }, [
    'primary',
    'secondary',
  ]),
  TrackMetric: object(
    {
      delivery_id: text(ID_SIZE_BYTES_MAX),
      metric: {
        enum: [
          'bounced',
          'clicked',
          'converted',
          'deferred',
          'delivered',
          'dropped',
          'opened',
          'spammed',
        ],
      },
      timestamp: UNIX_SECONDS,
      recipient: metricText('Of a message whose delivery is not known yet: to whom it went.'),
      reason: metricText('Why it failed.'),
      href: metricText('The clicked link.'),
    },
    ['delivery_id', 'metric'],
  ),
  TrackPushEvent: object(
    {
      delivery_id: text(ID_SIZE_BYTES_MAX),
      event: { enum: ['opened', 'converted', 'delivered'] },
      device_id: metricText('The push token.'),
      timestamp: UNIX_SECONDS,
    },
    ['delivery_id', 'event'],
  ),
  TrackForm: object(
    {
      data: {
        ...object({ id: identifier('The id.'), email: email() }),
        additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
        maxProperties: ATTRIBUTE_COUNT_MAX + 2,
        description: 'The fields. One of `id` and `email` names the person.',
      },
    },
    ['data'],
  ),
  TrackSegmentMembers: object(
    { ids: listOf(identifier('Of the kind in `id_type`.'), 1, SEGMENT_MEMBER_COUNT_MAX) },
    ['ids'],
  ),
  TrackUnsubscribe: object({ unsubscribe: { const: true } }, ['unsubscribe']),
};

const entity = (
  type: string,
  actions: readonly string[],
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[],
): JsonSchema =>
  object({ type: { const: type }, action: { enum: actions }, ...properties }, [
    'type',
    'action',
    ...required,
  ]);

const ENTITIES: Readonly<Record<string, JsonSchema>> = {
  TrackPersonIdentify: entity(
    'person',
    ['identify'],
    {
      identifiers: ANY_PERSON,
      attributes: PERSON_ATTRIBUTES,
      timestamp: UNIX_SECONDS,
      svc_relationships: relationships(OBJECT_IDENTIFIERS, 0),
    },
    ['identifiers'],
  ),
  TrackPersonEvent: entity(
    'person',
    ['event', 'page', 'screen'],
    {
      ...EVENT,
      name: { ...EVENT_NAME, maxLength: PAGE_NAME_SIZE_BYTES_MAX },
      identifiers: ANY_PERSON,
      attributes: anyObject('What happened.'),
    },
    ['identifiers', 'name'],
  ),
  TrackPersonRemoval: entity(
    'person',
    ['delete', 'suppress', 'unsuppress'],
    { identifiers: KNOWN_PERSON },
    ['identifiers'],
  ),
  TrackPersonMerge: entity(
    'person',
    ['merge'],
    { primary: SIDE_OF_MERGE, secondary: SIDE_OF_MERGE },
    ['primary', 'secondary'],
  ),
  TrackPersonDevice: entity(
    'person',
    ['add_device'],
    { identifiers: ANY_PERSON, device: device('token') },
    ['identifiers', 'device'],
  ),
  TrackPersonDeviceRemoval: entity(
    'person',
    ['delete_device'],
    {
      identifiers: ANY_PERSON,
      device: object({ token: text(DEVICE_TOKEN_SIZE_BYTES_MAX, 'The push token.') }, ['token']),
    },
    ['identifiers', 'device'],
  ),
  TrackPersonRelationships: entity(
    'person',
    ['add_relationships', 'delete_relationships'],
    { identifiers: KNOWN_PERSON, svc_relationships: relationships(OBJECT_IDENTIFIERS, 1) },
    ['identifiers', 'svc_relationships'],
  ),
  TrackObjectIdentify: entity(
    'object',
    ['identify', 'identify_anonymous'],
    {
      identifiers: OBJECT_IDENTIFIERS,
      attributes: attributes('Of the object.'),
      timestamp: UNIX_SECONDS,
      svc_relationships: relationships(ANY_PERSON, 0),
    },
    ['identifiers'],
  ),
  TrackObjectRelationships: entity(
    'object',
    ['add_relationships', 'delete_relationships'],
    { identifiers: OBJECT_IDENTIFIERS, svc_relationships: relationships(KNOWN_PERSON, 1) },
    ['identifiers', 'svc_relationships'],
  ),
  TrackObjectRemoval: entity('object', ['delete'], { identifiers: OBJECT_IDENTIFIERS }, [
    'identifiers',
  ]),
  TrackDelivery: entity(
    'delivery',
    ['event'],
    {
      identifiers: object({ id: text(ID_SIZE_BYTES_MAX) }, ['id']),
      name: { enum: ['opened', 'converted', 'delivered'] },
      attributes: anyObject('`device_token`: the device that reports.'),
      timestamp: UNIX_SECONDS,
    },
    ['identifiers', 'name'],
  ),
};

export const TRACK_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...V1,
  ...ENTITIES,
  TrackEntity: oneOf(Object.keys(ENTITIES), 'Its `type` and `action` decide its meaning.'),
  TrackBatch: object({ batch: listOf(reference('TrackEntity'), 1, TRACK_BATCH_COUNT_MAX) }, [
    'batch',
  ]),
};
