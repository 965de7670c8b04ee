/** Conditions of the track calls that are commands (`domain/src/pipelines/semantic-events.ts`). */
import { METRICS } from '@sluice/domain/parsing/delivery-metrics';
import {
  DEVICE_TOKEN_SIZE_BYTES_MAX,
  METRIC_TEXT_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import { has, hasAny, ifOneOf, within } from './conditions.ts';
import {
  exactText,
  identifier,
  type JsonSchema,
  notBlank,
  objectTypeId,
  PLATFORM_IN_ANY_CASE,
} from './json-schema.ts';

/** The device in the context, if the call has it itself: in a batch it may be in the batch's context. */
const ownDevice = (...members: readonly ('token' | 'type')[]): JsonSchema => ({
  properties: {
    context: {
      properties: {
        device: {
          type: ['object', 'null'],
          required: members,
          properties: {
            token: {
              ...notBlank(exactText(DEVICE_TOKEN_SIZE_BYTES_MAX)),
              type: ['string', 'number'],
            },
            ...(members.includes('type') && { type: PLATFORM_IN_ANY_CASE }),
          },
        },
      },
    },
  },
});
const METRIC_TEXT = { maxLength: METRIC_TEXT_SIZE_BYTES_MAX };

/** By the name of the event. */
export const COMMANDS: readonly JsonSchema[] = [
  ifOneOf(
    'event',
    [
      'User Deleted',
      'Delete Person',
      'User Suppressed',
      'Suppress Person',
      'User Unsuppressed',
      'Unsuppress Person',
    ],
    has('userId'),
  ),
  ifOneOf('event', ['Device Created or Updated'], ownDevice('token', 'type')),
  ifOneOf('event', ['Device Deleted'], ownDevice('token')),
  ifOneOf(
    'event',
    ['Relationship Deleted', 'Object Deleted'],
    within('properties', {
      ...hasAny('objectId', 'object_id'),
      properties: { object_type_id: objectTypeId },
    }),
  ),
  ifOneOf(
    'event',
    ['Report Delivery Event'],
    within('properties', {
      required: ['deliveryId', 'metric'],
      properties: {
        deliveryId: notBlank(identifier('')),
        metric: { enum: [...METRICS] },
        ...Object.fromEntries(
          ['recipient', 'reason', 'href', 'actionName', 'actionValue'].map((name) => [
            name,
            METRIC_TEXT,
          ]),
        ),
      },
    }),
  ),
];
