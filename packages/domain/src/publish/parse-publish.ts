/**
 * `POST /v1/publish`: messages of any shape for the workspace's webhooks, one or a list. Step 4 of the walk; see
 * `parse.ts`. A bad message of a list does not hurt its neighbours.
 *
 * A payload must fit the schema of its event type, if it has one (`event-schemas/`). A type without a description is
 * accepted as it is, and an archived type is refused.
 *
 * A message is about no person. Events about people are tracked, and reported in the order of that person's calls.
 */
import { readData, readEventId, readEventName } from '../parsing/event-fields.ts';
import { readExactText } from '../parsing/identifiers.ts';
import type { EventSchema } from '../event-schemas/schema-document.ts';
import { StepBudget } from '../event-schemas/step-budget.ts';
import { validatePayload } from '../event-schemas/validate-payload.ts';
import {
  CallDraft,
  fieldIn,
  isBodyObject,
  type ParseContext,
  type Parsed,
} from '../parsing/parse.ts';
import { readInstantMs } from '../parsing/timestamps.ts';
import { isJsonLargerThan } from '../values/json-size.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import {
  EVENT_NAME_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
  PUBLISH_COUNT_MAX,
  PUBLISH_MESSAGE_SIZE_BYTES_MAX,
} from '../operations/limits.ts';
import { isAbsent } from '../value-rules/verdict.ts';

/**
 * Work of checks against schemas (`event-schemas/step-budget.ts`). A message of a hundred values needs some 300 steps.
 * A call with the maximum keeps intake busy for 0.3 s, and all other calls wait meanwhile.
 */
export const MESSAGE_STEP_COUNT_MAX = 10_000;
const CHECK_STEP_COUNT_MAX = 500_000;

/** A message, or `messages`, 1 to 1,000 of them; issues of a list carry the place of their message. */
export function parsePublish(body: unknown, context: ParseContext): Parsed {
  // Track's dialect keeps values as they were sent.
  const draft = new CallDraft(context, 'track', 'messages');
  const budget = new StepBudget(CHECK_STEP_COUNT_MAX);
  if (!isBodyObject(draft, body)) return draft.finish();
  if (isAbsent(body.messages)) readMessage(draft, body, budget);
  else readMessages(draft, body.messages, budget);
  return draft.finish();
}

function readMessages(draft: CallDraft, messages: unknown, budget: StepBudget): void {
  // A fault beside the messages belongs to no message, so the results could not give each message its own.
  if (draft.isRefused) return;
  if (!Array.isArray(messages)) {
    draft.refuse('invalid', 'messages', 'messages must be an array', messages);
  } else if (messages.length === 0) {
    draft.refuse('required', 'messages', 'messages must hold at least one message');
  } else if (messages.length > PUBLISH_COUNT_MAX) {
    const message = `messages holds ${messages.length} messages; the bound is ${PUBLISH_COUNT_MAX}`;
    draft.refuse('too_large', 'messages', message, undefined, { callCount: messages.length });
  } else {
    for (const [index, message] of messages.entries()) {
      draft.beginItem(index);
      if (draft.isRefused) continue;
      if (isJsonObject(message)) readMessage(draft, message, budget);
      else draft.refuse('invalid', null, `message ${index} must be an object`, message);
    }
  }
}

function readMessage(draft: CallDraft, message: JsonObject, budget: StepBudget): void {
  if (isJsonLargerThan(message, PUBLISH_MESSAGE_SIZE_BYTES_MAX)) {
    const sizeKilobytes = PUBLISH_MESSAGE_SIZE_BYTES_MAX / 1_024;
    draft.refuse('too_large', null, `the message is larger than ${sizeKilobytes} KB`);
    return;
  }
  const eventType = readEventName(
    draft,
    message.event_type,
    'event_type',
    EVENT_NAME_SIZE_BYTES_MAX,
  );
  if (isAbsent(message.payload)) draft.refuse('required', 'payload', 'payload is required');
  const payload = readData(draft, message.payload, 'payload');
  const application = readApplication(draft, message.application);
  const channel = readExactText(draft, message.channel, 'channel', ID_SIZE_BYTES_MAX);
  const eventId = readEventId(draft, message.event_id, 'event_id');
  const { environmentId, receivedAtMs } = draft.context;
  const remedy = 'the time of receipt is used';
  const occurredAtMs = readInstantMs(draft, message.timestamp, 'timestamp', remedy) ?? receivedAtMs;
  if (eventType === undefined) return;
  const type = draft.isRefused ? undefined : draft.context.eventTypes?.(eventType);
  if (type === 'archived') {
    const problem = `event_type is archived, so its messages are not published: bring it back by PUT /v1/event_types/${encodeURIComponent(eventType)}`;
    draft.refuse('invalid', 'event_type', problem, eventType, { pointer: '/event_type' });
    return;
  }
  if (type) checkPayload(draft, eventType, type.schema, payload, budget);
  draft.take({
    type: 'message.publish',
    environmentId,
    receivedAtMs,
    eventId,
    eventType,
    payload,
    ...(type && { eventTypeVersion: type.version }),
    ...(application !== undefined && { application }),
    ...(channel !== undefined && { channel }),
    occurredAtMs,
  });
}

/** An id that no application can have would be taken for a label, and its message for the workspace's webhooks. */
function readApplication(draft: CallDraft, value: unknown): string | undefined {
  const id = readExactText(draft, value, 'application', ID_SIZE_BYTES_MAX);
  if (id !== '.' && id !== '..') return id;
  draft.refuse('invalid', 'application', 'application must not be . or ..', id);
  return undefined;
}

/** @param budget - of all messages of the call. */
function checkPayload(
  draft: CallDraft,
  eventType: string,
  schema: EventSchema,
  payload: JsonObject,
  budget: StepBudget,
): void {
  const own = new StepBudget(Math.min(MESSAGE_STEP_COUNT_MAX, budget.left));
  const begunWith = own.left;
  const checked = validatePayload(schema, payload, own);
  budget.take(begunWith - own.left);
  if (checked.outcome === 'valid') return;
  if (checked.outcome === 'too_complex') {
    const message = `payload is too much work to check against the schema of ${eventType}: send a smaller one, or fewer messages a call`;
    draft.refuse('too_large', 'payload', message, undefined, { pointer: '/payload' });
    return;
  }
  for (const { pointer, message } of checked.violations) {
    const field = pointer
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<string>(fieldIn, 'payload');
    draft.refuse('invalid', field, `${field} ${message}`, undefined, {
      pointer: `/payload${pointer}`,
    });
  }
}
