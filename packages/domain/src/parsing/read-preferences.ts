/**
 * Subscription preferences of clients → their one stored form, `{topics: {topic_1: true}, channels: {email: false}}`
 * (`ingestion-conventions.md` §1.3).
 *
 * They are the person's refusals of messages, so every part that is dropped has an issue. Their JSON as a text is read,
 * and a topic or channel outside its group is put into it.
 */
import { isJsonObject, parsedText, setKey, type Json, type JsonObject } from '../values/json.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import { VALUE_RULES } from '../value-rules/value-rules.ts';
import { cleanMember } from './clean-json.ts';
import { type CallDraft, fieldIn } from './parse.ts';

export const PREFERENCES_ATTRIBUTE = 'svc_subscription_preferences';
const PREFERENCES_PREFIX = `${PREFERENCES_ATTRIBUTE}.`;

/** True for the attribute of all preferences, and for attributes of their parts, which have a path behind it. */
export const namesPreferences = (attribute: string): boolean =>
  attribute.startsWith(PREFERENCES_ATTRIBUTE) &&
  (attribute.length === PREFERENCES_ATTRIBUTE.length || attribute.startsWith(PREFERENCES_PREFIX));

type Group = 'topics' | 'channels';

/** Examples of a group's members. */
const EXAMPLES: Readonly<Record<Group, string>> = { topics: 'topic_1, …', channels: 'email, …' };

const CHANNELS: ReadonlySet<string> = new Set([
  'email',
  'sms',
  'push',
  'in_app',
  'whatsapp',
  'slack',
  'line',
  'inbox',
]);

/**
 * The name under which a part is stored: one outside of its group is put into it, as among the parts of one object,
 * with an issue.
 */
export function preferenceName(draft: CallDraft, name: string, field: string): string {
  const part = name.slice(PREFERENCES_PREFIX.length);
  const home = homeOf(part);
  if (home === undefined) return name;
  const placed = `${PREFERENCES_PREFIX}${home}.${part.toLowerCase()}`;
  const problem = `${field} is outside of ${home}; it is read as ${placed}`;
  draft.warn('value_corrected', field, problem);
  return placed;
}

/** The group of a topic or a channel. */
const homeOf = (part: string): Group | undefined =>
  /^topic_\d+$/i.test(part) ? 'topics' : CHANNELS.has(part.toLowerCase()) ? 'channels' : undefined;

const isGroup = (name: string): name is Group => name === 'topics' || name === 'channels';

/**
 * Reads one attribute that {@link namesPreferences}. Null and blank ask for the removal of the named part. `undefined`
 * if no part of it was understood.
 */
export function readPreferences(
  draft: CallDraft,
  name: string,
  value: Json,
  field: string,
): Json | undefined {
  if (isAbsent(value)) return null;
  const path = name.slice(PREFERENCES_PREFIX.length);
  const [group = ''] = path.split('.', 1);
  const isWhole = name.length === PREFERENCES_ATTRIBUTE.length;
  if (!isWhole && !isGroup(group)) {
    warn(
      draft,
      field,
      'does not name one of the groups topics and channels',
      'it is left out',
      value,
    );
    return undefined;
  }
  if (path.length > group.length) return readChoice(draft, value, field);
  const given = cleanMember(draft, parsedText(value) as Json);
  if (!isJsonObject(given)) {
    warn(draft, field, 'is no object of topics and channels', 'it is left out', value);
    return undefined;
  }
  return isWhole || !isGroup(group)
    ? readGroups(draft, given, field)
    : readGroup(draft, group, given, field);
}

function readGroups(draft: CallDraft, given: JsonObject, field: string): JsonObject {
  const groups: JsonObject = {};
  const put = (group: string, choices: JsonObject): void => {
    const before = Object.hasOwn(groups, group) ? groups[group] : undefined;
    setKey(groups, group, isJsonObject(before) ? { ...before, ...choices } : choices);
  };
  for (const key in given) {
    const value = given[key] as Json;
    const path = fieldIn(field, key);
    const group = parsedText(value) as Json;
    const name = key.toLowerCase();
    const home = homeOf(key);
    if (home !== undefined) {
      const choice = isAbsent(value) ? null : readChoice(draft, value, path);
      if (choice === undefined) continue;
      const problem = `${path} is outside of ${home}; it is read as ${fieldIn(fieldIn(field, home), key)}`;
      draft.warn('value_corrected', path, problem, value);
      put(home, { [name]: choice });
    } else if (isAbsent(value)) {
      setKey(groups, key, null);
    } else if (!isGroup(name)) {
      warn(draft, path, 'is neither topics nor channels', 'it is left out', value);
    } else if (isJsonObject(group)) {
      put(name, readGroup(draft, name, group, path));
    } else {
      warn(draft, path, 'is no object of topics or channels', 'it is left out', value);
    }
  }
  return groups;
}

function readGroup(draft: CallDraft, group: Group, given: JsonObject, field: string): JsonObject {
  const choices: JsonObject = {};
  for (const key in given) {
    const value = given[key] as Json;
    const path = fieldIn(field, key);
    const choice = isAbsent(value) ? null : readChoice(draft, value, path);
    if (choice === undefined) continue;
    const isKnown = homeOf(key) === group;
    if (!isKnown && choice !== null)
      warn(draft, path, `is not one of the ${group} (${EXAMPLES[group]})`, 'it is kept', value);
    setKey(choices, isKnown ? key.toLowerCase() : key, choice);
  }
  return choices;
}

/** Anything but true is no consent (`ingestion-conventions.md` §1.3). */
function readChoice(draft: CallDraft, value: Json, field: string): boolean | undefined {
  const verdict = VALUE_RULES.boolean(value);
  if (verdict.outcome === 'read') return verdict.value;
  if (typeof value === 'object') {
    warn(draft, field, 'is neither true nor false', 'it is left out', value);
    return undefined;
  }
  warn(draft, field, 'is neither true nor false', 'it counts as false', value);
  return false;
}

function warn(
  draft: CallDraft,
  field: string,
  problem: string,
  remedy: string,
  value: unknown,
): void {
  draft.warn('value_not_understood', field, `${field} ${problem}; ${remedy}`, value);
}
