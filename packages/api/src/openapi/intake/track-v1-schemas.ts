/** Bodies of the Track API v1 (`domain/src/track/track-v1*.ts` read them). */
import { METRICS, PUSH_METRICS } from '@sluice/domain/parsing/delivery-metrics';
import { MESSAGE_CHANNELS } from '@sluice/domain/delivery/reporting-event';
import { ATTRIBUTE_COUNT_MAX, SEGMENT_MEMBER_COUNT_MAX } from '@sluice/domain/operations/limits';
import { where } from '../../http/conditions.ts';
import { has, hasExactlyOne, longNamesOfViewsAlone, within } from './conditions.ts';
import {
  anonymousId,
  anyObject,
  email,
  EVENT_ID,
  EVENT_OR_VIEW_NAME,
  identifier,
  type JsonSchema,
  listOf,
  notBlank,
  object,
  personName,
  reference,
  UNIX_SECONDS,
} from './json-schema.ts';
import {
  deliveryId,
  device,
  metricText,
  NAMING_ATTRIBUTES,
  part,
  personAttributes,
  relationships,
} from './track-parts.ts';

export const TRACK_V1_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  TrackAttributes: {
    ...personAttributes('Attributes as direct key-value pairs.'),
    type: 'object',
    properties: {
      ...NAMING_ATTRIBUTES,
      anonymous_id: anonymousId,
      svc_relationships: object(
        {
          action: { enum: ['add_relationships', 'delete_relationships'] },
          relationships: relationships('TrackObjectRelationship', 0),
        },
        ['action'],
      ),
      _update: { type: 'boolean', description: 'True never makes a person.' },
      _timestamp: {
        ...UNIX_SECONDS,
        description: 'If it is older than the stored values, the attributes are skipped.',
      },
    },
  },
  TrackEvent: object(
    {
      name: EVENT_OR_VIEW_NAME,
      timestamp: UNIX_SECONDS,
      id: EVENT_ID,
      type: { enum: ['event', 'page', 'screen'], description: '`event` by default.' },
      data: anyObject(
        'Of any structure. `recipient`, `from_address` and `reply_to` are of emails.',
      ),
      anonymous_id: anonymousId,
    },
    ['name'],
    where(longNamesOfViewsAlone('type')),
  ),
  TrackAnonymousEvent: {
    description: 'Of a visitor, or an invitation to `data.recipient`.',
    allOf: [reference('TrackEvent')],
    ...where({ anyOf: [has('anonymous_id'), within('data', has('recipient'))] }),
  },
  TrackDevice: object({ device: device('id') }, ['device']),
  TrackMerge: object({ primary: part('TrackMergedPerson'), secondary: part('TrackMergedPerson') }, [
    'primary',
    'secondary',
  ]),
  TrackMetric: object(
    {
      delivery_id: deliveryId,
      metric: { enum: [...METRICS] },
      channel: { enum: MESSAGE_CHANNELS, description: 'Of the message.' },
      timestamp: UNIX_SECONDS,
      recipient: metricText('Of a message whose delivery is not known yet: to whom it went.'),
      reason: metricText('Why it failed.'),
      href: metricText('The clicked link.'),
      metadata: object({
        action_name: metricText('Of a click in an app.'),
        action_value: metricText('Of a click in an app.'),
      }),
    },
    ['delivery_id', 'metric'],
  ),
  TrackPushEvent: object(
    {
      delivery_id: deliveryId,
      event: { enum: [...PUSH_METRICS] },
      device_id: metricText('The push token.'),
      timestamp: UNIX_SECONDS,
    },
    ['delivery_id', 'event'],
  ),
  TrackForm: object(
    {
      data: {
        ...object({ id: identifier('The id.'), email: email(), anonymous_id: anonymousId }),
        additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
        description: `The fields, at most ${ATTRIBUTE_COUNT_MAX} with a value. Exactly one of \`id\` and \`email\` names the person.`,
        ...where(hasExactlyOne([['id'], ['email']])),
      },
    },
    ['data'],
  ),
  TrackSegmentMembers: object(
    {
      ids: listOf(notBlank(personName('Of the kind in `id_type`.')), 1, SEGMENT_MEMBER_COUNT_MAX),
    },
    ['ids'],
  ),
  TrackUnsubscribe: object({ unsubscribe: { const: true } }, ['unsubscribe']),
};
