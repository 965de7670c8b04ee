/** Values that many calls of intake share, as JSON Schema. Their bounds are the parsers'. */
import {
  ATTRIBUTE_COUNT_MAX,
  EMAIL_SIZE_BYTES_MAX,
  EVENT_ID_SIZE_BYTES_MAX,
  EVENT_NAME_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
  PAGE_NAME_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A text that may have so many bytes of UTF-8, so at most as many characters. */
export const text = (sizeBytesMax: number, description?: string): JsonSchema => ({
  type: 'string',
  minLength: 1,
  maxLength: sizeBytesMax,
  description: [description, `At most ${sizeBytesMax} bytes.`].filter(Boolean).join(' '),
});

export const identifier = (description: string): JsonSchema => ({
  ...text(ID_SIZE_BYTES_MAX, description),
  // A number is taken as its digits.
  type: ['string', 'number'],
});
export const email = (description = 'Letter case does not count.'): JsonSchema =>
  text(EMAIL_SIZE_BYTES_MAX, description);
export const anonymousId = identifier('The id of a visitor.');

export const EVENT_NAME = text(EVENT_NAME_SIZE_BYTES_MAX, 'Spaces at both ends are removed.');
export const VIEW_NAME = text(
  PAGE_NAME_SIZE_BYTES_MAX,
  'Absent: `properties.url`, then `context.page.url`, then the type.',
);
export const EVENT_ID = text(
  EVENT_ID_SIZE_BYTES_MAX,
  'Two events with the same id are processed once. A ULID is best.',
);

/** An object of any structure. */
export const anyObject = (description: string): JsonSchema => ({
  type: ['object', 'null'],
  additionalProperties: true,
  description,
});

export const attributes = (description: string): JsonSchema => ({
  ...anyObject(description),
  maxProperties: ATTRIBUTE_COUNT_MAX,
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
