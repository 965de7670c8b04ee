/**
 * Whether a person wants messages: the `unsubscribed` attribute and the subscription preferences.
 *
 * Preferences are stored as one attribute, `{topics: {topic_1: true}, channels: {email: false}}`.
 * A call changes the values it names and leaves the others (`ingestion-conventions.md` §1.3), as an
 * object or one at a time under a dotted name (`svc_subscription_preferences.topics.topic_1`).
 */
import { isRemoval } from './merge-attributes.ts';
import { isJsonObject, setKey, type Json, type JsonObject } from './json.ts';

export const PREFERENCES_ATTRIBUTE = 'svc_subscription_preferences';
const PREFERENCES_PREFIX = `${PREFERENCES_ATTRIBUTE}.`;

/** "true" in any letter case, true, 1 and "1"; anything else is false (`ingestion-conventions.md` §1.3). */
export function isTruthy(value: Json): boolean {
  return (
    value === true ||
    value === 1 ||
    value === '1' ||
    (typeof value === 'string' && value.toLowerCase() === 'true')
  );
}

/** True for the attribute names that this module owns. */
export function namesPreferences(attribute: string): boolean {
  return (
    attribute.startsWith(PREFERENCES_ATTRIBUTE) &&
    (attribute.length === PREFERENCES_ATTRIBUTE.length || attribute.startsWith(PREFERENCES_PREFIX))
  );
}

/**
 * The preferences after a change; undefined when nothing is left of them. Null and '' remove the
 * value, the group or all that they are given for. What is neither a group nor a yes or no inside
 * one is left out.
 */
export function mergePreferences(
  current: Json | undefined,
  attribute: string,
  value: Json,
): JsonObject | undefined {
  const path =
    attribute.length === PREFERENCES_ATTRIBUTE.length
      ? []
      : attribute.slice(PREFERENCES_PREFIX.length).split('.');
  const [group, ...rest] = path;
  const kept = isJsonObject(current) ? current : {};
  if (group === undefined)
    return isRemoval(value) ? undefined : mergeGroups(kept, isJsonObject(value) ? value : {});
  // A name may itself hold dots: only the group is split off.
  const patch = rest.length === 0 ? value : { [rest.join('.')]: value };
  return mergeGroups(kept, { [group]: patch });
}

function mergeGroups(current: JsonObject, patch: JsonObject): JsonObject | undefined {
  const merged = { ...current };
  for (const [group, values] of Object.entries(patch)) {
    const currentGroup = Object.hasOwn(merged, group) ? merged[group] : undefined;
    const next = isJsonObject(values)
      ? mergeValues(isJsonObject(currentGroup) ? currentGroup : {}, values)
      : undefined;
    if (next !== undefined) setKey(merged, group, next);
    else if (isRemoval(values) || isJsonObject(values)) delete merged[group];
  }
  return Object.keys(merged).length === 0 ? undefined : merged;
}

function mergeValues(current: JsonObject, patch: JsonObject): JsonObject | undefined {
  const merged = { ...current };
  for (const [name, value] of Object.entries(patch)) {
    if (isRemoval(value)) delete merged[name];
    else if (typeof value !== 'object') setKey(merged, name, isTruthy(value));
  }
  return Object.keys(merged).length === 0 ? undefined : merged;
}
