/**
 * Attributes of people, objects, relationships and devices: the keys that are not the client's own
 * are taken out or brought to one spelling, values are cleaned, Track's bounds are held.
 *
 * The one place where `cio_` names among attributes become `svc_` ones; where a call has both, ours
 * wins. Null and empty values stay: they remove the attribute, which is for the apply step to do.
 */
import { cleanKey, cleanMember, copyBefore, reportFlaws } from './clean-json.ts';
import { readExactText } from './identifiers.ts';
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
import { secondsFromMilliseconds } from './timestamps.ts';

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
  if (value === undefined || value === null) return {};
  if (isJsonObject(value)) return readAttributes(draft, value, field, NO_CONTROL_KEYS, 'other');
  draft.refuse('invalid', field, `${field} must be an object`, value);
  return {};
}

/** Reads attributes, leaving out the control keys. `field` is where `source` stands in the body, '' for the body itself. */
export function readAttributes(
  draft: CallDraft,
  source: JsonObject,
  field: string,
  controlKeys: ReadonlySet<string>,
  owner: AttributeOwner,
): JsonObject {
  const isBounded = draft.dialect === 'track';
  let count = 0;
  let copy: JsonObject | undefined;
  for (const key in source) {
    const value = source[key] as Json;
    const name = controlKeys.has(key) ? undefined : storedName(draft, source, key, owner);
    if (name === undefined) {
      copy ??= copyBefore(source, key);
      continue;
    }
    count++;
    const stored = readValue(draft, name, value, field, key, owner);
    if (isBounded) checkBounds(draft, key, stored, field);
    if (copy === undefined) {
      if (stored === value && name === key) continue;
      copy = copyBefore(source, key);
    }
    setKey(copy, name, stored);
  }
  if (isBounded && count > ATTRIBUTE_COUNT_MAX) {
    const place = field === '' ? 'the body' : field;
    draft.refuse(
      'too_large',
      field || null,
      `${place} has ${count} attributes; the bound is ${ATTRIBUTE_COUNT_MAX}`,
    );
  }
  if (draft.flaws !== 0) reportFlaws(draft, source, field);
  return copy ?? source;
}

/** Both in one object; the second wins. */
export function joinAttributes(first: JsonObject, second: JsonObject): JsonObject {
  const merged: JsonObject = {};
  for (const key in first) setKey(merged, key, first[key] as Json);
  for (const key in second) setKey(merged, key, second[key] as Json);
  return merged;
}

function readValue(
  draft: CallDraft,
  name: string,
  value: Json,
  field: string,
  key: string,
  owner: AttributeOwner,
): Json {
  if (owner !== 'other') {
    if (owner === 'person') {
      if (name === 'id')
        return readIdentifier(draft, value, fieldIn(field, key), ID_SIZE_BYTES_MAX);
      if (name === 'email')
        return readIdentifier(draft, value, fieldIn(field, key), EMAIL_SIZE_BYTES_MAX);
    }
    if (name === 'created_at') {
      const cleaned = cleanMember(draft, value);
      return typeof cleaned === 'number'
        ? secondsFromMilliseconds(draft, cleaned, fieldIn(field, key))
        : cleaned;
    }
  }
  return cleanMember(draft, value);
}

/** An identifier among the attributes is kept exactly, like one outside them; null or blank asks for its removal. */
function readIdentifier(draft: CallDraft, value: Json, field: string, sizeBytesMax: number): Json {
  return readExactText(draft, value, field, sizeBytesMax) ?? null;
}

/** The key's one spelling; `undefined` where the call has it under that spelling too. */
function storedName(
  draft: CallDraft,
  source: JsonObject,
  key: string,
  owner: AttributeOwner,
): string | undefined {
  // Called for every key of every attribute, so the first letter is tested first, which rules out nearly all.
  if (key.charCodeAt(0) === 99) {
    const name = canonicalName(draft, key, owner);
    if (name !== key) return Object.hasOwn(source, name) ? undefined : name;
  }
  return cleanKey(draft, key);
}

function canonicalName(draft: CallDraft, key: string, owner: AttributeOwner): string {
  switch (key) {
    case 'createdAt':
      return draft.dialect === 'pipelines' && owner !== 'other' ? 'created_at' : key;
    case 'cio_subscription_preferences':
    case 'cio_email_tracking_consent':
    case 'cio_sdk_version':
      return `svc${key.slice(3)}`;
    default:
      return key.startsWith('cio_subscription_preferences.')
        ? cleanKey(draft, `svc${key.slice(3)}`)
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
