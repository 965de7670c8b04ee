/**
 * Track v1 form submissions (`ingestion-conventions.md` §1.1). Step 4 of the walk, like `track-v1.ts`.
 *
 * Fields are strings, as a browser's form has no other; numbers and booleans are taken as their text,
 * an empty field as not filled in. An anonymous id is an identifier here too: kept exactly, or refused.
 */
import { cleanObject } from '../parsing/clean-json.ts';
import { readExactText, readPersonIdentifiers, readRequiredText } from '../parsing/identifiers.ts';
import { isJsonObject, setKey, type JsonObject } from '../values/json.ts';
import { ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import {
  type CallDraft,
  fieldIn,
  isBodyObject,
  type ParseContext,
  type Parsed,
} from '../parsing/parse.ts';
import { readPersonValue } from '../parsing/read-attributes.ts';
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
    if (data == null) draft.refuse('required', 'data', 'data is required');
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
  for (const key in data) {
    const value = data[key];
    if (CONTROL_KEYS.has(key) || value === undefined || value === null || value === '') continue;
    if (key === 'anonymous_id') {
      const anonymousId = readExactText(draft, value, 'data.anonymous_id', ID_SIZE_BYTES_MAX);
      if (anonymousId !== undefined) fields[key] = anonymousId;
    } else if (
      typeof value === 'object' ||
      (typeof value === 'number' && !Number.isFinite(value))
    ) {
      const field = fieldIn('data', key);
      draft.refuse('invalid', field, `${field} must be a string`, value);
    } else {
      const field = readPersonValue(draft, nameOf(key), String(value), 'data', key);
      if (field !== undefined) setKey(fields, nameOf(key), field);
    }
  }
  return cleanObject(draft, fields, 'data');
}

/** Preferences have one name, as among all attributes. */
const nameOf = (key: string): string =>
  key.startsWith('cio_subscription_preferences') ? `svc${key.slice(3)}` : key;
