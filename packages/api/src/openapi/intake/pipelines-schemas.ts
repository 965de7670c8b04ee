/** Bodies of the Pipelines API, as JSON Schema (`domain/src/pipelines/` reads them). */
import {
  ATTRIBUTE_COUNT_MAX,
  EVENT_NAME_SIZE_BYTES_MAX,
  PIPELINES_BATCH_COUNT_MAX,
} from '@sluice/domain/operations/limits';
import { where } from '../../http/conditions.ts';
import { has, within } from './conditions.ts';
import {
  ADDRESS,
  anonymousId,
  anyObject,
  emailAttribute,
  EVENT_ID,
  EVENT_NAME,
  identifier,
  ISO_TIME,
  type JsonSchema,
  listOf,
  notBlank,
  object,
  objectTypeId,
  personName,
  reference,
  VIEW_NAME,
} from './json-schema.ts';
import { COMMANDS } from './pipelines-commands.ts';

const MEMBERS = {
  userId: {
    ...personName('An id or an email. A value in the form of an email is an email.'),
    type: ['string', 'number', 'null'],
  },
  anonymousId,
  timestamp: ISO_TIME,
  context: anyObject(
    'The context of the call. `context.device` and, without `traits`, `context.traits` are read.',
  ),
  integrations: anyObject('Taken and not read.'),
  writeKey: { type: 'string', description: 'In place of the header, as browsers send it.' },
} satisfies Record<string, JsonSchema>;

const SENT_AT = { ...ISO_TIME, description: 'When it was sent, by the clock of the sender.' };

/** Of calls that are kept as events. */
const OF_EVENTS = {
  messageId: EVENT_ID,
  originalTimestamp: { ...ISO_TIME, description: 'When it happened, by the clock of the sender.' },
  sentAt: SENT_AT,
};
/** The other calls take effect when they come, as often as they come. */
const NOT_READ = { description: 'Taken and not read.' };
const OF_CHANGES = {
  messageId: NOT_READ,
  originalTimestamp: NOT_READ,
  sentAt: NOT_READ,
  timestamp: { ...ISO_TIME, description: 'Checked and not used.' },
};

const GIVEN = { type: ['string', 'number'], pattern: '\\S' };
/** A person by `userId`, or a visitor by `anonymousId`. */
const SOMEBODY = [
  object({ userId: GIVEN }, ['userId']),
  object({ anonymousId: GIVEN }, ['anonymousId']),
];
const EMAIL_IN_TRAITS = object({ email: notBlank(ADDRESS) }, ['email']);

const properties = anyObject('Of any structure, at most 100 levels deep.');

const TRAITS_OF_PERSON: JsonSchema = {
  ...anyObject(
    `Attributes. \`email\` identifies too. \`null\` removes one. \`unsubscribed\`, \`created_at\` and \`createdAt\` have their own meaning. Those beyond ${ATTRIBUTE_COUNT_MAX} are left out, in strict mode refused.`,
  ),
  properties: {
    id: { ...identifier('An attribute.'), type: ['string', 'number', 'null'] },
    email: emailAttribute,
    objectId: {
      ...identifier('An object of the type `object_type_id`, to relate the person to.'),
      type: ['string', 'number', 'null'],
    },
  },
  ...where({
    anyOf: [{ not: has('objectId') }, { properties: { object_type_id: objectTypeId } }],
  }),
};

const TRAITS_OF_OBJECT: JsonSchema = {
  ...anyObject(
    'Attributes of the object. `object_type_id` is its type, 1 by default; `relationship_traits` are attributes of the relationship.',
  ),
  properties: {
    object_type_id: objectTypeId,
    relationship_traits: anyObject('Of the relationship.'),
  },
  ...where({ properties: { objectAttributes: { type: ['object', 'null'] } } }),
};

/** Traits in the context count if the call is without its own. @param own - the condition of its own traits. */
const inContext = (own: JsonSchema, { properties: members }: JsonSchema): JsonSchema => ({
  anyOf: [
    within('traits', { type: 'object', ...own }),
    { properties: { context: { properties: { traits: { properties: members } } } } },
  ],
});

const VIEW = {
  name: VIEW_NAME,
  category: { type: 'string', description: 'Becomes `properties.category` if that is absent.' },
  properties,
};

interface CallSchema {
  readonly own: Readonly<Record<string, JsonSchema>>;
  readonly required: readonly string[];
  readonly isEvent: boolean;
  /** One of them must hold: about whom the call is. Absent: an object alone is enough. */
  readonly about?: readonly JsonSchema[];
  readonly conditions?: readonly JsonSchema[];
}

const CALLS = {
  identify: {
    own: { traits: TRAITS_OF_PERSON },
    required: [],
    isEvent: false,
    about: [
      ...SOMEBODY,
      object({ traits: EMAIL_IN_TRAITS }, ['traits']),
      object({ context: object({ traits: EMAIL_IN_TRAITS }, ['traits']) }, ['context']),
    ],
    conditions: [inContext({ minProperties: 1 }, TRAITS_OF_PERSON)],
  },
  track: {
    own: {
      event: {
        ...EVENT_NAME,
        description: `At most ${EVENT_NAME_SIZE_BYTES_MAX} bytes. These names are commands. With \`userId\`: \`User Deleted\`, \`User Suppressed\`, \`User Unsuppressed\`. With \`context.device\`: \`Device Created or Updated\`, \`Device Deleted\`. With \`properties.objectId\`: \`Relationship Deleted\`, \`Object Deleted\`. With \`properties.deliveryId\` and \`properties.metric\`: \`Report Delivery Event\`.`,
      },
      properties,
    },
    required: ['event'],
    isEvent: true,
    about: SOMEBODY,
    conditions: COMMANDS,
  },
  page: { own: VIEW, required: [], isEvent: true, about: SOMEBODY },
  // The same: `PIPELINES_SCHEMAS` refers to it.
  screen: { own: VIEW, required: [], isEvent: true, about: SOMEBODY },
  group: {
    own: { groupId: notBlank(identifier('The object.')), traits: TRAITS_OF_OBJECT },
    required: ['groupId'],
    isEvent: false,
    conditions: [inContext({}, TRAITS_OF_OBJECT)],
  },
  alias: {
    own: {
      previousId: personName(
        'The person, or the visitor, who becomes part of `userId`. Required in strict mode. Absent: the `anonymousId` of the call.',
      ),
    },
    required: [],
    isEvent: false,
    about: SOMEBODY,
    conditions: [{ anyOf: [has('previousId'), { allOf: [has('userId'), has('anonymousId')] }] }],
  },
} satisfies Record<string, CallSchema>;

const nameOf = (type: string): string => `Pipelines${type.charAt(0).toUpperCase()}${type.slice(1)}`;

/** An item of a batch or a line of a stream, with the kind of call in it. */
const itemOf = (type: keyof typeof CALLS): JsonSchema => ({
  allOf: [reference(nameOf(type))],
  ...object({ type: { const: type } }, ['type']),
});

function schemaOf(type: keyof typeof CALLS): JsonSchema {
  const { own, required, isEvent, about, conditions }: CallSchema = CALLS[type];
  const members = { ...MEMBERS, ...(isEvent ? OF_EVENTS : OF_CHANGES), ...own };
  const call = object(members, required);
  // Forms beside the members would be a union with them in generated types.
  return {
    ...(about ? { allOf: [call, { anyOf: about }] } : call),
    ...(conditions && where(...conditions)),
  };
}

const TYPES = Object.keys(CALLS) as (keyof typeof CALLS)[];

export const PIPELINES_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(TYPES.map((type) => [nameOf(type), schemaOf(type)])),
  PipelinesScreen: reference('PipelinesPage'),
  PipelinesItem: {
    description: 'A call with its `type`.',
    oneOf: TYPES.map(itemOf),
  },
  PipelinesBatch: object(
    {
      batch: listOf(reference('PipelinesItem'), 1, PIPELINES_BATCH_COUNT_MAX),
      context: anyObject('Of every item without a `context`.'),
      sentAt: SENT_AT,
      writeKey: MEMBERS.writeKey,
    },
    ['batch'],
  ),
};
