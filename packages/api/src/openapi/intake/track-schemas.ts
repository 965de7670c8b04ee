/** Bodies of the Track API v2 as JSON Schema (`domain/src/track/track-v2.ts` reads them). */
import { PUSH_METRICS } from '@sluice/domain/parsing/delivery-metrics';
import { TRACK_BATCH_COUNT_MAX } from '@sluice/domain/operations/limits';
import { OBJECT_CONTROL_KEYS } from '@sluice/domain/parsing/read-attributes';
import { where } from '../../http/conditions.ts';
import { longNamesOfViewsAlone } from './conditions.ts';
import {
  anyObject,
  attributes,
  EVENT_ID,
  EVENT_OR_VIEW_NAME,
  type JsonSchema,
  listOf,
  object,
  oneOf,
  reference,
  UNIX_SECONDS,
} from './json-schema.ts';
import {
  deliveryId,
  device,
  deviceToken,
  metricText,
  part,
  personAttributes,
  relationships,
  TRACK_PARTS,
} from './track-parts.ts';
import { TRACK_V1_SCHEMAS } from './track-v1-schemas.ts';

const entity = (
  type: string,
  actions: readonly string[],
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[],
  more: JsonSchema = {},
): JsonSchema =>
  object(
    { type: { const: type }, action: { enum: actions }, ...properties },
    ['type', 'action', ...required],
    more,
  );

const OF_EVENT = { timestamp: UNIX_SECONDS, id: EVENT_ID };

const ENTITIES: Readonly<Record<string, JsonSchema>> = {
  TrackPersonIdentify: entity(
    'person',
    ['identify'],
    {
      identifiers: part('TrackPerson'),
      attributes: personAttributes(
        '`null` or an empty text removes one. `_update: true` never makes a person; `_timestamp` orders competing writes.',
      ),
      timestamp: UNIX_SECONDS,
      svc_relationships: relationships('TrackObjectRelationship', 0),
    },
    ['identifiers'],
  ),
  TrackPersonEvent: entity(
    'person',
    ['event', 'page', 'screen'],
    {
      name: EVENT_OR_VIEW_NAME,
      ...OF_EVENT,
      identifiers: part('TrackPerson'),
      attributes: anyObject('What happened.'),
    },
    ['identifiers', 'name'],
    where(longNamesOfViewsAlone('action')),
  ),
  TrackPersonContent: entity(
    'person',
    ['viewed_content', 'clicked_content'],
    { ...OF_EVENT, identifiers: part('TrackPerson'), attributes: anyObject('What happened.') },
    ['identifiers'],
  ),
  TrackPersonRemoval: entity(
    'person',
    ['delete', 'suppress', 'unsuppress'],
    { identifiers: part('TrackKnownPerson') },
    ['identifiers'],
  ),
  TrackPersonMerge: entity(
    'person',
    ['merge'],
    { primary: part('TrackMergedPerson'), secondary: part('TrackMergedPerson') },
    ['primary', 'secondary'],
  ),
  TrackPersonDevice: entity(
    'person',
    ['add_device'],
    { identifiers: part('TrackPerson'), device: device('token') },
    ['identifiers', 'device'],
  ),
  TrackPersonDeviceRemoval: entity(
    'person',
    ['delete_device'],
    { identifiers: part('TrackPerson'), device: object({ token: deviceToken }, ['token']) },
    ['identifiers', 'device'],
  ),
  TrackPersonRelationships: entity(
    'person',
    ['add_relationships', 'delete_relationships'],
    {
      identifiers: part('TrackKnownPerson'),
      svc_relationships: relationships('TrackObjectRelationship', 1),
    },
    ['identifiers', 'svc_relationships'],
  ),
  TrackObjectIdentify: entity(
    'object',
    ['identify', 'identify_anonymous'],
    {
      identifiers: part('TrackObject'),
      attributes: attributes('Of the object.', OBJECT_CONTROL_KEYS.size),
      timestamp: UNIX_SECONDS,
      svc_relationships: relationships('TrackPersonRelationship', 0),
    },
    ['identifiers'],
  ),
  TrackObjectRelationships: entity(
    'object',
    ['add_relationships', 'delete_relationships'],
    {
      identifiers: part('TrackObject'),
      svc_relationships: relationships('TrackPersonRelationship', 1),
    },
    ['identifiers', 'svc_relationships'],
  ),
  TrackObjectRemoval: entity('object', ['delete'], { identifiers: part('TrackObject') }, [
    'identifiers',
  ]),
  TrackDelivery: entity(
    'delivery',
    ['event'],
    {
      identifiers: object({ id: deliveryId }, ['id']),
      name: { enum: [...PUSH_METRICS] },
      attributes: {
        ...anyObject('Of any structure.'),
        properties: { device_token: metricText('Of the device that reports.') },
      },
      ...OF_EVENT,
    },
    ['identifiers', 'name'],
  ),
};

export const TRACK_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...TRACK_V1_SCHEMAS,
  ...TRACK_PARTS,
  ...ENTITIES,
  TrackEntity: oneOf(Object.keys(ENTITIES), 'Its `type` and `action` decide its meaning.'),
  TrackBatch: object({ batch: listOf(reference('TrackEntity'), 1, TRACK_BATCH_COUNT_MAX) }, [
    'batch',
  ]),
};
