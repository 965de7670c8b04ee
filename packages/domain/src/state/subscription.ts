/**
 * A person's consent to messages: the `unsubscribed` attribute and the subscription preferences.
 *
 * Preferences are stored as one attribute, `{topics: {topic_1: true}, channels: {email: false}}`.
 * A call changes the values it names and leaves the others (`ingestion-conventions.md` §1.3), as an
 * object or one at a time under a dotted name (`svc_subscription_preferences.topics.topic_1`).
 */
import { isRemoval, STORED_ATTRIBUTE_COUNT_MAX } from './merge-attributes.ts';
import { PREFERENCES_ATTRIBUTE } from '../parsing/read-preferences.ts';
import { isTrue } from '../value-rules/boolean-rule.ts';
import { isJsonObject, setKey, type Json, type JsonObject } from '../values/json.ts';

const PREFERENCES_PREFIX = `${PREFERENCES_ATTRIBUTE}.`;

/** Values a person can have in all groups together, as many as attributes. */
const PREFERENCE_COUNT_MAX = STORED_ATTRIBUTE_COUNT_MAX;

/** One attribute of a call that {@link namesPreferences}, and its value. */
export type PreferenceChange = readonly [attribute: string, value: Json];

export interface PreferencesMerge {
  /** Undefined if no preference remains. */
  readonly preferences: JsonObject | undefined;
  /** New ones that found no capacity, as attributes. */
  readonly refused: readonly string[];
}

/**
 * The preferences after the changes of one call. Null and '' remove the value, the group or all that they are given
 * for. A value that is neither a group nor a yes or no inside one is left out.
 *
 * All changes at once: each by itself would copy all preferences, and a call may have a thousand.
 */
export function mergePreferences(
  current: Json | undefined,
  changes: readonly PreferenceChange[],
): PreferencesMerge {
  const draft = new PreferencesDraft(isJsonObject(current) ? current : {});
  for (const [attribute, value] of changes) {
    if (attribute.length !== PREFERENCES_ATTRIBUTE.length) {
      // A name may itself hold dots: only the group is split off.
      const [group = '', ...rest] = attribute.slice(PREFERENCES_PREFIX.length).split('.');
      draft.changeGroup(group, rest.length === 0 ? value : { [rest.join('.')]: value });
    } else if (isRemoval(value)) {
      draft.clear();
    } else if (isJsonObject(value)) {
      for (const [group, values] of Object.entries(value)) draft.changeGroup(group, values);
    }
  }
  return draft.finish();
}

class PreferencesDraft {
  readonly #groups: Map<string, Json>;
  /** The groups that are our own copies. */
  readonly #copies = new Set<Json>();
  readonly #refused: string[] = [];
  #count = 0;

  constructor(current: JsonObject) {
    this.#groups = new Map(Object.entries(current));
    for (const group of this.#groups.values()) this.#count += sizeOf(group);
  }

  clear(): void {
    this.#groups.clear();
    this.#count = 0;
  }

  changeGroup(name: string, values: Json): void {
    if (isJsonObject(values)) {
      const group = this.#copyOf(name);
      for (const [key, value] of Object.entries(values)) this.#change(name, group, key, value);
    } else if (isRemoval(values)) {
      this.#count -= sizeOf(this.#groups.get(name));
      this.#groups.delete(name);
    }
  }

  finish(): PreferencesMerge {
    const preferences: JsonObject = {};
    for (const [name, group] of this.#groups)
      if (!this.#copies.has(group) || sizeOf(group) > 0) setKey(preferences, name, group);
    return {
      preferences: sizeOf(preferences) === 0 ? undefined : preferences,
      refused: this.#refused,
    };
  }

  #change(name: string, group: JsonObject, key: string, value: Json): void {
    const isThere = Object.hasOwn(group, key);
    if (isRemoval(value)) {
      if (isThere) this.#count--;
      delete group[key];
    } else if (typeof value !== 'object') {
      if (!isThere && this.#count >= PREFERENCE_COUNT_MAX) {
        this.#refused.push(`${PREFERENCES_PREFIX}${name}.${key}`);
        return;
      }
      if (!isThere) this.#count++;
      setKey(group, key, isTrue(value));
    }
  }

  #copyOf(name: string): JsonObject {
    const group = this.#groups.get(name);
    if (isJsonObject(group) && this.#copies.has(group)) return group;
    const copy = isJsonObject(group) ? { ...group } : {};
    this.#copies.add(copy);
    this.#groups.set(name, copy);
    return copy;
  }
}

const sizeOf = (group: Json | undefined): number =>
  isJsonObject(group) ? Object.keys(group).length : 0;
