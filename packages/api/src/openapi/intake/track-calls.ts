/** The calls of the Track API, v1 and v2. */
import {
  DEVICE_TOKEN_SIZE_BYTES_MAX,
  TRACK_BATCH_ITEM_SIZE_BYTES_MAX,
  TRACK_BATCH_SIZE_BYTES_MAX,
  TRACK_REQUEST_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { type IntakeCall, kilobytes } from './intake-call.ts';
import { exactText, identifier, inPath, notBlank, personName } from './json-schema.ts';

const LIMIT = `At most ${kilobytes(TRACK_REQUEST_SIZE_BYTES_MAX)} after decompression.`;

/** Parameters of the paths, by name. */
export const PATH_PARAMETERS: Readonly<Record<string, object>> = Object.fromEntries(
  [
    {
      name: 'identifier',
      in: 'path',
      required: true,
      description: 'An id, an email, or `cio_` and a svc_id. Percent-encoded.',
      schema: inPath(personName('Of a person.')),
      example: 'ada',
    },
    {
      name: 'device_id',
      in: 'path',
      required: true,
      description: 'The push token. Percent-encoded.',
      schema: notBlank(exactText(DEVICE_TOKEN_SIZE_BYTES_MAX, 'Of a device.')),
      example: 'token-1',
    },
    {
      name: 'form_id',
      in: 'path',
      required: true,
      description: 'The form. One that is not known is made.',
      schema: inPath(identifier('Of a form.')),
      example: 'newsletter',
    },
    {
      name: 'segment_id',
      in: 'path',
      required: true,
      description: 'The segment.',
      schema: { type: 'integer', minimum: 1, maximum: INTEGER_MAX },
      example: 7,
    },
    {
      name: 'delivery_id',
      in: 'path',
      required: true,
      description: 'As the link has it. Percent-encoded.',
      schema: inPath(identifier('Of a delivery.')),
      example: 'RPILAgABcRhIBqIAAW==',
    },
  ].map((parameter) => [parameter.name, parameter]),
);

export const TRACK_CALLS: readonly IntakeCall[] = [
  {
    method: 'put',
    path: '/api/v1/customers/{identifier}',
    operationId: 'trackIdentify',
    summary: 'Make or change a person',
    description: LIMIT,
    body: 'TrackAttributes',
    example: { email: 'ada@example.com', plan: 'premium', created_at: 1769860000 },
  },
  {
    method: 'delete',
    path: '/api/v1/customers/{identifier}',
    operationId: 'trackDelete',
    summary: 'Delete a person',
    description: 'A later call makes the person anew.',
  },
  ...(['suppress', 'unsuppress'] as const).map((action): IntakeCall => ({
    method: 'post',
    path: `/api/v1/customers/{identifier}/${action}`,
    operationId: action === 'suppress' ? 'trackSuppress' : 'trackUnsuppress',
    summary:
      action === 'suppress'
        ? 'Delete a person and refuse later calls about them'
        : 'Free the identifiers of a suppressed person',
    description:
      action === 'suppress'
        ? 'Later writes about the identifiers are ignored with 200.'
        : 'Deleted data does not come back.',
  })),
  {
    method: 'put',
    path: '/api/v1/customers/{identifier}/devices',
    operationId: 'trackAddDevice',
    summary: 'Add or change a device of a person',
    description: LIMIT,
    body: 'TrackDevice',
    example: { device: { id: 'token-1', platform: 'ios', attributes: { app_version: '2.0' } } },
  },
  {
    method: 'delete',
    path: '/api/v1/customers/{identifier}/devices/{device_id}',
    operationId: 'trackDeleteDevice',
    summary: 'Remove a device of a person',
    description: 'One that is not there is no error.',
  },
  ...(['post', 'put'] as const).map((method): IntakeCall => ({
    method,
    path: '/api/v1/customers/{identifier}/events',
    operationId: method === 'post' ? 'trackEvent' : 'trackEventByPut',
    summary: 'Report an event of a person',
    description: `${LIMIT} POST and PUT mean the same.`,
    body: 'TrackEvent',
    example: { name: 'order_completed', data: { total: 12 }, timestamp: 1769860000 },
  })),
  {
    method: 'post',
    path: '/api/v1/events',
    operationId: 'trackAnonymousEvent',
    summary: 'Report an event of a visitor',
    description: `Without an \`anonymous_id\` it is an invitation, and \`data.recipient\` is required. ${LIMIT}`,
    body: 'TrackAnonymousEvent',
    example: { name: 'looked', anonymous_id: 'visitor-1', data: { page: 'pricing' } },
  },
  {
    method: 'post',
    path: '/api/v1/merge_customers',
    operationId: 'trackMerge',
    summary: 'Merge two people',
    description: `Without an existing primary the call has no effect. A merge cannot be undone. ${LIMIT}`,
    body: 'TrackMerge',
    example: { primary: { id: 'ada' }, secondary: { email: 'countess@example.com' } },
  },
  {
    method: 'post',
    path: '/api/v1/metrics',
    operationId: 'trackMetric',
    summary: 'Report the outcome of a message',
    description: LIMIT,
    body: 'TrackMetric',
    example: {
      delivery_id: 'RPILAgABcRhIBqIAAW==',
      metric: 'delivered',
      recipient: 'ada@example.com',
      timestamp: 1769860000,
    },
  },
  {
    method: 'post',
    path: '/api/v1/push/events',
    operationId: 'trackPushEvent',
    summary: 'Report the outcome of a push message',
    description: `Of older clients; also at \`/push/events\`. \`metrics\` is the newer call. ${LIMIT}`,
    body: 'TrackPushEvent',
    example: {
      delivery_id: 'RPILAgABcRhIBqIAAW==',
      event: 'opened',
      device_id: 'token-1',
      timestamp: 1769860000,
    },
  },
  {
    method: 'post',
    path: '/api/v1/forms/{form_id}/submit',
    operationId: 'trackForm',
    summary: 'A form that somebody sent',
    description: `The fields become attributes of the person. A form that is not known is made. ${LIMIT}`,
    body: 'TrackForm',
    example: { data: { email: 'ada@example.com', city: 'London' } },
    answer: 204,
  },
  ...(['add', 'remove'] as const).map((action): IntakeCall => ({
    method: 'post',
    path: `/api/v1/segments/{segment_id}/${action}_customers`,
    operationId: action === 'add' ? 'trackAddToSegment' : 'trackRemoveFromSegment',
    summary:
      action === 'add' ? 'Add people to a manual segment' : 'Remove people from a manual segment',
    description: `Identifiers without a matching person are skipped. At most ${kilobytes(TRACK_BATCH_SIZE_BYTES_MAX)} and 10000 values.`,
    body: 'TrackSegmentMembers',
    example: { ids: ['ada'] },
    query: [
      {
        name: 'id_type',
        in: 'query',
        required: false,
        description: 'The kind of all `ids`.',
        schema: { enum: ['id', 'email', 'svc_id', 'cio_id'], default: 'id' },
      },
    ],
  })),
  {
    method: 'post',
    path: '/unsubscribe/{delivery_id}',
    operationId: 'unsubscribe',
    summary: 'The link in a message that unsubscribes its reader',
    description: `The delivery names the person, so no credentials are needed. ${LIMIT}`,
    body: 'TrackUnsubscribe',
    example: { unsubscribe: true },
    isOpen: true,
  },
  {
    method: 'post',
    path: '/api/v2/entity',
    operationId: 'trackEntity',
    summary: 'One change of a person, an object or a delivery',
    description: `${LIMIT} Also at \`/v2/entity\`.`,
    body: 'TrackEntity',
    example: {
      type: 'person',
      action: 'identify',
      identifiers: { id: 'ada' },
      attributes: { plan: 'premium' },
    },
  },
  {
    method: 'post',
    path: '/api/v2/batch',
    operationId: 'trackBatch',
    summary: 'Several changes in one call',
    description: `Items apply in their order; a wrong one costs itself alone and is named in the answer. At most ${kilobytes(TRACK_BATCH_SIZE_BYTES_MAX)}, an item at most ${kilobytes(TRACK_BATCH_ITEM_SIZE_BYTES_MAX)}, the part beside the items 64 KB. Also at \`/v2/batch\`.`,
    body: 'TrackBatch',
    example: {
      batch: [
        {
          type: 'person',
          action: 'identify',
          identifiers: { id: 'ada' },
          attributes: { plan: 'premium' },
        },
        { type: 'person', action: 'event', identifiers: { id: 'ada' }, name: 'order_completed' },
      ],
    },
    answer: 207,
  },
];
