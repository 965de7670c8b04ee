/**
 * Equality of a payload's value and a value of a schema.
 *
 * Two objects are equal with their keys in any order. It follows a value only as far as both are the same, so a deep
 * value of a schema never fills the stack: payloads have few levels (`NESTING_DEPTH_MAX`).
 */
import { isJsonObject, type Json } from '../values/json.ts';

/** @param look - is called before the members of two objects or lists are compared, with the number of both. */
export function isSameJson(one: Json, other: Json, look: (memberCount: number) => void): boolean {
  if (Array.isArray(one)) {
    if (!Array.isArray(other)) return false;
    look(one.length + other.length);
    return (
      one.length === other.length &&
      one.every((each, index) => isSameJson(each, other[index] as Json, look))
    );
  }
  if (!isJsonObject(one)) return one === other;
  if (!isJsonObject(other)) return false;
  const keys = Object.keys(one);
  const otherCount = Object.keys(other).length;
  look(keys.length + otherCount);
  return (
    keys.length === otherCount &&
    keys.every(
      (key) => Object.hasOwn(other, key) && isSameJson(one[key] as Json, other[key] as Json, look),
    )
  );
}
