/** The call that publishes messages (`domain/src/publish/parse-publish.ts`), and its schemas. */
import {
  PUBLISH_COUNT_MAX,
  PUBLISH_MESSAGE_SIZE_BYTES_MAX,
  PUBLISH_SIZE_BYTES_MAX,
  PUBLISH_VALUE_COUNT_MAX,
} from '@sluice/domain/operations/limits';
import { kilobytes, type IntakeCall } from './intake-call.ts';
import {
  anyObject,
  EVENT_ID,
  EVENT_NAME,
  identifier,
  listOf,
  object,
  reference,
  UNIX_SECONDS,
} from './json-schema.ts';

const named = identifier(
  'The customer of yours that it is for. Only the endpoints of this application receive it.',
);
/** URL parsers take `.` and `..` out of a path. */
const APPLICATION = {
  ...named,
  pattern: String(named.pattern).replace('^', String.raw`^(?!\s*\.{1,2}\s*$)`),
};

const MESSAGE = {
  event_type: EVENT_NAME,
  payload: {
    ...anyObject('Sent with its values. Numbers are doubles, and U+FFFD replaces U+0000.'),
    type: 'object',
  },
  event_id: EVENT_ID,
  application: APPLICATION,
  channel: identifier('`data.channel`.'),
  timestamp: UNIX_SECONDS,
};

export const PUBLISH_SCHEMAS = {
  PublishedMessage: object(MESSAGE, ['event_type', 'payload']),
  PublishedMessages: object(
    { messages: listOf(reference('PublishedMessage'), 1, PUBLISH_COUNT_MAX) },
    ['messages'],
  ),
  Publication: {
    description: 'One message, or a list.',
    anyOf: [reference('PublishedMessage'), reference('PublishedMessages')],
  },
  PublishResults: object(
    {
      results: {
        type: 'array',
        description: 'In the order of the messages.',
        items: object(
          {
            status: { enum: ['accepted', 'refused'] },
            event_id: { type: 'string' },
            errors: { type: 'array', items: anyObject('`field`, `pointer`, `reason`, `message`.') },
          },
          ['status'],
        ),
      },
    },
    ['results'],
  ),
};

export const PUBLISH_CALL: IntakeCall = {
  method: 'post',
  path: '/v1/publish',
  operationId: 'publish',
  summary: 'Publish messages to webhooks',
  description: `One message, or at most ${PUBLISH_COUNT_MAX} of them: \`{"messages":[…]}\`. Each is sent once to every webhook that lists \`message\` and whose \`event_names\` and filters fit; a wrong one costs itself alone. A payload must fit the schema of its event type, and an archived type is refused. At most ${kilobytes(PUBLISH_SIZE_BYTES_MAX)} and ${PUBLISH_VALUE_COUNT_MAX} values, a message at most ${kilobytes(PUBLISH_MESSAGE_SIZE_BYTES_MAX)}.`,
  body: 'Publication',
  example: {
    messages: [{ event_type: 'invoice.paid', payload: { invoice_id: 'in_1' }, event_id: 'paid-1' }],
  },
  answer: 'results',
};
