/** JSON Schema keywords about a value itself, without other schemas. */
import type { Json, JsonObject } from '../values/json.ts';
import { isMultiple } from './multiple-of.ts';

/** Notes that something does not hold; always false. */
export type Fail = (message: string, at?: string) => boolean;

/** @param type - one of JSON Schema's types, or a list of them. */
export function isOfType(value: Json, type: Json): boolean {
  if (Array.isArray(type)) return type.some((each) => isOfType(value, each));
  if (type === 'integer') return Number.isInteger(value);
  if (value === null) return type === 'null';
  if (Array.isArray(value)) return type === 'array';
  return typeof value === type;
}

export function holdsNumber(schema: JsonObject, value: number, fail: Fail): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  let isValid = true;
  if (isBelow(value, minimum)) isValid = fail(`must be at least ${minimum}`);
  if (isAbove(value, maximum)) isValid = fail(`must be at most ${maximum}`);
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum)
    isValid = fail(`must be above ${exclusiveMinimum}`);
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum)
    isValid = fail(`must be below ${exclusiveMaximum}`);
  if (typeof multipleOf === 'number' && !isMultiple(value, multipleOf))
    isValid = fail(`must be a multiple of ${multipleOf}`);
  return isValid;
}

/** @param count - of entries, between the bounds of two keywords. */
export function holdsCounts(
  schema: JsonObject,
  count: number,
  [least, most]: readonly [least: string, most: string],
  fail: Fail,
): boolean {
  const min = schema[least];
  const max = schema[most];
  if (isBelow(count, min)) return fail(`must have at least ${min} entries`);
  if (isAbove(count, max)) return fail(`must have at most ${max} entries`);
  return true;
}

export const isBelow = (value: number, bound: Json | undefined): bound is number =>
  typeof bound === 'number' && value < bound;
export const isAbove = (value: number, bound: Json | undefined): bound is number =>
  typeof bound === 'number' && value > bound;

/** The names of `required` and of members of `dependentRequired`. */
export const namesIn = (value: Json | undefined): string[] =>
  Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
