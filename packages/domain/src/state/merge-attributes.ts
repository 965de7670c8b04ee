/**
 * Merges a call's attributes into the stored ones, one level deep.
 *
 * A value replaces the value of its name whole; null and '' remove it; all other attributes stay. A person, an object
 * or a relationship holds at most 300: further names are refused, those already there can still change
 * (`ingestion-conventions.md` §1.2, §1.7).
 */
import { isJsonObject, setKey, type Json, type JsonObject } from '../values/json.ts';

export const STORED_ATTRIBUTE_COUNT_MAX = 300;

export interface AttributeMerge {
  /** The very object that was given if no attribute changed. */
  readonly attributes: JsonObject;
  /** Name → `{from, to}`, null for absent. Undefined without a change. */
  readonly changes: JsonObject | undefined;
  /** New names that found no capacity. */
  readonly refused: readonly string[];
}

const NONE_REFUSED: readonly string[] = [];

/** Merges `patch` into `current` and returns the result. Neither is written to. */
export function mergeAttributes(current: JsonObject, patch: JsonObject): AttributeMerge {
  let merged = current;
  let changes: JsonObject | undefined;
  let refused: string[] | undefined;
  let count = -1;
  for (const name in patch) {
    const value = patch[name] as Json;
    const from = Object.hasOwn(merged, name) ? (merged[name] as Json) : undefined;
    if (isRemoval(value)) {
      if (from === undefined) continue;
      if (merged === current) merged = { ...current };
      delete merged[name];
      if (count >= 0) count--;
      changes = noteChange(changes, name, from, null);
    } else if (from === undefined || !isSameJson(from, value)) {
      if (from === undefined) {
        if (count < 0) count = Object.keys(merged).length;
        if (count >= STORED_ATTRIBUTE_COUNT_MAX) {
          (refused ??= []).push(name);
          continue;
        }
        count++;
      }
      if (merged === current) merged = { ...current };
      setKey(merged, name, value);
      changes = noteChange(changes, name, from ?? null, value);
    }
  }
  return { attributes: merged, changes, refused: refused ?? NONE_REFUSED };
}

/** Adds one name's change to the changes of the same call. If the name changed before in it, the first `from` stays. */
export function noteChange(
  changes: JsonObject | undefined,
  name: string,
  from: Json,
  to: Json,
): JsonObject {
  const noted = changes ?? {};
  const before = Object.hasOwn(noted, name) ? (noted[name] as { from: Json }) : undefined;
  setKey(noted, name, { from: before ? before.from : from, to });
  return noted;
}

/** Adds later changes to the changes of the same call, as {@link noteChange}. */
export function joinChanges(before: JsonObject | undefined, later: JsonObject): JsonObject {
  if (!before) return later;
  for (const name in later) {
    const { from, to } = later[name] as { from: Json; to: Json };
    noteChange(before, name, from, to);
  }
  return before;
}

/** True for equal values; the order of an object's names does not count, as in `jsonb`. */
export function isSameJson(left: Json, right: Json): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null)
    return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => isSameJson(item, right[index] as Json));
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  return names.every(
    (name) => Object.hasOwn(right, name) && isSameJson(left[name] as Json, right[name] as Json),
  );
}

/** Null and the empty string remove their attribute (`ingestion-conventions.md` §1.2). */
export function isRemoval(value: Json | undefined): boolean {
  return value === null || value === '';
}
