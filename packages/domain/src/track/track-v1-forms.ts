/**
 * Track v1 form submissions (`ingestion-conventions.md` §1.1). Step 4 of the walk, like `track-v1.ts`.
 *
 * Fields are strings, as a browser's form has no other; numbers and booleans are taken as their text,
 * an empty field as not filled in. An anonymous id is an identifier here too: kept exactly, or refused.
 */
import { cleanObject } from '../parsing/clean-json.ts';
import { readExactText, readPersonIdentifiers, readRequiredText } from '../parsing/identifiers.ts';
import { isJsonObject, setKey, type JsonObject } from '../values/json.ts';
import { ATTRIBUTE_COUNT_MAX, ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import {
  type CallDraft,
  fieldIn,
  isBodyObject,
  type ParseContext,
  type Parsed,
} from '../parsing/parse.ts';
import { readPersonValue, storedName } from '../parsing/read-attributes.ts';
import { PERSON_CONTROL_KEYS } from '../parsing/take-identify-person.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import { pathDraft } from './track-call.ts';

/** Names of the form itself, which some pages send among its fields, and the person's, which the operation has beside them. */
const CONTROL_KEYS: ReadonlySet<string> = new Set([
  'form_id',
  'form_name',
  'form_type',
  'form_url',
  'form_url_param',
  'id',
  'email',
]);

/** `POST /api/v1/forms/{form_id}/submit` */
export function parseFormSubmission(formId: string, body: unknown, context: ParseContext): Parsed {
  const draft = pathDraft(context);
  const form = readRequiredText(draft, formId, 'form_id', ID_SIZE_BYTES_MAX);
  if (!isBodyObject(draft, body)) return draft.finish();
  const { data } = body;
  if (!isJsonObject(data)) {
    if (isAbsent(data)) draft.refuse('required', 'data', 'data is required');
    else draft.refuse('invalid', 'data', 'data must be an object', data);
    return draft.finish();
  }
  const { id, email } = data;
  const kinds = { mayBePhone: false, mayBeAnonymous: false };
  const person = readPersonIdentifiers(
    draft,
    { id: id ?? null, email: email ?? null },
    'data',
    kinds,
  );
  const fields = readFields(draft, data);
  const { environmentId, receivedAtMs } = context;
  if (form !== undefined && person !== undefined) {
    draft.take({ type: 'form.submit', environmentId, receivedAtMs, formId: form, person, fields });
  }
  return draft.finish();
}

function readFields(draft: CallDraft, data: JsonObject): JsonObject {
  const fields: JsonObject = {};
  let count = 0;
  for (const key in data) {
    const value = data[key];
    if (CONTROL_KEYS.has(key) || value === undefined || value === null || value === '') continue;
    const field = fieldIn('data', key);
    if (key === 'anonymous_id') {
      const anonymousId = readExactText(draft, value, field, ID_SIZE_BYTES_MAX);
      if (anonymousId !== undefined) fields[key] = anonymousId;
    } else if (PERSON_CONTROL_KEYS.has(key)) {
      const problem = `${field} is no field of a form; it is left out`;
      draft.warn('value_not_understood', field, problem, value);
    } else if (
      typeof value === 'object' ||
      (typeof value === 'number' && !Number.isFinite(value))
    ) {
      draft.refuse('invalid', field, `${field} must be a string`, value);
    } else {
      const name = storedName(draft, data, key, 'data', 'person');
      const read =
        name === undefined ? undefined : readPersonValue(draft, name, String(value), 'data', key);
      if (name !== undefined && read !== undefined) setKey(fields, name, read);
      count++;
    }
  }
  if (count > ATTRIBUTE_COUNT_MAX)
    draft.refuse(
      'too_large',
      'data',
      `data has ${count} fields; the bound is ${ATTRIBUTE_COUNT_MAX}`,
    );
  return cleanObject(draft, fields, 'data');
}
