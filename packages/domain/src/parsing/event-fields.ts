/**
 * Common fields of events of all three interfaces: name, id and data (`ingestion-webhooks.md` §2,
 * `ingestion-conventions.md` §1.4).
 *
 * An event id is compared exactly, except that a ULID is the same in either letter case (`ulid.ts`). An id that
 * cannot be kept exactly is refused: altered, it could make two events look like one, and the second would be
 * dropped.
 */
import { isAbsent, trimmed } from '../value-rules/verdict.ts';
import { cleanKey, cleanObject, reportFlaws } from './clean-json.ts';
import { readExactText } from './identifiers.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import { EVENT_ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import type { PersonIdentifier, TrackEvent } from '../operations/operation.ts';
import type { CallDraft } from './parse.ts';
import { isLongerThan, utf8SizeBytes } from '../values/storable-text.ts';
import { storedEventId } from '../values/ulid.ts';

/** Reads a name that must be there; trimmed. `undefined` after an issue. */
export function readEventName(
  draft: CallDraft,
  value: unknown,
  field: string,
  sizeBytesMax: number,
): string | undefined {
  if (isAbsent(value)) {
    draft.refuse('required', field, `${field} is required`);
    return undefined;
  }
  if (typeof value !== 'string') {
    draft.refuse('invalid', field, `${field} must be a string`, value);
    return undefined;
  }
  const name = cleanKey(draft, trimmed(value));
  if (name === '') {
    draft.refuse('required', field, `${field} is blank`);
    return undefined;
  }
  if (draft.flaws !== 0) reportFlaws(draft, { [field]: value }, '');
  if (!isLongerThan(name, sizeBytesMax)) return name;
  draft.refuse(
    'too_long',
    field,
    `${field} is ${utf8SizeBytes(name)} bytes long; the bound is ${sizeBytesMax}`,
    name,
  );
  return undefined;
}

/** Reads the client's event id, or makes one. */
export function readEventId(draft: CallDraft, value: unknown, field: string): string {
  const eventId = readExactText(draft, value, field, EVENT_ID_SIZE_BYTES_MAX);
  if (eventId === undefined) return draft.context.newId();
  return storedEventId(eventId);
}

/** Reads an object of any structure; null and absent are empty. */
export function readData(draft: CallDraft, value: unknown, field: string): JsonObject {
  if (isAbsent(value)) return {};
  if (isJsonObject(value)) return cleanObject(draft, value, field);
  draft.refuse('invalid', field, `${field} must be an object`, value);
  return {};
}

/** Takes the event. An anonymous id beside a known person is the one under which their earlier events came. */
export function takeEvent(
  draft: CallDraft,
  kind: TrackEvent['kind'],
  person: PersonIdentifier | null,
  anonymousId: string | undefined,
  eventId: string,
  name: string,
  data: JsonObject,
  occurredAtMs: number,
): void {
  const { environmentId, receivedAtMs } = draft.context;
  draft.take(
    anonymousId === undefined
      ? {
          type: 'event.track',
          environmentId,
          receivedAtMs,
          kind,
          person,
          eventId,
          name,
          data,
          occurredAtMs,
        }
      : {
          type: 'event.track',
          environmentId,
          receivedAtMs,
          kind,
          person,
          anonymousId,
          eventId,
          name,
          data,
          occurredAtMs,
        },
  );
}
