/** Bodies of the Pipelines API, as JSON Schema (`domain/src/pipelines/` reads them). */
import { PIPELINES_BATCH_COUNT_MAX } from '@sluice/domain/operations/limits';
import {
  anonymousId,
  anyObject,
  EVENT_ID,
  EVENT_NAME,
  identifier,
  ISO_TIME,
  type JsonSchema,
  listOf,
  object,
  reference,
  VIEW_NAME,
} from './json-schema.ts';

const COMMON = {
  userId: {
    ...identifier('An id or an email. A value in the form of an email is an email.'),
    type: ['string', 'number', 'null'],
  },
  anonymousId,
  messageId: EVENT_ID,
  timestamp: ISO_TIME,
  originalTimestamp: { ...ISO_TIME, description: 'When it happened, by the clock of the sender.' },
  sentAt: { ...ISO_TIME, description: 'When it was sent, by the clock of the sender.' },
  context: anyObject(
    'The context of the call. `context.device` and, without `traits`, `context.traits` are read.',
  ),
  integrations: anyObject('Taken and not read.'),
  writeKey: { type: 'string', description: 'In place of the header, as browsers send it.' },
} satisfies Record<string, JsonSchema>;

/** A person by `userId`, or a visitor by `anonymousId`. */
const SOMEBODY = {
  anyOf: [
    object({ userId: COMMON.userId }, ['userId']),
    object({ anonymousId: COMMON.anonymousId }, ['anonymousId']),
  ],
};

const IDENTIFY = {
  traits: anyObject(
    'Attributes. `email` identifies too. `null` removes one. `unsubscribed`, `created_at` and `createdAt` have their own meaning.',
  ),
};
const TRACK = {
  event: {
    ...EVENT_NAME,
    description:
      'Commands: `User Deleted`, `User Suppressed`, `User Unsuppressed`, `Device Created or Updated`, `Device Deleted`, `Relationship Deleted`, `Object Deleted`, `Report Delivery Event`.',
  },
  properties: anyObject('Of any structure, at most 100 levels deep.'),
};
const VIEW = {
  name: VIEW_NAME,
  category: { type: 'string', description: 'Becomes `properties.category` if that is absent.' },
  properties: anyObject('Of any structure, at most 100 levels deep.'),
};
const GROUP = {
  groupId: identifier('The object.'),
  traits: anyObject(
    'Attributes of the object. `object_type_id` is its type, 1 by default; `relationship_traits` are attributes of the relationship.',
  ),
};
const ALIAS = {
  previousId: identifier(
    'The person, or the visitor, who becomes part of `userId`. Absent: the `anonymousId` of the call.',
  ),
};

const CALLS = {
  identify: { own: IDENTIFY, required: [] },
  track: { own: TRACK, required: ['event'] },
  page: { own: VIEW, required: [] },
  screen: { own: VIEW, required: [] },
  group: { own: GROUP, required: ['groupId'] },
  alias: { own: ALIAS, required: ['userId'] },
} as const;

const nameOf = (type: string): string => `Pipelines${type.charAt(0).toUpperCase()}${type.slice(1)}`;

/** An item of a batch or a line of a stream, with the kind of call in it. */
const itemOf = (type: keyof typeof CALLS): JsonSchema => ({
  allOf: [reference(nameOf(type))],
  ...object({ type: { const: type } }, ['type']),
});

function schemaOf(type: keyof typeof CALLS): JsonSchema {
  const { own, required } = CALLS[type];
  const call = object({ ...COMMON, ...own }, required);
  // A group may be of an object alone.
  return type === 'group' ? call : { allOf: [call, SOMEBODY] };
}

const TYPES = Object.keys(CALLS) as (keyof typeof CALLS)[];

export const PIPELINES_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(TYPES.map((type) => [nameOf(type), schemaOf(type)])),
  PipelinesItem: {
    description: 'A call with its `type`.',
    oneOf: TYPES.map(itemOf),
  },
  PipelinesBatch: object(
    {
      batch: listOf(reference('PipelinesItem'), 1, PIPELINES_BATCH_COUNT_MAX),
      context: anyObject('Of every item without a `context`.'),
      sentAt: COMMON.sentAt,
      writeKey: COMMON.writeKey,
    },
    ['batch'],
  ),
};
