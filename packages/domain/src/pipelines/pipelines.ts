/**
 * Pipelines: identify, track, page, screen, group, alias and batches of them.
 *
 * The rules are in `ingestion-webhooks.md` §2, §7 and `ingestion-conventions.md` §3. Identify and group are in
 * `pipelines-traits.ts`, track calls that are commands in `semantic-events.ts`.
 *
 * `context` and `integrations` are not stored. They are read only if a semantic event needs them, and for
 * `context.traits` of an identify or group.
 *
 * Step 4 of the walk, after `intake/src/auth/rate-limit.ts` and before `intake/src/calls/accept.ts` (`parse.ts`).
 */
import { readBatch, readBatchInSteps, type BatchItems, type BatchSteps } from '../parsing/batch.ts';
import { readData, readEventId, readEventName, takeEvent } from '../parsing/event-fields.ts';
import { readPerson, readRequiredText } from '../parsing/identifiers.ts';
import { isJsonObject, type Json, type JsonObject } from '../values/json.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import {
  EMAIL_SIZE_BYTES_MAX,
  EVENT_NAME_SIZE_BYTES_MAX,
  PAGE_NAME_SIZE_BYTES_MAX,
  PIPELINES_BATCH_COUNT_MAX,
  PIPELINES_BATCH_ITEM_SIZE_BYTES_MAX,
} from '../operations/limits.ts';
import type { PersonIdentifier } from '../operations/operation.ts';
import { CallDraft, isBodyObject, type ParseContext, type Parsed } from '../parsing/parse.ts';
import {
  anonymousPerson,
  readAnonymousId,
  readOptionalObject,
  requireSomebody,
} from './pipelines-call.ts';
import { readInstantMs } from '../parsing/timestamps.ts';
import { readOccurredAtMs } from './clock-correction.ts';
import { readGroup, readIdentify } from './pipelines-traits.ts';
import { COMMANDS, LIFECYCLE_EVENTS, readContentEvent } from './semantic-events.ts';
import { isLongerThan } from '../values/storable-text.ts';

export type PipelinesCall = 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | 'batch';

const BATCH_BOUNDS = {
  countMax: PIPELINES_BATCH_COUNT_MAX,
  itemSizeBytesMax: PIPELINES_BATCH_ITEM_SIZE_BYTES_MAX,
};

/** Any Pipelines call. `body` is the result of `JSON.parse`. */
export function parsePipelines(call: PipelinesCall, body: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'pipelines');
  if (call === 'batch') readBatch(draft, body, BATCH_BOUNDS, readItem);
  else if (isBodyObject(draft, body)) readCall(draft, call, body, undefined);
  return draft.finish();
}

/** A batch whose items are read one by one; see `readBatchInSteps`. */
export const parsePipelinesBatchInSteps = (
  body: unknown,
  items: BatchItems,
  context: ParseContext,
): BatchSteps =>
  readBatchInSteps(new CallDraft(context, 'pipelines'), body, items, BATCH_BOUNDS, readItem);

/** One line of a stream: a call with its `type`, like an item of a batch. */
export function parsePipelinesLine(line: unknown, context: ParseContext): Parsed {
  const draft = new CallDraft(context, 'pipelines');
  if (isBodyObject(draft, line)) readItem(draft, line, NO_BATCH);
  return draft.finish();
}

const NO_BATCH: JsonObject = {};

function readItem(draft: CallDraft, item: JsonObject, batch: JsonObject): void {
  const { type } = item;
  if (isAbsent(type)) {
    draft.refuse('required', 'type', 'type is required');
  } else {
    readCall(draft, type, item, batch);
  }
}

function readCall(
  draft: CallDraft,
  type: unknown,
  call: JsonObject,
  batch: JsonObject | undefined,
): void {
  switch (type) {
    case 'track':
      return readTrack(draft, call, batch);
    case 'identify':
      checkTimestamp(draft, call);
      return readIdentify(draft, call);
    case 'page':
    case 'screen':
      return readView(draft, type, call, batch);
    case 'group':
      checkTimestamp(draft, call);
      return readGroup(draft, call);
    case 'alias':
      checkTimestamp(draft, call);
      return readAlias(draft, call);
    default:
      draft.refuse(
        'unsupported',
        'type',
        'type must be identify, track, page, screen, group or alias',
        type,
      );
  }
}

/**
 * Checks the `timestamp` of a call that takes effect when it comes. The value is ignored, but an unreadable one is an
 * issue.
 */
function checkTimestamp(draft: CallDraft, { timestamp }: JsonObject): void {
  readInstantMs(draft, timestamp, 'timestamp', 'the time of receipt is used');
}

function readTrack(draft: CallDraft, call: JsonObject, batch: JsonObject | undefined): void {
  const person = readPerson(draft, call.userId, 'userId');
  const anonymousId = readAnonymousId(draft, call);
  requireSomebody(draft, person, anonymousId);
  const name = readEventName(draft, call.event, 'event', EVENT_NAME_SIZE_BYTES_MAX);
  if (name === undefined || draft.isRefused) return;
  const command = COMMANDS.get(name);
  const effect = LIFECYCLE_EVENTS.get(name);
  if (command === undefined && effect === undefined && name !== 'Report Content Event') {
    takePersonEvent(draft, 'event', person, anonymousId, name, call.properties, call, batch);
    return;
  }

  const properties = readOptionalObject(draft, call.properties, 'properties');
  if (properties === undefined) return;
  if (command !== undefined || effect !== undefined) {
    const occurredAtMs = readOccurredAtMs(draft, call, batch);
    (command ?? effect)?.(draft, { call, batch, properties, person, anonymousId, occurredAtMs });
    if (command !== undefined) return;
  }
  const content = name === 'Report Content Event' ? readContentEvent(properties) : undefined;
  const data = content?.data ?? properties;
  takePersonEvent(draft, 'event', person, anonymousId, content?.name ?? name, data, call, batch);
}

function readView(
  draft: CallDraft,
  kind: 'page' | 'screen',
  call: JsonObject,
  batch: JsonObject | undefined,
): void {
  const person = readPerson(draft, call.userId, 'userId');
  const anonymousId = readAnonymousId(draft, call);
  requireSomebody(draft, person, anonymousId);
  const name = readViewName(draft, kind, call);
  if (name === undefined || draft.isRefused) return;
  takePersonEvent(draft, kind, person, anonymousId, name, withCategory(call), call, batch);
}

/** Clients of servers send the category of a view beside its name, clients of browsers among its properties. */
function withCategory({ properties, category }: JsonObject): Json | undefined {
  if (isAbsent(category)) return properties;
  if (isAbsent(properties)) return { category };
  return isJsonObject(properties) && isAbsent(properties.category)
    ? { ...properties, category }
    : properties;
}

/**
 * A view need not be named (`ingestion-webhooks.md` §7 requires only a person). Without a name it is named by its
 * URL, and without a URL it is still a view. An address that is too long for a name loses its query, which the
 * properties keep.
 */
function readViewName(
  draft: CallDraft,
  kind: 'page' | 'screen',
  call: JsonObject,
): string | undefined {
  const { name } = call;
  if (!isAbsent(name)) {
    return readEventName(draft, name, 'name', PAGE_NAME_SIZE_BYTES_MAX);
  }
  const { properties, context } = call;
  const page = isJsonObject(context) ? context.page : undefined;
  const url = textOf(properties, 'url') ?? textOf(page, 'url');
  if (url === undefined) return kind;
  const isLong = isLongerThan(url, PAGE_NAME_SIZE_BYTES_MAX);
  return readEventName(
    draft,
    isLong ? url.replace(/[?#].*/s, '') : url,
    'properties.url',
    PAGE_NAME_SIZE_BYTES_MAX,
  );
}

function readAlias(draft: CallDraft, call: JsonObject): void {
  const person = readPerson(draft, call.userId, 'userId');
  const anonymousId = readAnonymousId(draft, call);
  const primary = person ?? anonymousPerson(anonymousId);
  requireSomebody(draft, primary, undefined);
  const secondary = readPrevious(draft, call, person, anonymousId);
  if (primary === undefined || secondary === undefined) return;
  const { environmentId, receivedAtMs } = draft.context;
  draft.take({
    type: 'person.merge',
    environmentId,
    receivedAtMs,
    primary,
    secondary,
    isAlias: true,
  });
}

/**
 * Browsers that know no former id send the visitor's anonymous id in its place, and also as the anonymous id; or no former
 * id at all (`analytics.alias('u1')`), and then it is that one too.
 */
function readPrevious(
  draft: CallDraft,
  { previousId }: JsonObject,
  person: PersonIdentifier | undefined,
  anonymousId: string | undefined,
): PersonIdentifier | undefined {
  const visitor = person === undefined ? undefined : anonymousPerson(anonymousId);
  if (isAbsent(previousId) && visitor !== undefined) {
    draft.correct(
      'previous_id_missing',
      'previousId',
      'previousId is required',
      'the anonymousId of the call was taken for it',
    );
    return visitor;
  }
  const text = readRequiredText(draft, previousId, 'previousId', EMAIL_SIZE_BYTES_MAX);
  return visitor !== undefined && text === anonymousId
    ? visitor
    : readPerson(draft, text, 'previousId');
}

function takePersonEvent(
  draft: CallDraft,
  kind: 'event' | 'page' | 'screen',
  person: PersonIdentifier | undefined,
  anonymousId: string | undefined,
  name: string,
  properties: unknown,
  call: JsonObject,
  batch: JsonObject | undefined,
): void {
  const data = readData(draft, properties, 'properties');
  const occurredAtMs = readOccurredAtMs(draft, call, batch);
  const eventId = readEventId(draft, call.messageId, 'messageId');
  if (person !== undefined) {
    takeEvent(draft, kind, person, anonymousId, eventId, name, data, occurredAtMs);
  } else if (anonymousId !== undefined) {
    takeEvent(
      draft,
      kind,
      { kind: 'anonymous_id', value: anonymousId },
      undefined,
      eventId,
      name,
      data,
      occurredAtMs,
    );
  }
}

function textOf(source: unknown, key: string): string | undefined {
  if (!isJsonObject(source)) return undefined;
  const text = source[key];
  return typeof text === 'string' && !isAbsent(text) ? text : undefined;
}
