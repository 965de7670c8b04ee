/**
 * Track v1 about people: one function a route (`ingestion-conventions.md` §1.1).
 *
 * Step 4 of the walk, after `intake/src/auth/rate-limit.ts` and before `intake/src/calls/accept.ts`; their input and
 * result is in `parse.ts`. The other routes are in `track-v1-messages.ts`, `track-v1-forms.ts`, `track-v1-segments.ts`.
 *
 * Path values come percent-decoded. Routes that need no body accept any: clients send `{}`, an empty body, or a JSON
 * content type with an empty body.
 */
import {
  isDeviceObject,
  readDeviceToken,
  takeDeviceDeletion,
  takeTrackDevice,
} from '../parsing/devices.ts';
import { readData, readEventId, readEventName, takeEvent } from '../parsing/event-fields.ts';
import { readExactText, readPathPerson } from '../parsing/identifiers.ts';
import { takeIdentifyPerson } from '../parsing/take-identify-person.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import {
  EVENT_NAME_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
  PAGE_NAME_SIZE_BYTES_MAX,
} from '../operations/limits.ts';
import type { PersonIdentifier, TrackEvent } from '../operations/operation.ts';
import { CallDraft, isBodyObject, type ParseContext, type Parsed } from '../parsing/parse.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import { pathDraft, readTimestamp, takeMerge } from './track-call.ts';

/** `PUT /api/v1/customers/{identifier}`. All attributes are optional, so `null` (Go's nil map) is an empty body. */
export function parseIdentify(identifier: string, body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  const person = readPathPerson(draft, identifier);
  const attributes = body === null ? {} : body;
  if (person && isBodyObject(draft, attributes))
    takeIdentifyPerson(draft, person, attributes, '', {});
  return draft.finish();
}

/** `DELETE /api/v1/customers/{identifier}` */
export function parseDeletePerson(identifier: string, context: ParseContext): Parsed {
  return parsePersonOnly('person.delete', identifier, context);
}

/** `POST /api/v1/customers/{identifier}/suppress` */
export function parseSuppressPerson(identifier: string, context: ParseContext): Parsed {
  return parsePersonOnly('person.suppress', identifier, context);
}

/** `POST /api/v1/customers/{identifier}/unsuppress` */
export function parseUnsuppressPerson(identifier: string, context: ParseContext): Parsed {
  return parsePersonOnly('person.unsuppress', identifier, context);
}

/** `PUT /api/v1/customers/{identifier}/devices` */
export function parseAddDevice(identifier: string, body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  const person = readPathPerson(draft, identifier);
  if (person && isBodyObject(draft, body) && isDeviceObject(draft, body.device)) {
    takeTrackDevice(draft, person, body.device, 'id');
  }
  return draft.finish();
}

/** `DELETE /api/v1/customers/{identifier}/devices/{device_id}` */
export function parseDeleteDevice(
  identifier: string,
  deviceToken: string,
  context: ParseContext,
): Parsed {
  const draft = pathDraft(context);
  const person = readPathPerson(draft, identifier);
  const token = readDeviceToken(draft, deviceToken, 'device_id');
  if (person && token !== undefined) takeDeviceDeletion(draft, person, token);
  return draft.finish();
}

/** `POST` and `PUT /api/v1/customers/{identifier}/events` */
export function parsePersonEvent(identifier: string, body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  const person = readPathPerson(draft, identifier);
  if (person && isBodyObject(draft, body)) {
    const anonymousId = readExactText(draft, body.anonymous_id, 'anonymous_id', ID_SIZE_BYTES_MAX);
    takeTrackEvent(draft, person, anonymousId, body);
  }
  return draft.finish();
}

/** `POST /api/v1/events`: an anonymous event, or with an empty anonymous id an invite event to `data.recipient`. */
export function parseAnonymousEvent(body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  if (!isBodyObject(draft, body)) return draft.finish();
  const anonymousId = readExactText(draft, body.anonymous_id, 'anonymous_id', ID_SIZE_BYTES_MAX);
  if (anonymousId !== undefined) {
    takeTrackEvent(draft, { kind: 'anonymous_id', value: anonymousId }, undefined, body);
  } else {
    if (!draft.isRefused && !hasRecipient(body.data)) {
      draft.refuse(
        'required',
        'data.recipient',
        'data.recipient is required if anonymous_id is empty',
      );
    }
    takeTrackEvent(draft, null, undefined, body);
  }
  return draft.finish();
}

/** `POST /api/v1/merge_customers` */
export function parseMergePeople(body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'track');
  if (isBodyObject(draft, body)) takeMerge(draft, body);
  return draft.finish();
}

function parsePersonOnly(
  type: 'person.delete' | 'person.suppress' | 'person.unsuppress',
  identifier: string,
  context: ParseContext,
): Parsed {
  const draft = new CallDraft(context, 'track');
  const person = readPathPerson(draft, identifier);
  const { environmentId, receivedAtMs } = context;
  if (person) draft.take({ type, environmentId, receivedAtMs, person });
  return draft.finish();
}

function takeTrackEvent(
  draft: CallDraft,
  person: PersonIdentifier | null,
  anonymousId: string | undefined,
  body: JsonObject,
): void {
  const kind = readKind(draft, body.type);
  const sizeBytesMax = kind === 'event' ? EVENT_NAME_SIZE_BYTES_MAX : PAGE_NAME_SIZE_BYTES_MAX;
  const name = readEventName(draft, body.name, 'name', sizeBytesMax);
  const data = readData(draft, body.data, 'data');
  const occurredAtMs = readTimestamp(draft, body);
  const eventId = readEventId(draft, body.id, 'id');
  if (name !== undefined)
    takeEvent(draft, kind, person, anonymousId, eventId, name, data, occurredAtMs);
}

function readKind(draft: CallDraft, value: unknown): TrackEvent['kind'] {
  if (value === 'page' || value === 'screen') return value;
  if (!isAbsent(value) && value !== 'event') {
    draft.refuse('invalid', 'type', 'type must be event, page or screen', value);
  }
  return 'event';
}

function hasRecipient(data: unknown): boolean {
  if (!isJsonObject(data)) return false;
  const { recipient } = data;
  return typeof recipient === 'string' ? !isAbsent(recipient) : typeof recipient === 'number';
}
