/** Conditions among the members of a call of intake, as JSON Schema. */
import { EVENT_NAME_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import type { JsonSchema } from './json-schema.ts';

/** A name or a number, as parsers take them for present. */
const PRESENT: JsonSchema = { type: ['string', 'number'], pattern: '\\S' };

export const has = (member: string): JsonSchema => ({
  required: [member],
  properties: { [member]: PRESENT },
});

export const hasAny = (first: string, ...others: readonly string[]): JsonSchema =>
  others.length === 0 ? has(first) : { anyOf: [first, ...others].map(has) };

/** The condition holds for `member`, which must be there. */
export const within = (member: string, condition: JsonSchema): JsonSchema => ({
  required: [member],
  properties: { [member]: condition },
});

/** @param kinds - each one member, or several names of one. */
export const hasExactlyOne = (kinds: readonly (readonly [string, ...string[]])[]): JsonSchema => ({
  oneOf: kinds.map((names) => hasAny(...names)),
});

/** If `member` is one of `values`, the condition holds. */
export const ifOneOf = (
  member: string,
  values: readonly string[],
  condition: JsonSchema,
): JsonSchema => ({
  anyOf: [{ not: within(member, { enum: values }) }, condition],
});

/** Names of pages and screens may be longer than names of events. @param kind - the member that has `page` or `screen`. */
export const longNamesOfViewsAlone = (kind: string): JsonSchema => ({
  anyOf: [
    within(kind, { enum: ['page', 'screen'] }),
    { properties: { name: { maxLength: EVENT_NAME_SIZE_BYTES_MAX } } },
  ],
});
