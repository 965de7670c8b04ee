/**
 * Makes clients' structures safe to keep, copying only the values that change.
 *
 * One walk over a value that will be stored. Texts that Postgres refuses get U+FFFD (keys too), and Pipelines' ISO 8601
 * date-times become Unix seconds. Nesting beyond `NESTING_DEPTH_MAX` and numbers beyond a double (`1e999`) are errors.
 * Whole numbers that a double rounds (RFC 8259 §6) are warnings. An untouched value is returned as it came.
 *
 * The walk only notes that there was a flaw. Its place is looked up afterwards, so that the usual case builds no paths.
 */
import { setKey, type Json, type JsonObject } from '../values/json.ts';
import { NESTING_DEPTH_MAX } from '../operations/limits.ts';
import { type CallDraft, fieldIn } from './parse.ts';
import { isStorableText, toStorableText } from '../values/storable-text.ts';
import { parseIsoMs } from '../value-rules/iso-instant.ts';

const TOO_DEEP = 1;
const NOT_FINITE = 2;
const REPLACED = 4;
const ROUNDED = 8;

/** Ids are 64 bits wide at most; a larger number is a measurement, and was no exact number. */
const ID_MAX = 2 ** 64;

/** Cleans a whole object: `properties`, `data`. */
export function cleanObject(draft: CallDraft, source: JsonObject, field: string): JsonObject {
  const cleaned = cleanLevel(draft, source, 1);
  if (draft.flaws !== 0) reportFlaws(draft, source, field);
  return cleaned;
}

/** Cleans one value of an object whose keys the caller goes through itself; call `reportFlaws` after the last. */
export function cleanMember(draft: CallDraft, value: Json): Json {
  return cleanValue(draft, value, 2);
}

/** The key as it can be stored; see `cleanMember`. */
export function cleanKey(draft: CallDraft, key: string): string {
  if (!draft.checksTexts || isStorableText(key)) return key;
  draft.flaws |= REPLACED;
  return toStorableText(key);
}

/** Turns the flaws met since the last call into issues that name the first place of each. */
export function reportFlaws(draft: CallDraft, root: JsonObject, field: string): void {
  const { flaws } = draft;
  if (flaws === 0) return;
  draft.flaws = 0;
  if (flaws & TOO_DEEP) {
    const { path } = locate(root, field, 1, isTooDeep);
    draft.refuse('invalid', path, `${path} is nested deeper than ${NESTING_DEPTH_MAX} levels`);
  }
  if (flaws & NOT_FINITE) {
    const { path } = locate(root, field, 1, isNotFinite);
    draft.refuse('invalid', path, `${path} is a number beyond the range of a double`);
  }
  if (flaws & ROUNDED) {
    const { path, value } = locate(root, field, 1, isRounded);
    draft.warn(
      'number_rounded',
      path,
      `${path} is a whole number beyond 2^53, so it is rounded; send it as a text to keep every digit`,
      value,
    );
  }
  if (flaws & REPLACED) {
    const { path, value } = locate(root, field, 1, isUnstorable);
    draft.correct(
      'characters_replaced',
      path,
      `${path} holds U+0000, half of a surrogate pair or bytes that are not UTF-8, which cannot be stored`,
      'U+FFFD took its place',
      value,
    );
  }
}

/** A new object with the keys of `source` that come before `key`. */
export function copyBefore(source: JsonObject, key: string): JsonObject {
  const copy: JsonObject = {};
  for (const earlier in source) {
    if (earlier === key) break;
    setKey(copy, earlier, source[earlier] as Json);
  }
  return copy;
}

function cleanValue(draft: CallDraft, value: Json, depth: number): Json {
  switch (typeof value) {
    case 'string':
      return cleanText(draft, value);
    case 'number':
      if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
        if (!Number.isFinite(value)) draft.flaws |= NOT_FINITE;
        else if (Math.abs(value) <= ID_MAX) draft.flaws |= ROUNDED;
      }
      return value;
    case 'object':
      if (value === null) return null;
      return Array.isArray(value)
        ? cleanList(draft, value, depth)
        : cleanLevel(draft, value, depth);
    default:
      return value;
  }
}

/**
 * "The service converts ISO 8601 timestamps from the Pipelines API to Unix timestamps internally"
 * (`ingestion-webhooks.md` §2), and segments recognise a timestamp as a number. Only a full date-time with a zone is
 * one: a date alone may be a birthday, and without a zone it names no instant. A Unix timestamp has whole seconds, so
 * the fraction goes.
 */
function cleanText(draft: CallDraft, text: string): Json {
  if (draft.dialect === 'pipelines') {
    const instantMs = parseIsoMs(text, true);
    if (instantMs !== undefined) return Math.floor(instantMs / 1_000);
  }
  return cleanKey(draft, text);
}

function cleanLevel(draft: CallDraft, source: JsonObject, depth: number): JsonObject {
  if (depth > NESTING_DEPTH_MAX) {
    draft.flaws |= TOO_DEEP;
    return source;
  }
  let copy: JsonObject | undefined;
  for (const key in source) {
    const value = source[key] as Json;
    const cleaned = cleanValue(draft, value, depth + 1);
    const name = cleanKey(draft, key);
    if (copy === undefined) {
      if (cleaned === value && name === key) continue;
      copy = copyBefore(source, key);
    }
    setKey(copy, name, cleaned);
  }
  return copy ?? source;
}

function cleanList(draft: CallDraft, source: Json[], depth: number): Json[] {
  if (depth > NESTING_DEPTH_MAX) {
    draft.flaws |= TOO_DEEP;
    return source;
  }
  let copy: Json[] | undefined;
  for (let index = 0; index < source.length; index++) {
    const value = source[index] as Json;
    const cleaned = cleanValue(draft, value, depth + 1);
    if (cleaned === value) continue;
    copy ??= source.slice();
    copy[index] = cleaned;
  }
  return copy ?? source;
}

type IsFlaw = (value: unknown, depth: number) => boolean;

const isTooDeep: IsFlaw = (value, depth) =>
  depth > NESTING_DEPTH_MAX && typeof value === 'object' && value !== null;
const isNotFinite: IsFlaw = (value) => typeof value === 'number' && !Number.isFinite(value);
const isRounded: IsFlaw = (value) =>
  typeof value === 'number' &&
  Math.abs(value) > Number.MAX_SAFE_INTEGER &&
  Math.abs(value) <= ID_MAX;
const isUnstorable: IsFlaw = (value) => typeof value === 'string' && !isStorableText(value);

interface Place {
  readonly path: string;
  readonly value: unknown;
}

/** The first place with the flaw, depth first; the root if no place has it. */
function locate(root: unknown, path: string, depth: number, isFlaw: IsFlaw): Place {
  return find(root, path, depth, isFlaw) ?? { path, value: undefined };
}

function find(value: unknown, path: string, depth: number, isFlaw: IsFlaw): Place | undefined {
  if (isFlaw(value, depth)) return { path, value };
  if (typeof value !== 'object' || value === null || depth > NESTING_DEPTH_MAX) return undefined;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const place = find(value[index], fieldIn(path, index), depth + 1, isFlaw);
      if (place) return place;
    }
    return undefined;
  }
  for (const key in value) {
    const keyPath = fieldIn(path, key);
    if (isFlaw(key, 0)) return { path: keyPath, value: key };
    const place = find((value as JsonObject)[key], keyPath, depth + 1, isFlaw);
    if (place) return place;
  }
  return undefined;
}
