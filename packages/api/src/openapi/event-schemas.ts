/**
 * Schemas of reporting event types: the 72, our own and incoming ones. Each type has a schema of its data on the wire
 * (`ingestion-conventions.md` §4.2–4.4, and `incoming-schemas.ts` for incoming ones), and a sample that fits it.
 *
 * The schemas describe and do not check: sent events are made from types. A test checks every event that the apply step
 * makes, and every sample, against them. A reported metric never names the campaign and not always the recipient, so of
 * a message only its id and its person are certain. Objects are loose, because fields may be added.
 *
 * Used by `openapi.ts` (the document's `webhooks`) and by `lane-operations.ts` (test events).
 */
import {
  isIncomingEventType,
  type IncomingEventType,
} from '@sluice/domain/delivery/incoming-event';
import {
  isOwnEventType,
  MESSAGE_CHANNELS,
  SELECTABLE_EVENT_TYPES,
  splitOwnEventType,
  type MessageChannel,
  type OwnEventType,
  type ReportingEventType,
  type SelectableEventType,
} from '@sluice/domain/delivery/reporting-event';
import { z } from 'zod';
import { INCOMING_SCHEMAS, TRACKED_DATA } from './incoming-schemas.ts';

const identifiers = z.looseObject({
  id: z.string().nullable(),
  email: z.string().nullable(),
  svc_id: z.string().optional(),
});

const eventBody = z.looseObject({
  event_id: z.string().meta({
    description:
      'The same in every attempt and resend. A ULID, or the id that a client gave its event or message.',
  }),
  timestamp: z.int().meta({ description: 'Unix seconds.' }),
  test: z.literal(true).optional().meta({ description: 'Present in test events only.' }),
});

/** Recipient and sender of a message (§4.3). */
const messageData = z.looseObject({
  delivery_id: z.string(),
  identifiers,
  customer_id: z.string().optional().meta({ description: 'Deprecated; empty if unknown.' }),
  broadcast_id: z.int().optional(),
  trigger_id: z.int().optional(),
  campaign_id: z.int().optional(),
  action_id: z.int().optional(),
  parent_action_id: z.int().optional(),
  journey_id: z.string().optional(),
  trigger_event_id: z.string().optional(),
  newsletter_id: z.int().optional(),
  content_id: z.int().optional(),
  transactional_message_id: z.int().optional(),
});

const customerData = z.looseObject({
  customer_id: z.string(),
  email_address: z.string(),
  identifiers,
});

const preferencesData = customerData.extend({
  content: z
    .string()
    .optional()
    .meta({ description: 'The topics as a JSON string, with `with_content` only.' }),
});

const device = z.looseObject({
  device_id: z.string(),
  device_platform: z.string().optional(),
  failure_message: z.string().optional(),
});

/** Members that some metrics add to a message's (§4.4), each with a sample. */
const MEMBERS = {
  recipient: [z.string(), 'ada@example.com'],
  recipients: [z.array(device), [{ device_id: 'device-1', device_platform: 'ios' }]],
  subject: [z.string(), 'Your order is on its way'],
  failure_message: [z.string(), "Variable 'customer.name' is missing"],
  href: [z.string(), 'https://example.com/orders/42'],
  link_id: [z.int(), 1],
  proxied: [z.boolean(), false],
  prefetched: [z.boolean(), false],
  synthetic: [z.boolean(), false],
  machine: [z.boolean(), false],
  tracked_response: [z.string(), 'yes'],
  inbound_event_id: [z.string(), '01J0000000000000000000SAMP'],
  to: [z.string(), '+15550100'],
  content: [z.string().meta({ description: 'With `with_content` only.' }), undefined],
  headers: [
    z.record(z.string(), z.array(z.string())).meta({ description: 'With `with_content` only.' }),
    undefined,
  ],
} as const satisfies Record<string, readonly [z.ZodType, unknown]>;

type Member = keyof typeof MEMBERS;

const RECIPIENT_SAMPLES: Partial<Record<MessageChannel, string>> = {
  sms: '+15550100',
  whatsapp: '+15550100',
  slack: '#general',
  webhook: 'https://example.com/hook',
};

/** metric → members that it adds. The recipient is in every event if a call has named it. */
const MEMBERS_BY_METRIC: Readonly<Record<string, readonly Member[]>> = {
  attempted: ['failure_message'],
  sent: ['content'],
  clicked: ['href', 'link_id'],
  bounced: ['failure_message'],
  dropped: ['failure_message'],
  deferred: ['failure_message'],
  failed: ['failure_message'],
  undeliverable: ['failure_message'],
  replied: ['inbound_event_id', 'to'],
};

/** Members that a type adds to these. */
const MEMBERS_BY_TYPE: Partial<Record<ReportingEventType, readonly Member[]>> = {
  email_sent: ['headers'],
  email_opened: ['proxied', 'prefetched', 'synthetic'],
  email_clicked: ['machine'],
  in_app_clicked: ['tracked_response'],
};

const PREFERENCES = 'customer_subscription_preferences_changed';

/** Data of our own types, with a sample. */
const OWN_DATA = {
  reporting_webhook_failing: [
    z.looseObject({
      reporting_webhook_id: z.int(),
      name: z.string(),
      failing_since: z.int().meta({ description: 'Unix seconds of its first failure.' }),
      next_probe_at: z.int().nullable(),
      unfinished_count: z
        .int()
        .meta({ description: 'Number of blocked deliveries, the head included.' }),
    }),
    {
      reporting_webhook_id: 1,
      name: 'Orders',
      failing_since: 1_700_000_000,
      next_probe_at: 1_700_003_600,
      unfinished_count: 12,
    },
  ],
  reporting_webhook_disabled: [
    z.looseObject({
      reporting_webhook_id: z.int(),
      name: z.string(),
      failing_since: z.int(),
      after_days: z.int(),
    }),
    { reporting_webhook_id: 1, name: 'Orders', failing_since: 1_700_000_000, after_days: 5 },
  ],
  reporting_webhook_abandoned: [
    z.looseObject({
      reporting_webhook_id: z.int(),
      name: z.string(),
      delivery: z
        .looseObject({
          sequence: z.int(),
          event_id: z.string(),
          event_type: z.string(),
          attempts: z.int(),
          status: z.int().nullable(),
          failure: z.string().nullable(),
          failure_message: z.string().nullable(),
        })
        .nullable()
        .meta({
          description:
            'First delivery that was given up since the failure began; null if it is no longer stored.',
        }),
    }),
    {
      reporting_webhook_id: 1,
      name: 'Orders',
      delivery: {
        sequence: 7,
        event_id: '01J0000000000000000000SAMP',
        event_type: 'email_sent',
        attempts: 172,
        status: 503,
        failure: 'status',
        failure_message: null,
      },
    },
  ],
  purchase_ended: [
    z.looseObject({
      account_id: z.int(),
      run_id: z.string(),
      kind: z.enum(['addons', 'credits', 'inbox_previews', 'checkout']),
      rail: z.enum(['card', 'invoiced']),
      status: z.enum(['success', 'declined', 'refused', 'failed']),
      message: z.string().nullable().meta({ description: 'Safe to show the customer.' }),
      invoice_id: z.string().nullable(),
      charged: z
        .looseObject({ amount: z.int(), currency: z.string() })
        .nullable()
        .meta({ description: 'Whole minor units; null without a charge.' }),
    }),
    {
      account_id: 1,
      run_id: 'run_01J0000000000000000000SAMP',
      kind: 'credits',
      rail: 'invoiced',
      status: 'success',
      message: null,
      invoice_id: 'in_sample',
      charged: { amount: 2_000, currency: 'usd' },
    },
  ],
} as const satisfies Record<OwnEventType, readonly [z.ZodType, object]>;

function channelOf(type: ReportingEventType): MessageChannel | undefined {
  return MESSAGE_CHANNELS.find((channel) => type.startsWith(`${channel}_`));
}

/** The value of `metric`, which is the type without its family, but for one; of incoming events a sample. */
export function metricOf(type: SelectableEventType): string {
  if (isIncomingEventType(type)) return INCOMING_SCHEMAS[type].sampleMetric;
  if (isOwnEventType(type)) return splitOwnEventType(type).metric;
  if (type === PREFERENCES) return 'svc_subscription_preferences_changed';
  return type.slice((channelOf(type) ?? 'customer').length + 1);
}

function membersOf(type: ReportingEventType, channel: MessageChannel): Member[] {
  const metric = metricOf(type);
  const members: Member[] = [channel === 'push' ? 'recipients' : 'recipient'];
  members.push(...(MEMBERS_BY_METRIC[metric] ?? []), ...(MEMBERS_BY_TYPE[type] ?? []));
  if (channel === 'email' && metric !== 'attempted') members.push('subject');
  return members;
}

function schemaOf(type: SelectableEventType) {
  if (isIncomingEventType(type)) return incomingBodyOf(type);
  if (isOwnEventType(type))
    return bodyOf(z.literal(splitOwnEventType(type).family), type, OWN_DATA[type][0]);
  const channel = channelOf(type);
  if (channel) return bodyOf(z.literal(channel), type, messageDataOf(type, channel));
  const data = type === PREFERENCES ? preferencesData : customerData;
  return bodyOf(z.enum(['customer', ...MESSAGE_CHANNELS]), type, data);
}

function messageDataOf(type: ReportingEventType, channel: MessageChannel) {
  const members = membersOf(type, channel);
  return messageData.extend(
    Object.fromEntries(members.map((member) => [member, MEMBERS[member][0].optional()])),
  );
}

function incomingBodyOf(type: IncomingEventType) {
  const { metrics, data } = INCOMING_SCHEMAS[type];
  const metric = metrics ? z.enum(metrics) : z.string().meta({ description: 'Its name.' });
  return bodyOf(z.literal(type), type, data, metric);
}

const ID_OF_EVENT = z
  .string()
  .meta({ description: 'The id of the event, the same in every attempt and resend.' });

function bodyOf(
  objectType: z.ZodType<string>,
  type: SelectableEventType,
  data: z.ZodObject,
  metric: z.ZodType<string> = z.literal(metricOf(type)),
) {
  const { event_id: ulid, ...times } = eventBody.shape;
  return z.looseObject({
    event_id: isIncomingEventType(type) ? ID_OF_EVENT : ulid,
    object_type: objectType,
    metric,
    ...times,
    data,
  });
}

/** Parts that many types have in common, by their names in the description. A part may contain the ones before it. */
export const COMMON_PARTS: Readonly<Record<string, z.ZodObject>> = {
  EventIdentifiers: identifiers,
  CustomerData: customerData,
  Device: device,
  MessageData: messageData,
  TrackedData: TRACKED_DATA,
  EventBody: eventBody,
};

/** The body of a delivery, by event type. */
export const EVENT_SCHEMAS: ReadonlyMap<SelectableEventType, ReturnType<typeof schemaOf>> = new Map(
  SELECTABLE_EVENT_TYPES.map((type) => [type, schemaOf(type)]),
);

/** The body of a test event: as if it had happened to a person who does not exist. */
export function sampleBody(type: SelectableEventType, eventId: string, nowMs: number): string {
  const [objectType, data] = sampleDataOf(type);
  return JSON.stringify({
    event_id: eventId,
    object_type: objectType,
    metric: metricOf(type),
    timestamp: Math.floor(nowMs / 1000),
    test: true,
    data,
  });
}

function sampleDataOf(type: SelectableEventType): [objectType: string, data: object] {
  if (isIncomingEventType(type)) return [type, INCOMING_SCHEMAS[type].sample];
  return isOwnEventType(type)
    ? [splitOwnEventType(type).family, OWN_DATA[type][1]]
    : sampleOf(type);
}

function sampleOf(type: ReportingEventType): [objectType: string, data: object] {
  const channel = channelOf(type);
  const who = { id: 'sample', email: 'ada@example.com', svc_id: 'a3000000' };
  const data: Record<string, unknown> = channel
    ? { delivery_id: 'sample-delivery', customer_id: who.id, identifiers: who }
    : { customer_id: who.id, email_address: who.email, identifiers: who };
  for (const member of channel ? membersOf(type, channel) : []) {
    const ofChannel = member === 'recipient' && channel ? RECIPIENT_SAMPLES[channel] : undefined;
    const sample = ofChannel ?? MEMBERS[member][1];
    if (sample !== undefined) data[member] = sample;
  }
  return [channel ?? 'customer', data];
}
