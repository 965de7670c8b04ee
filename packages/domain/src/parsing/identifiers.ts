/**
 * Identifiers of people and objects in calls (`ingestion-conventions.md` §1.2, §2.2, §3.5).
 *
 * In a v1 path and in Pipelines one value is an id, an email or a svc_id, known by its shape; in v2 the key names the
 * kind. Finite numbers count as their text, for some clients send ids as numbers; null, empty and blank count as
 * absent.
 *
 * `value-rules/value-rules.ts` judges identifiers, emails and numbers. It removes blanks at the ends, which an issue
 * records. A value that cannot be kept exactly is refused, never mended. Two people must not become one because both
 * their ids held a character that Postgres cannot store, or more digits than a double has.
 */
import { EMAIL_SIZE_BYTES_MAX, ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import type { ObjectIdentifier, PersonIdentifier } from '../operations/operation.ts';
import { type CallDraft, fieldIn } from './parse.ts';
import { isEmail } from '../value-rules/identifier-rule.ts';
import { VALUE_RULES } from '../value-rules/value-rules.ts';
import { isAbsent, type Fault, type Verdict } from '../value-rules/verdict.ts';
import { isLongerThan, isStorableText, utf8SizeBytes } from '../values/storable-text.ts';

const E164 = /^\+[1-9]\d{6,14}$/;

/** True for a number in E.164 form: no other can identify anybody. */
export const isPhone = (text: string): boolean => E164.test(text);

/** Hexadecimal, as `svc-id.ts` writes them. `svc_payments` is a client's own id. */
const PREFIXED_SVC_ID = /^(?:cio|svc)_[0-9a-f]{6,}$/;

/** Recognises the kind by the shape: a prefixed svc_id (kept without the prefix), an email, else an id. */
export function recognisePerson(text: string): PersonIdentifier {
  if (text.charCodeAt(3) === 95 && PREFIXED_SVC_ID.test(text))
    return { kind: 'svc_id', value: text.slice(4) };
  return { kind: isEmail(text) ? 'email' : 'id', value: text };
}

/** An exact text: id, token, delivery. `undefined` if it is absent or was refused. */
export function readExactText(
  draft: CallDraft,
  value: unknown,
  field: string,
  sizeBytesMax: number,
): string | undefined {
  const verdict = VALUE_RULES.identifier(value, sizeBytesMax, draft.checksTexts);
  return takeIdentifier(draft, verdict, value, field);
}

/** Text that must be an email address. `undefined` if it is absent or was refused. */
export function readEmail(draft: CallDraft, value: unknown, field: string): string | undefined {
  const verdict = VALUE_RULES.email(value, EMAIL_SIZE_BYTES_MAX, draft.checksTexts);
  return takeIdentifier(draft, verdict, value, field);
}

function takeIdentifier(
  draft: CallDraft,
  verdict: Verdict<string>,
  value: unknown,
  field: string,
): string | undefined {
  if (verdict.outcome === 'absent') return undefined;
  if (verdict.outcome === 'read') {
    if (verdict.change === 'trimmed')
      draft.warn(
        'identifier_trimmed',
        field,
        `${field} has blanks or line breaks at its ends; they were removed`,
        value,
      );
    return verdict.value;
  }
  refuseValue(draft, verdict, value, field);
  return undefined;
}

function refuseValue(draft: CallDraft, fault: Fault, value: unknown, field: string): void {
  const code = fault.code === 'too_long' ? 'too_long' : 'invalid';
  draft.refuse(code, field, `${field} ${fault.because}`, value);
}

/** An id of a person whose kind is known by its shape: `userId`, a v1 path. */
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
 * The person of a v1 path, percent-decoded. It is always checked: facts about the body's texts do not hold for the
 * path.
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

/** Kinds that a v2 `identifiers` object may hold, besides id, email and svc_id. */
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
  const errorCountBefore = draft.errorCount;
  const id = readExactText(draft, value.id, fieldIn(field, 'id'), ID_SIZE_BYTES_MAX);
  const email = readEmail(draft, value.email, fieldIn(field, 'email'));
  const svcIdKey = isAbsent(value.svc_id) ? 'cio_id' : 'svc_id';
  const svcId = readExactText(draft, value[svcIdKey], fieldIn(field, svcIdKey), ID_SIZE_BYTES_MAX);
  const phone = kinds.mayBePhone
    ? readPhone(draft, value.phone, fieldIn(field, 'phone'))
    : undefined;
  const anonymousId = kinds.mayBeAnonymous
    ? readExactText(draft, value.anonymous_id, fieldIn(field, 'anonymous_id'), ID_SIZE_BYTES_MAX)
    : undefined;
  if (draft.errorCount > errorCountBefore) return undefined;

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
  const errorCountBefore = draft.errorCount;
  const svcKey = isAbsent(value.svc_object_id) ? 'cio_object_id' : 'svc_object_id';
  const svcObjectId = readExactText(
    draft,
    value[svcKey],
    fieldIn(field, svcKey),
    ID_SIZE_BYTES_MAX,
  );
  if (svcObjectId !== undefined) {
    if (isAbsent(value.object_id)) return { svcObjectId: withoutPrefix(svcObjectId) };
    draft.refuse(
      'invalid',
      field,
      `${field} must hold either object_type_id and object_id, or svc_object_id`,
    );
    return undefined;
  }
  if (draft.errorCount > errorCountBefore) return undefined;
  const typeField = fieldIn(field, 'object_type_id');
  const objectTypeId = readObjectTypeId(draft, value.object_type_id, typeField);
  if (objectTypeId === undefined && draft.errorCount === errorCountBefore)
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
  return requirePresent(draft, field, (fieldName) =>
    readExactText(draft, value, fieldName, sizeBytesMax),
  );
}

/** An email address that must be there. `undefined` after an issue. */
export function readRequiredEmail(
  draft: CallDraft,
  value: unknown,
  field: string,
): string | undefined {
  return requirePresent(draft, field, (fieldName) => readEmail(draft, value, fieldName));
}

function requirePresent(
  draft: CallDraft,
  field: string,
  read: (field: string) => string | undefined,
): string | undefined {
  const errorCountBefore = draft.errorCount;
  const text = read(field);
  if (text === undefined && draft.errorCount === errorCountBefore)
    draft.refuse('required', field, `${field} is required`);
  return text;
}

/** An object type: a positive integer, also as text. `undefined` if it is absent or was refused. */
export function readObjectTypeId(
  draft: CallDraft,
  value: unknown,
  field: string,
): number | undefined {
  return isAbsent(value) ? undefined : readPositiveInteger(draft, value, field);
}

/** A positive integer of at most 2,147,483,647, also as text. `undefined` after an issue. */
export function readPositiveInteger(
  draft: CallDraft,
  value: unknown,
  field: string,
): number | undefined {
  const verdict = VALUE_RULES.positiveInteger(value);
  if (verdict.outcome === 'read') return verdict.value;
  if (verdict.outcome === 'absent') draft.refuse('required', field, `${field} is required`);
  else refuseValue(draft, verdict, value, field);
  return undefined;
}

function readPhone(draft: CallDraft, value: unknown, field: string): string | undefined {
  const phone = readExactText(draft, value, field, ID_SIZE_BYTES_MAX);
  if (phone === undefined) return undefined;
  if (!draft.context.phoneIdentifies) {
    draft.refuse(
      'unsupported',
      field,
      `${field} does not identify people in this workspace; send an id, an email or a svc_id`,
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
  if (isAbsent(value)) draft.refuse('required', field, `${field} is required`);
  else draft.refuse('invalid', field, `${field} must be an object`, value);
  return false;
}

/** v2 wants svc ids without the prefix that marks them elsewhere; one that has it is taken too. */
function withoutPrefix(svcId: string): string {
  return svcId.startsWith('cio_') || svcId.startsWith('svc_') ? svcId.slice(4) : svcId;
}
