/**
 * A reporting webhook on the wire: its fields in requests and answers (ingestion-webhooks.md §2).
 *
 * Lenient if real clients are loose: PUT changes the fields that it names and leaves the rest, because clients send
 * `{disabled: true}` alone (ingestion-conventions.md §4.6). Unknown fields are ignored. Strict if a mistake would go
 * unnoticed: an event type that does not exist is refused by name.
 *
 * Options of its requests: `webhook-options.ts`. Its incoming events: `incoming-options.ts`.
 */
import type { NewWebhook, Webhook, WebhookSettings } from '@sluice/database/webhooks/webhooks';
import { isListableEventType, LISTABLE_EVENT_TYPES } from '@sluice/domain/delivery/reporting-event';
import { ID_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import { isLongerThan } from '@sluice/domain/values/storable-text';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { z } from 'zod';
import { NOT_BLANK, identifierText, text } from '../http/fields.ts';
import { LISTABLE_EVENT_TYPE } from '../openapi/event-type-names.ts';
import { laneState } from './lane-state-view.ts';
import { reachableAddress } from '../http/url-field.ts';
import {
  incomingFields,
  incomingOf,
  newIncomingFields,
  showIncoming,
  shownIncoming,
} from './incoming-options.ts';
import {
  changedOptionsOf,
  newOptionFields,
  newOptionsOf,
  optionFields,
  shownOptions,
  showOptions,
} from './webhook-options.ts';

const NAME_LENGTH_MAX = 200;
/** Room for every type twice; duplicates are collapsed. */
const EVENT_COUNT_MAX = 2 * LISTABLE_EVENT_TYPES.length;

const endpoint = reachableAddress.meta({
  format: 'uri',
  description:
    'An http or https URL; https is recommended. No user name or password. Refused are port 0, a host with an empty part, and addresses that are never sent to: metadata services, multicast, reserved ones.',
});

export const eventTypes = z
  .array(
    z.string().superRefine((value, context) => {
      if (isListableEventType(value)) return;
      context.addIssue({
        code: 'custom',
        params: { reason: 'unsupported' },
        message: `is not an event type: ${JSON.stringify(value.slice(0, 100))}`,
      });
    }),
  )
  .min(1)
  .max(EVENT_COUNT_MAX)
  .transform((types) => [...new Set(types)])
  .meta({ items: LISTABLE_EVENT_TYPE });

/** The only type of an application's endpoints, as they are shown. */
export const ENDPOINT_EVENTS: readonly string[] = ['message'];

/** Of a text that is trimmed: not blank, and neither `.` nor `..`, which URL parsers take out of a path. */
const APPLICATION_ID_PATTERN = String.raw`[^\s.]|\.\s+\.|\.\.\.`;

/** A workspace's id of its customer, as publishing reads it. */
export const applicationId = identifierText(ID_SIZE_BYTES_MAX)
  .min(1)
  .meta({ pattern: APPLICATION_ID_PATTERN })
  .refine((id) => id !== '.' && id !== '..', {
    error: 'must not be . or .., which URLs leave out of a path',
  })
  .refine((id) => !isLongerThan(id, ID_SIZE_BYTES_MAX), {
    error: `must be at most ${ID_SIZE_BYTES_MAX} bytes long`,
  })
  .meta({ description: `At most ${ID_SIZE_BYTES_MAX} bytes.` });

const events = eventTypes.meta({
  items: LISTABLE_EVENT_TYPE,
  description:
    '`event`, `page`, `screen`, `identify`, `group`, `delete` are incoming operations, sent once, when they are applied. `message` is a published message. `*` is every type, also later ones.',
});

const fields = {
  name: text(NAME_LENGTH_MAX).trim().min(1).meta(NOT_BLANK),
  endpoint,
  events,
  disabled: z
    .boolean()
    .meta({ description: 'True stops sending. Events that happen meanwhile are not sent later.' }),
  full_resolution: z
    .boolean()
    .meta({ description: 'False sends only the first open and click of a message.' }),
  with_content: z.boolean().meta({ description: "True includes the message's body." }),
  ...optionFields,
  ...incomingFields,
};

/** The body that asks for one. */
export const newWebhook = z
  .object({
    ...fields,
    disabled: fields.disabled.default(false),
    full_resolution: fields.full_resolution.default(false),
    with_content: fields.with_content.default(false),
    ...newOptionFields,
    ...newIncomingFields,
  })
  .meta({
    id: 'NewReportingWebhook',
    description: 'The configuration of a webhook to be made.',
    requestExamples: [
      {
        name: 'Data warehouse',
        endpoint: 'https://example.com/webhooks',
        events: ['customer_subscribed', 'customer_unsubscribed', 'email_bounced'],
        headers: { authorization: 'Bearer 9f86d081884c7d65' },
      },
      {
        name: 'Orders',
        endpoint: 'https://example.com/orders',
        events: ['event'],
        event_names: ['order_placed'],
        attribute_filters: [{ field: 'data.properties.total', operator: 'gte', values: ['100'] }],
      },
    ],
  });

/** The body that changes one. */
export const webhookChanges = z
  .object(fields)
  .partial()
  .meta({
    id: 'ReportingWebhookChanges',
    description: 'The fields to change; the others stay.',
    requestExamples: [{ disabled: true }],
  });

/** One as it stands. */
export const webhook = z
  .object({
    id: z.int(),
    type: z.literal('webhook'),
    name: z.string(),
    endpoint: z.string(),
    events: z.array(z.string()),
    application_id: z.string().optional(),
    disabled: z.boolean(),
    full_resolution: z.boolean(),
    with_content: z.boolean(),
    ...shownOptions,
    state: laneState.optional(),
    stats: z
      .object({ delivered: z.int(), failed: z.int() })
      .meta({ description: 'Attempts of the last hour, to the minute.' })
      .optional(),
    ...shownIncoming,
  })
  .meta({ id: 'ReportingWebhook', description: 'A webhook as it stands.' });

/** The requested webhook, as the statements want it. */
export function toNew(
  body: z.infer<typeof newWebhook>,
  environmentId: number,
  encryptedText: EncryptedText,
): NewWebhook {
  return {
    name: body.name,
    endpoint: body.endpoint,
    events: body.events,
    disabled: body.disabled,
    fullResolution: body.full_resolution,
    withContent: body.with_content,
    ...newOptionsOf(body, environmentId, encryptedText),
    ...incomingOf(body),
  };
}

/** The requested changes of a webhook, as the statements want them; secrets only if they differ from before. */
export function toChanges(
  body: z.infer<typeof webhookChanges>,
  before: Webhook,
  environmentId: number,
  encryptedText: EncryptedText,
): Partial<WebhookSettings> {
  const { name, endpoint: url, events: types, disabled } = body;
  const { full_resolution: fullResolution, with_content: withContent } = body;
  return {
    ...(name !== undefined && { name }),
    ...(url !== undefined && { endpoint: url }),
    // An endpoint of an application has one type for good.
    ...(types !== undefined && before.applicationId === null && { events: types }),
    ...(disabled !== undefined && { disabled }),
    ...(fullResolution !== undefined && { fullResolution }),
    ...(withContent !== undefined && { withContent }),
    ...changedOptionsOf(body, before, environmentId, encryptedText),
    ...incomingOf(body),
  };
}

export const toWire = (
  row: Webhook,
  environmentId: number,
  encryptedText: EncryptedText,
): z.infer<typeof webhook> => ({
  id: row.webhookId,
  type: 'webhook',
  name: row.name,
  endpoint: row.endpoint,
  events: row.applicationId === null ? [...row.events] : [...ENDPOINT_EVENTS],
  ...(row.applicationId !== null && { application_id: row.applicationId }),
  disabled: row.disabled,
  full_resolution: row.fullResolution,
  with_content: row.withContent,
  ...showOptions(row, environmentId, encryptedText),
  ...showIncoming(row),
});
