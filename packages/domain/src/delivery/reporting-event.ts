/**
 * Registry of event types for reporting webhooks, with their common shape. All have that shape until they are written
 * as deliveries.
 *
 * In step 9 of the walk `apply-operations.ts` finds reporting events. `database/src/delivery/deliveries.ts` (step 10)
 * writes one delivery for each webhook that selected the type.
 */
import type { JsonObject } from '../values/json.ts';
import {
  EVERY_EVENT_TYPE,
  INCOMING_EVENT_TYPES,
  type IncomingEventType,
} from './incoming-event.ts';

const SUFFIXES = {
  customer: ['subscribed', 'unsubscribed', 'subscription_preferences_changed'],
  email: [
    'drafted',
    'attempted',
    'sent',
    'delivered',
    'opened',
    'clicked',
    'converted',
    'bounced',
    'dropped',
    'deferred',
    'spammed',
    'failed',
    'unsubscribed',
    'undeliverable',
  ],
  push: [
    'drafted',
    'attempted',
    'sent',
    'delivered',
    'opened',
    'clicked',
    'converted',
    'bounced',
    'dropped',
    'failed',
    'undeliverable',
  ],
  sms: [
    'drafted',
    'attempted',
    'sent',
    'delivered',
    'clicked',
    'converted',
    'bounced',
    'dropped',
    'failed',
    'undeliverable',
    'replied',
  ],
  whatsapp: [
    'drafted',
    'attempted',
    'sent',
    'delivered',
    'opened',
    'clicked',
    'converted',
    'bounced',
    'dropped',
    'failed',
    'undeliverable',
    'replied',
  ],
  in_app: [
    'drafted',
    'attempted',
    'sent',
    'opened',
    'clicked',
    'converted',
    'failed',
    'undeliverable',
  ],
  slack: ['drafted', 'attempted', 'sent', 'clicked', 'converted', 'failed'],
  webhook: ['drafted', 'attempted', 'sent', 'clicked', 'converted', 'failed', 'undeliverable'],
} as const;

type Family = keyof typeof SUFFIXES;

/** A family and one of its suffixes, such as `email_opened`. */
export type ReportingEventType = { [F in Family]: `${F}_${(typeof SUFFIXES)[F][number]}` }[Family];

/** Every type of the registry (`ingestion-conventions.md` §4.1): 72. */
export const REPORTING_EVENT_TYPES = Object.entries(SUFFIXES).flatMap(([family, suffixes]) =>
  suffixes.map((suffix) => `${family}_${suffix}`),
) as readonly ReportingEventType[];

const TYPES: ReadonlySet<string> = new Set(REPORTING_EVENT_TYPES);

/** Event types about the service itself, beside the registry: a failing lane and the deliveries that it gave up. */
export const ALERT_EVENT_TYPES = [
  'reporting_webhook_failing',
  'reporting_webhook_abandoned',
  'reporting_webhook_disabled',
] as const;

export type AlertEventType = (typeof ALERT_EVENT_TYPES)[number];

/** Event types about the account, for every workspace of it; not in the registry. */
const ACCOUNT_EVENT_TYPES = ['purchase_ended'] as const;

/** Of our own, beside the registry. */
export type OwnEventType = AlertEventType | (typeof ACCOUNT_EVENT_TYPES)[number];

const OWN_EVENT_TYPES: readonly OwnEventType[] = [...ALERT_EVENT_TYPES, ...ACCOUNT_EVENT_TYPES];

export type SelectableEventType = ReportingEventType | OwnEventType | IncomingEventType;

/** Every type that a webhook may select. */
export const SELECTABLE_EVENT_TYPES: readonly SelectableEventType[] = [
  ...REPORTING_EVENT_TYPES,
  ...OWN_EVENT_TYPES,
  ...INCOMING_EVENT_TYPES,
];

/** Values of a webhook's list: a type, or `*` for each of them. */
export const LISTABLE_EVENT_TYPES: readonly (SelectableEventType | typeof EVERY_EVENT_TYPE)[] = [
  ...SELECTABLE_EVENT_TYPES,
  EVERY_EVENT_TYPE,
];

const SELECTABLE: ReadonlySet<string> = new Set(SELECTABLE_EVENT_TYPES);

/** True for a type that a webhook may select. */
export function isSelectableEventType(type: string): type is SelectableEventType {
  return SELECTABLE.has(type);
}

/** True for a type that a webhook may select, and for `*`. */
export const isListableEventType = (type: string): boolean =>
  type === EVERY_EVENT_TYPE || isSelectableEventType(type);

/** The first part of each type, its subject. */
const OWN_FAMILIES = {
  reporting_webhook_failing: 'reporting_webhook',
  reporting_webhook_abandoned: 'reporting_webhook',
  reporting_webhook_disabled: 'reporting_webhook',
  purchase_ended: 'purchase',
} as const satisfies Record<OwnEventType, string>;

export type OwnFamily = (typeof OWN_FAMILIES)[OwnEventType];

export function isOwnEventType(type: string): type is OwnEventType {
  return (OWN_EVENT_TYPES as readonly string[]).includes(type);
}

/** `purchase_ended` → `purchase`, `ended`. */
export function splitOwnEventType(type: OwnEventType): {
  readonly family: OwnFamily;
  readonly metric: string;
} {
  const family = OWN_FAMILIES[type];
  return { family, metric: type.slice(family.length + 1) };
}

/** The channel of a message: each value of a delivery's `object_type` except `customer`. */
export type MessageChannel = Exclude<Family, 'customer'>;

/** All channels of messages, in the order of the registry. */
export const MESSAGE_CHANNELS = (Object.keys(SUFFIXES) as Family[]).filter(
  (family): family is MessageChannel => family !== 'customer',
);

/** True for a type of the registry. */
export function isReportingEventType(type: string): type is ReportingEventType {
  return TYPES.has(type);
}

/** True for the channels of messages; false for `customer`. */
export function isMessageChannel(channel: string): channel is MessageChannel {
  return channel !== 'customer' && Object.hasOwn(SUFFIXES, channel);
}

/** One event, for all webhooks that select it. */
export interface ReportingEvent {
  readonly environmentId: number;
  /** The same in every delivery of it: a ULID, or the id of the tracked event that is reported. */
  readonly eventId: string;
  readonly eventType: SelectableEventType;
  /** The client's event that it reports; absent if that has no id. */
  readonly causeEventId?: string;
  /** Of the commit batch that it was found in; absent if it came without one. */
  readonly envelopeNumber?: number;
  /** The channel that caused it, or `customer` if that is not known. */
  readonly objectType: MessageChannel | 'customer' | OwnFamily | IncomingEventType;
  /** The type's suffix, but for `svc_subscription_preferences_changed`; of an incoming event its name or its action. */
  readonly metric: string;
  readonly occurredAtMs: number;
  readonly personId?: number;
  /** Of an incoming event: the webhooks that receive it. If absent, each webhook that chose the type receives it. */
  readonly webhookIds?: readonly number[];
  /** Of a published message for an application: whose endpoints these are. */
  readonly applicationId?: string;
  /** The one webhook that does not receive it. */
  readonly exceptWebhookId?: number;
  /** Set for opens and clicks: two with the same value count as the same one. */
  readonly engagement?: {
    readonly deliveryId: string;
    /** Empty if it is no click, or one that names no link. */
    readonly link: string;
  };
  readonly data: JsonObject;
  /**
   * Members of `data` that only webhooks with `with_content` get; of an incoming event, only webhooks with
   * `with_person_attributes`.
   */
  readonly content?: JsonObject;
}
