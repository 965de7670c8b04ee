/**
 * Attributes of people, objects, relationships and devices. Keys that are not the client's own are removed or brought
 * to one spelling, values are cleaned, bounds are checked.
 *
 * The one place that turns `cio_` names among attributes into `svc_` ones; if a call has both, ours wins. Null and
 * empty values stay: they remove the attribute, which is for the apply step to do.
 */
import { isAbsent } from '../value-rules/verdict.ts';
import { cleanKey, cleanMember, copyBefore, reportFlaws } from './clean-json.ts';
import { readExactText } from './identifiers.ts';
import { namesPreferences, preferenceName, readPreferences } from './read-preferences.ts';
import { isJsonLargerThan, jsonSizeBytes } from '../values/json-size.ts';
import { isJsonObject, setKey, type Json, type JsonObject } from '../values/json.ts';
import {
  ATTRIBUTE_COUNT_MAX,
  ATTRIBUTE_NAME_SIZE_BYTES_MAX,
  ATTRIBUTE_VALUE_SIZE_BYTES_MAX,
  EMAIL_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
} from '../operations/limits.ts';
import { type CallDraft, fieldIn } from './parse.ts';
import { isLongerThan, utf8SizeBytes } from '../values/storable-text.ts';
import { isEmail } from '../value-rules/identifier-rule.ts';
import { VALUE_RULES } from '../value-rules/value-rules.ts';
import { readUnixSeconds } from './timestamps.ts';

/** Identity of an object: never an attribute, and not changed by one. */
export const OBJECT_CONTROL_KEYS: ReadonlySet<string> = new Set([
  'object_id',
  'object_type_id',
  'svc_object_id',
  'cio_object_id',
]);

const NO_CONTROL_KEYS: ReadonlySet<string> = new Set();

/** Whose attributes: a person's `id` and `email` are identifiers, and people and objects have a `created_at`. */
export type AttributeOwner = 'person' | 'object' | 'other';

/** Reads an optional attributes object; null and absent are no attributes. */
export function readOptionalAttributes(
  draft: CallDraft,
  value: unknown,
  field: string,
): JsonObject {
  if (isAbsent(value)) return {};
  if (isJsonObject(value)) return readAttributes(draft, value, field, NO_CONTROL_KEYS, 'other');
  draft.refuse('invalid', field, `${field} must be an object`, value);
  return {};
}

/**
 * Reads attributes, leaving out the control keys. `field` is the path of `source` in the body, '' for the body itself.
 */
export function readAttributes(
  draft: CallDraft,
  source: JsonObject,
  field: string,
  controlKeys: ReadonlySet<string>,
  owner: AttributeOwner,
): JsonObject {
  const isTrack = draft.dialect === 'track';
  let count = 0;
  let copy: JsonObject | undefined;
  for (const key in source) {
    const value = source[key] as Json;
    const name = controlKeys.has(key) ? undefined : storedName(draft, source, key, field, owner);
    if (name !== undefined) count++;
    const stored =
      name === undefined ? undefined : readValue(draft, name, value, field, key, owner);
    if (name === undefined || stored === undefined) {
      copy ??= copyBefore(source, key);
      continue;
    }
    if (isTrack) checkBounds(draft, key, stored, field);
    if (copy === undefined) {
      if (stored === value && name === key) continue;
      copy = copyBefore(source, key);
    }
    setKey(copy, name, stored);
  }
  if (draft.flaws !== 0) reportFlaws(draft, source, field);
  const attributes = copy ?? source;
  return count > ATTRIBUTE_COUNT_MAX ? withoutExcess(draft, attributes, count, field) : attributes;
}

/** Attributes of a person or object that the service itself reads: they come first if there are too many. */
const RESERVED: ReadonlySet<string> = new Set([
  'id',
  'email',
  'created_at',
  'unsubscribed',
  'phone',
  'timezone',
]);

/**
 * A person holds as many attributes as one call may have, so further ones would be refused later. Track and strict mode
 * refuse; permissive mode keeps the first and the reserved ones.
 */
function withoutExcess(
  draft: CallDraft,
  attributes: JsonObject,
  count: number,
  field: string,
): JsonObject {
  const place = field === '' ? 'the body' : field;
  const problem = `${place} has ${count} attributes; the bound is ${ATTRIBUTE_COUNT_MAX}`;
  if (draft.dialect === 'track') {
    draft.refuse('too_large', field || null, problem);
    return attributes;
  }
  const isReserved = (name: string): boolean => RESERVED.has(name) || namesPreferences(name);
  const names = Object.keys(attributes);
  let capacity = ATTRIBUTE_COUNT_MAX - names.filter(isReserved).length;
  const kept: JsonObject = {};
  let leftOut: string | undefined;
  for (const name of names) {
    if (isReserved(name) || capacity-- > 0) setKey(kept, name, attributes[name] as Json);
    else leftOut ??= name;
  }
  const remedy = `${ATTRIBUTE_COUNT_MAX} are kept, the first that is left out is ${leftOut ?? ''}`;
  draft.correct('attributes_left_out', field, problem, remedy, leftOut);
  return kept;
}

/** Both in one object; the second wins. `field` is the path of both together, for the issue if they are too many. */
export function joinAttributes(
  draft: CallDraft,
  first: JsonObject,
  second: JsonObject,
  field: string,
): JsonObject {
  const merged: JsonObject = {};
  for (const key in first) setKey(merged, key, first[key] as Json);
  for (const key in second) setKey(merged, key, second[key] as Json);
  const count = Object.keys(merged).length;
  return count > ATTRIBUTE_COUNT_MAX ? withoutExcess(draft, merged, count, field) : merged;
}

/** The value as it is stored; `undefined` if it is left out, which an issue records. */
function readValue(
  draft: CallDraft,
  name: string,
  value: Json,
  field: string,
  key: string,
  owner: AttributeOwner,
): Json | undefined {
  if (owner === 'person') return readPersonValue(draft, name, value, field, key);
  const cleaned = cleanMember(draft, value);
  return owner === 'object' && name === 'created_at'
    ? readUnixSeconds(draft, cleaned, fieldIn(field, key))
    : cleaned;
}

/**
 * One attribute of a person, which came as `key` of `field`. The names that the service reads itself have rules; all
 * others are only cleaned. `undefined` if it is left out, which an issue records.
 */
export function readPersonValue(
  draft: CallDraft,
  name: string,
  value: Json,
  field: string,
  key: string,
): Json | undefined {
  switch (name) {
    case 'id':
      // Null or blank asks for its removal.
      return readExactText(draft, value, fieldIn(field, key), ID_SIZE_BYTES_MAX) ?? null;
    case 'email':
      return readEmailAttribute(draft, value, fieldIn(field, key));
    case 'created_at':
      return readUnixSeconds(draft, cleanMember(draft, value), fieldIn(field, key));
    case 'unsubscribed':
      if (isAbsent(value)) return null;
      checkBoolean(draft, value, fieldIn(field, key));
      return cleanMember(draft, value);
    default:
      return namesPreferences(name)
        ? readPreferences(draft, name, value, fieldIn(field, key))
        : cleanMember(draft, value);
  }
}

/** True of a value that is true by its rule; one that is neither true nor false counts as false, with an issue. */
export function checkBoolean(draft: CallDraft, value: unknown, field: string): boolean {
  const verdict = VALUE_RULES.boolean(value);
  if (verdict.outcome === 'refused')
    draft.warn(
      'value_not_understood',
      field,
      `${field} ${verdict.because}; it counts as false`,
      value,
    );
  return verdict.outcome === 'read' && verdict.value;
}

/** A text that is no address cannot identify a person: `N/A` in a thousand rows would be one person. */
function readEmailAttribute(draft: CallDraft, value: Json, field: string): Json | undefined {
  const email = readExactText(draft, value, field, EMAIL_SIZE_BYTES_MAX);
  if (email === undefined) return null;
  if (isEmail(email)) return email;
  draft.correct(
    'email_invalid',
    field,
    `${field} is not an email address`,
    'it is left out, because it cannot identify a person',
    value,
  );
  return undefined;
}

/** The key's one spelling; `undefined` if the call has it under that spelling too. */
export function storedName(
  draft: CallDraft,
  source: JsonObject,
  key: string,
  field: string,
  owner: AttributeOwner,
): string | undefined {
  // Called for every key of every attribute, so the first letter is tested first, which rules out nearly all.
  const first = key.charCodeAt(0);
  if (first === 99 || first === 115) {
    const name = canonicalName(draft, key, field, owner);
    if (name !== key) {
      if (!Object.hasOwn(source, name)) return name;
      tellOther(draft, source, key, name, field);
      return undefined;
    }
  }
  return cleanKey(draft, key);
}

/** Of two spellings of a key one is left out. An issue records it if their values differ. */
function tellOther(
  draft: CallDraft,
  source: JsonObject,
  key: string,
  name: string,
  field: string,
): void {
  if (source[key] === source[name]) return;
  const path = fieldIn(field, key);
  const problem = `${path} is left out, for ${fieldIn(field, name)} is there too`;
  draft.warn('value_not_understood', path, problem, source[key]);
}

function canonicalName(
  draft: CallDraft,
  key: string,
  field: string,
  owner: AttributeOwner,
): string {
  switch (key) {
    case 'createdAt':
      return draft.dialect === 'pipelines' && owner !== 'other' ? 'created_at' : key;
    case 'cio_subscription_preferences':
    case 'cio_email_tracking_consent':
    case 'cio_sdk_version':
      return `svc${key.slice(3)}`;
    default:
      return key.charCodeAt(3) === 95 && /^(?:svc|cio)_subscription_preferences\./.test(key)
        ? preferenceName(draft, cleanKey(draft, `svc${key.slice(3)}`), fieldIn(field, key))
        : key;
  }
}

function checkBounds(draft: CallDraft, key: string, value: Json, field: string): void {
  if (isLongerThan(key, ATTRIBUTE_NAME_SIZE_BYTES_MAX)) {
    const path = fieldIn(field, key);
    draft.refuse(
      'too_long',
      path,
      `the attribute name ${key.slice(0, 40)}… is ${utf8SizeBytes(key)} bytes long; the bound is ${ATTRIBUTE_NAME_SIZE_BYTES_MAX}`,
    );
  }
  if (typeof value === 'string') {
    if (isLongerThan(value, ATTRIBUTE_VALUE_SIZE_BYTES_MAX))
      refuseValue(draft, key, value, field, utf8SizeBytes(value));
  } else if (
    typeof value === 'object' &&
    value !== null &&
    isJsonLargerThan(value, ATTRIBUTE_VALUE_SIZE_BYTES_MAX)
  ) {
    refuseValue(draft, key, value, field, jsonSizeBytes(value));
  }
}

function refuseValue(
  draft: CallDraft,
  key: string,
  value: Json,
  field: string,
  sizeBytes: number,
): void {
  const path = fieldIn(field, key);
  draft.refuse(
    'too_long',
    path,
    `the value of ${path} is ${sizeBytes} bytes long; the bound is ${ATTRIBUTE_VALUE_SIZE_BYTES_MAX}`,
    value,
  );
}
