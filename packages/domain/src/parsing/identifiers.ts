/**
 * Who and what a call is about: identifiers of people and objects (`ingestion-conventions.md` §1.2, §2.2, §3.5).
 *
 * In a v1 path and in Pipelines one value is an id, an email or a svc_id, known by its shape; in v2
 * the key says which. Finite numbers count as their text, for some clients send ids as numbers; null,
 * empty and blank count as absent.
 *
 * An identifier that cannot be kept exactly is refused, never mended: two people must not become
 * one because both their ids held a character that Postgres cannot store, or more digits than a
 * double has.
 */
import { EMAIL_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import type { ObjectIdentifier, PersonIdentifier } from '../operations/operation.ts';
import { type CallDraft, fieldIn } from './parse.ts';
import { isLongerThan, isStorableText, utf8SizeBytes } from '../values/storable-text.ts';

/** Postgres `integer`. */
export const INTEGER_MAX = 2_147_483_647;

/** One `@`; a local part and a domain with a dot; no spaces, quotes, brackets or list signs. Linear: no two parts can share a character. */
const EMAIL = /^[^\s\p{Cc}"(),:;<>@[\\\]]+@(?:[\p{L}\p{N}\p{M}-]+\.)+[\p{L}\p{N}\p{M}-]{2,}$/u;

const E164 = /^\+[1-9]\d{6,14}$/;

/** True for a number in E.164 form: no other can identify anybody. */
export const isPhone = (text: string): boolean => E164.test(text);

/**
 * True for what the service takes for an email address when nothing else says so. Deliberately
 * plainer than RFC 5322: quoted local parts and literal addresses are ids here.
 */
export function isEmail(text: string): boolean {
  return text.includes('@') && EMAIL.test(text);
}

/** Hexadecimal, as `svc-id.ts` writes them. `svc_payments` is a client's own id. */
const PREFIXED_SVC_ID = /^(?:cio|svc)_[0-9a-f]{6,}$/;

/** Tells the kind from the shape: a prefixed svc_id (kept without the prefix), an email, else an id. */
export function recognisePerson(text: string): PersonIdentifier {
  if (text.charCodeAt(3) === 95 && PREFIXED_SVC_ID.test(text))
    return { kind: 'svc_id', value: text.slice(4) };
  return { kind: isEmail(text) ? 'email' : 'id', value: text };
}

/** An exact text: id, email, token, delivery. `undefined` where it is absent, and where it was refused. */
export function readExactText(
  draft: CallDraft,
  value: unknown,
  field: string,
  sizeBytesMax: number,
): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') return readNumberAsText(draft, value, field);
  if (value === '' || (value.charCodeAt(0) <= 0x20 && value.trim() === '')) return undefined;
  if (draft.checksTexts && !isStorableText(value)) {
    draft.refuse(
      'invalid',
      field,
      `${field} holds U+0000 or half of a surrogate pair, which cannot be stored`,
      value,
    );
    return undefined;
  }
  return isWithin(draft, value, field, sizeBytesMax) ? value : undefined;
}

/** An id of a person whose kind its shape tells: `userId`, a v1 path. */
export function readPerson(
  draft: CallDraft,
  value: unknown,
  field: string,
): PersonIdentifier | undefined {
  const text = readExactText(draft, value, field, EMAIL_SIZE_BYTES_MAX);
  if (text === undefined) return undefined;
  const person = recognisePerson(text);
  return person.kind === 'email' || isWithin(draft, text, field, ID_SIZE_BYTES_MAX)
    ? person
    : undefined;
}

/**
 * The person of a v1 path, percent-decoded. What is known of the body's texts says nothing about the path, so it is
 * always checked.
 */
export function readPathPerson(draft: CallDraft, identifier: string): PersonIdentifier | undefined {
  if (!isStorableText(identifier)) {
    draft.refuse(
      'invalid',
      'identifier',
      'identifier in the path holds a character that cannot be stored',
      identifier,
    );
    return undefined;
  }
  const person = readPerson(draft, identifier, 'identifier');
  if (person === undefined && !draft.isRefused)
    draft.refuse('required', 'identifier', 'identifier in the path is empty');
  return person;
}

/** Which kinds a v2 `identifiers` object may hold, besides id, email and svc_id. */
export interface PersonKinds {
  readonly mayBePhone: boolean;
  readonly mayBeAnonymous: boolean;
}

/** Track v2 `identifiers` of a person: exactly one key. `undefined` after an issue. */
export function readPersonIdentifiers(
  draft: CallDraft,
  value: unknown,
  field: string,
  kinds: PersonKinds,
): PersonIdentifier | undefined {
  if (!isIdentifiersObject(draft, value, field)) return undefined;
  const issueCountBefore = draft.issues.length;
  const id = readExactText(draft, value.id, fieldIn(field, 'id'), ID_SIZE_BYTES_MAX);
  const email = readExactText(draft, value.email, fieldIn(field, 'email'), EMAIL_SIZE_BYTES_MAX);
  const svcIdKey = value.svc_id == null ? 'cio_id' : 'svc_id';
  const svcId = readExactText(draft, value[svcIdKey], fieldIn(field, svcIdKey), ID_SIZE_BYTES_MAX);
  const phone = kinds.mayBePhone
    ? readPhone(draft, value.phone, fieldIn(field, 'phone'))
    : undefined;
  const anonymousId = kinds.mayBeAnonymous
    ? readExactText(draft, value.anonymous_id, fieldIn(field, 'anonymous_id'), ID_SIZE_BYTES_MAX)
    : undefined;
  if (draft.issues.length > issueCountBefore) return undefined;

  const found: PersonIdentifier[] = [];
  if (id !== undefined) found.push({ kind: 'id', value: id });
  if (email !== undefined) found.push({ kind: 'email', value: email });
  if (svcId !== undefined) found.push({ kind: 'svc_id', value: withoutPrefix(svcId) });
  if (phone !== undefined) found.push({ kind: 'phone', value: phone });
  if (anonymousId !== undefined) found.push({ kind: 'anonymous_id', value: anonymousId });
  if (found.length === 1) return found[0];
  const choice = `id, email${kinds.mayBePhone ? ', phone' : ''}${kinds.mayBeAnonymous ? ', anonymous_id' : ''} or svc_id`;
  const code = found.length === 0 ? 'required' : 'invalid';
  draft.refuse(code, field, `${field} must hold exactly one of ${choice}`);
  return undefined;
}

/** Track `identifiers` of an object: `object_type_id` and `object_id`, or `svc_object_id`. `undefined` after an issue. */
export function readObjectIdentifiers(
  draft: CallDraft,
  value: unknown,
  field: string,
): ObjectIdentifier | undefined {
  if (!isIdentifiersObject(draft, value, field)) return undefined;
  const issueCountBefore = draft.issues.length;
  const svcKey = value.svc_object_id == null ? 'cio_object_id' : 'svc_object_id';
  const svcObjectId = readExactText(
    draft,
    value[svcKey],
    fieldIn(field, svcKey),
    ID_SIZE_BYTES_MAX,
  );
  if (svcObjectId !== undefined) {
    if (value.object_id == null) return { svcObjectId: withoutPrefix(svcObjectId) };
    draft.refuse(
      'invalid',
      field,
      `${field} must hold either object_type_id and object_id, or svc_object_id`,
    );
    return undefined;
  }
  if (draft.issues.length > issueCountBefore) return undefined;
  const typeField = fieldIn(field, 'object_type_id');
  const objectTypeId = readObjectTypeId(draft, value.object_type_id, typeField);
  if (objectTypeId === undefined && draft.issues.length === issueCountBefore)
    draft.refuse('required', typeField, `${typeField} is required`);
  const objectId = readObjectId(draft, value.object_id, fieldIn(field, 'object_id'));
  return objectTypeId === undefined || objectId === undefined
    ? undefined
    : { objectTypeId, objectId };
}

/** An object's own id, which must be there. */
export function readObjectId(draft: CallDraft, value: unknown, field: string): string | undefined {
  return readRequiredText(draft, value, field, ID_SIZE_BYTES_MAX);
}

/** An exact text that must be there. `undefined` after an issue. */
export function readRequiredText(
  draft: CallDraft,
  value: unknown,
  field: string,
  sizeBytesMax: number,
): string | undefined {
  const issueCountBefore = draft.issues.length;
  const text = readExactText(draft, value, field, sizeBytesMax);
  if (text === undefined && draft.issues.length === issueCountBefore)
    draft.refuse('required', field, `${field} is required`);
  return text;
}

/** An object type: a positive integer, also as text. `undefined` where it is absent, and where it was refused. */
export function readObjectTypeId(
  draft: CallDraft,
  value: unknown,
  field: string,
): number | undefined {
  return value === undefined || value === null || value === ''
    ? undefined
    : readPositiveInteger(draft, value, field);
}

/** A positive integer of at most 2,147,483,647, also as text. `undefined` after an issue. */
export function readPositiveInteger(
  draft: CallDraft,
  value: unknown,
  field: string,
): number | undefined {
  const number = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value;
  if (
    typeof number === 'number' &&
    Number.isInteger(number) &&
    number >= 1 &&
    number <= INTEGER_MAX
  )
    return number;
  draft.refuse('invalid', field, `${field} must be an integer from 1 to ${INTEGER_MAX}`, value);
  return undefined;
}

function readPhone(draft: CallDraft, value: unknown, field: string): string | undefined {
  const phone = readExactText(draft, value, field, ID_SIZE_BYTES_MAX);
  if (phone === undefined) return undefined;
  if (!draft.context.phoneIdentifies) {
    draft.refuse(
      'unsupported',
      field,
      `${field} does not identify people in this workspace`,
      phone,
    );
  } else if (!isPhone(phone)) {
    draft.refuse(
      'invalid',
      field,
      `${field} must be a number in E.164 form, like +4915112345678`,
      phone,
    );
  } else {
    return phone;
  }
  return undefined;
}

function readNumberAsText(draft: CallDraft, value: unknown, field: string): string | undefined {
  if (typeof value !== 'number') {
    draft.refuse('invalid', field, `${field} must be a string`, value);
  } else if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    draft.refuse(
      'invalid',
      field,
      `${field} has more digits than a JSON number keeps; send it as a string`,
      value,
    );
  } else {
    return String(value);
  }
  return undefined;
}

function isWithin(draft: CallDraft, text: string, field: string, sizeBytesMax: number): boolean {
  if (!isLongerThan(text, sizeBytesMax)) return true;
  draft.refuse(
    'too_long',
    field,
    `${field} is ${utf8SizeBytes(text)} bytes long; the bound is ${sizeBytesMax}`,
    text,
  );
  return false;
}

function isIdentifiersObject(draft: CallDraft, value: unknown, field: string): value is JsonObject {
  if (isJsonObject(value)) return true;
  if (value == null) draft.refuse('required', field, `${field} is required`);
  else draft.refuse('invalid', field, `${field} must be an object`, value);
  return false;
}

/** v2 wants svc ids without the prefix that marks them elsewhere; one that has it is taken too. */
function withoutPrefix(svcId: string): string {
  return svcId.startsWith('cio_') || svcId.startsWith('svc_') ? svcId.slice(4) : svcId;
}
