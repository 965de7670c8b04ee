/**
 * Values that many calls of intake share, as JSON Schema. Their bounds are the parsers'.
 *
 * Lengths are of characters. A parser counts bytes of UTF-8, which are as many or more, so a description has them. A text
 * that is not required has no least length, since a parser takes a blank text for an absent one.
 */
import {
  ATTRIBUTE_COUNT_MAX,
  ATTRIBUTE_NAME_SIZE_BYTES_MAX,
  ATTRIBUTE_VALUE_SIZE_BYTES_MAX,
  EMAIL_SIZE_BYTES_MAX,
  EVENT_ID_SIZE_BYTES_MAX,
  EVENT_NAME_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
  PAGE_NAME_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Postgres cannot store U+0000. It is refused in names that are compared, and replaced in other texts. */
const STORABLE = '^[^\\u0000]*$';
const EMAIL = '[^@\\u0000]+@[^@\\u0000]+\\.[^@\\u0000]+';
const PERSON = `^(?:[^\\u0000]{0,${ID_SIZE_BYTES_MAX}}|${EMAIL})$`;

const sized = (sizeBytesMax: number, description?: string): JsonSchema => ({
  maxLength: sizeBytesMax,
  description: [description, `At most ${sizeBytesMax} bytes.`].filter(Boolean).join(' '),
});

/** A text of the sender's own, in which characters without a meaning are replaced. */
export const text = (sizeBytesMax: number, description?: string): JsonSchema => ({
  type: 'string',
  ...sized(sizeBytesMax, description),
});

/** A text that is compared exactly. */
export const exactText = (sizeBytesMax: number, description?: string): JsonSchema => ({
  ...text(sizeBytesMax, description),
  pattern: STORABLE,
});

/** The schema of a text without the blank one, which counts as absent. */
export const notBlank = ({ pattern = '^', ...schema }: JsonSchema): JsonSchema => ({
  ...schema,
  minLength: 1,
  pattern: String(pattern).replace('^', '^(?=\\s*\\S)'),
});

/** A number is taken as its digits. */
const OR_NUMBER = {
  type: ['string', 'number'],
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
};

export const identifier = (description: string): JsonSchema => ({
  ...exactText(ID_SIZE_BYTES_MAX, description),
  ...OR_NUMBER,
});

/** A part of a path, which is a text in any case. */
export const inPath = ({ minimum: _, maximum: __, ...schema }: JsonSchema): JsonSchema =>
  notBlank(schema);

/** An id, or an email, which may be longer. */
export const personName = (description: string): JsonSchema => ({
  ...OR_NUMBER,
  maxLength: EMAIL_SIZE_BYTES_MAX,
  pattern: PERSON,
  description: `${description} At most ${ID_SIZE_BYTES_MAX} bytes, an email ${EMAIL_SIZE_BYTES_MAX}.`,
});

export const ADDRESS: JsonSchema = {
  type: 'string',
  maxLength: EMAIL_SIZE_BYTES_MAX,
  pattern: `^(?:\\s*|${EMAIL})$`,
};

/** An email that must be an address. */
export const email = (description = 'Letter case does not count.'): JsonSchema => ({
  ...ADDRESS,
  ...sized(EMAIL_SIZE_BYTES_MAX, description),
});

/** An attribute, which is left out if it is no address. */
export const emailAttribute: JsonSchema = {
  ...exactText(EMAIL_SIZE_BYTES_MAX, 'Identifies too. Left out if it is no address.'),
  type: ['string', 'null'],
};

export const anonymousId = identifier('The id of a visitor.');

export const objectTypeId: JsonSchema = {
  type: ['integer', 'string'],
  minimum: 1,
  maximum: INTEGER_MAX,
  pattern: '^\\s*(?:\\d{1,10}\\s*)?$',
  description: `1 to ${INTEGER_MAX}.`,
};

export const EVENT_NAME = notBlank(
  text(EVENT_NAME_SIZE_BYTES_MAX, 'Spaces at both ends are removed.'),
);
/** Of an event, a page or a screen (`longNamesOfViewsAlone`). */
export const EVENT_OR_VIEW_NAME = notBlank({
  ...text(EVENT_NAME_SIZE_BYTES_MAX, 'Spaces at both ends are removed.'),
  maxLength: PAGE_NAME_SIZE_BYTES_MAX,
  description: `At most ${EVENT_NAME_SIZE_BYTES_MAX} bytes, of a page or a screen ${PAGE_NAME_SIZE_BYTES_MAX}. Spaces at both ends are removed.`,
});
export const VIEW_NAME = text(
  PAGE_NAME_SIZE_BYTES_MAX,
  'Absent: `properties.url`, then `context.page.url`, then the type.',
);
export const EVENT_ID = exactText(
  EVENT_ID_SIZE_BYTES_MAX,
  'Two events with the same id are processed once. A ULID is best.',
);

/** As parsers read it; types have the two names. */
export const PLATFORM_IN_ANY_CASE: JsonSchema = {
  type: 'string',
  pattern: '^\\s*(?:[iI][oO][sS]|[aA][nN][dD][rR][oO][iI][dD])\\s*$',
};

/** An object of any structure. */
export const anyObject = (description: string): JsonSchema => ({
  type: ['object', 'null'],
  additionalProperties: true,
  description,
});

/** Names and values of attributes on the Track API. Lists and objects are measured as JSON. */
export const ATTRIBUTE_BOUNDS: JsonSchema = {
  propertyNames: { maxLength: ATTRIBUTE_NAME_SIZE_BYTES_MAX },
  additionalProperties: { maxLength: ATTRIBUTE_VALUE_SIZE_BYTES_MAX },
};

const ATTRIBUTES_TEXT = `At most ${ATTRIBUTE_COUNT_MAX}, names of ${ATTRIBUTE_NAME_SIZE_BYTES_MAX} bytes, values of ${ATTRIBUTE_VALUE_SIZE_BYTES_MAX}.`;

/** @param controlCount - names among them that are no attributes. */
export const attributes = (description: string, controlCount = 0): JsonSchema => ({
  ...anyObject(`${description} ${ATTRIBUTES_TEXT}`),
  ...ATTRIBUTE_BOUNDS,
  maxProperties: ATTRIBUTE_COUNT_MAX + controlCount,
});

export const UNIX_SECONDS: JsonSchema = {
  type: ['integer', 'number', 'string'],
  description: 'Unix seconds. Absent: the time of receipt.',
};
export const ISO_TIME: JsonSchema = {
  type: 'string',
  format: 'date-time',
  description:
    'ISO 8601. Absent: the time of receipt, or `originalTimestamp` corrected by `sentAt`.',
};

export function object(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
  more: JsonSchema = {},
): JsonSchema {
  return { type: 'object', ...(required.length > 0 && { required }), properties, ...more };
}

export const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

export const listOf = (items: JsonSchema, countMin: number, countMax: number): JsonSchema => ({
  type: 'array',
  items,
  minItems: countMin,
  maxItems: countMax,
});

/** One of several forms, distinguished by the value of a member. */
export const oneOf = (names: readonly string[], description: string): JsonSchema => ({
  description,
  oneOf: names.map(reference),
});
