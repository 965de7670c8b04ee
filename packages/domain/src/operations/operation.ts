/**
 * The vocabulary: the meaning of one call, the same for every API.
 *
 * Walk: `pipelines.ts`, `track-v1.ts` and `track-v2.ts` (step 4) turn request bodies into operations.
 * `intake/src/commit/batcher.ts` (step 6) commits them as one commit batch. `apply-operations.ts` (step 9) computes
 * their changes.
 *
 * An operation is plain JSON. It travels through the broker as it is, or as a row (`packed-event.ts`). It is complete:
 * times are absolute and ids are made, so that running it twice or later has the same effect.
 */
import type { Issue } from './issue.ts';
import type { JsonObject } from '../values/json.ts';
import type { OrderPlace } from './order-place.ts';

/** `svc_id` is the id the service gives each person; `phone` only through Track v2, if the workspace allows it. */
export type PersonIdentifierKind = 'id' | 'email' | 'svc_id' | 'phone' | 'anonymous_id';

export interface PersonIdentifier {
  readonly kind: PersonIdentifierKind;
  /** As sent. Emails are compared case-insensitively, everything else exactly. */
  readonly value: string;
}

/** `objectTypeId` is a positive integer. With `svcObjectId` an existing object is meant, never a new one. */
export type ObjectIdentifier =
  | { readonly objectTypeId: number; readonly objectId: string }
  | { readonly svcObjectId: string };

export interface ObjectRelationship {
  readonly object: ObjectIdentifier;
  readonly attributes: JsonObject;
}

export interface PersonRelationship {
  readonly person: PersonIdentifier;
  readonly attributes: JsonObject;
}

/** The `source` of events that came as rows of a file. */
export const IMPORT_SOURCE = 'imports';

interface OperationBase {
  /** The workspace that the credentials named. */
  readonly environmentId: number;
  /** When intake took the call, Unix milliseconds by the server's clock. */
  readonly receivedAtMs: number;
  /**
   * The call that brought an event or a metric: `pipelines.track`, … Absent from intakes that are older than this
   * field.
   */
  readonly source?: string;
  /** Of the commit batch that brought it; absent until that is claimed. */
  readonly envelopeNumber?: number;
  /**
   * From 0, in the flush that brought it; a worker sets it when it applies the operation. Two of a flush are in the
   * order of their calls.
   */
  readonly flushIndex?: number;
  /**
   * It is late, from the disk buffer of an intake or the dead-letter table (`state/replayed-calls.ts`); a worker sets
   * it when it applies the operation.
   */
  readonly isReplayed?: true;
  /** In the order of acknowledgement; a worker sets it when it applies the operation, and not for events. */
  readonly place?: OrderPlace;
}

/** Creates or updates a person. Attributes may hold `id`, `email`, `unsubscribed`, `created_at` and the other reserved names. */
export interface IdentifyPerson extends OperationBase {
  readonly type: 'person.identify';
  readonly person: PersonIdentifier;
  /** Earlier events under this anonymous id become the person's. */
  readonly anonymousId?: string;
  /** A null or empty-string value removes the attribute. Control keys (`_update`, `_timestamp`, relationships) are already taken out. */
  readonly attributes: JsonObject;
  /** False for `_update: true`: change an existing person, else only record an issue. */
  readonly mayCreate: boolean;
  /** From `_timestamp`. It orders competing writes: one that is older than the stored is skipped. */
  readonly attributesAtMs?: number;
  readonly relationships?: {
    readonly action: 'add' | 'delete';
    readonly entries: readonly ObjectRelationship[];
  };
  /** The person's half of an intake of before decision 11: it makes no objects. */
  readonly isHalf?: true;
}

export interface DeletePerson extends OperationBase {
  readonly type: 'person.delete';
  readonly person: PersonIdentifier;
}

/** Deletes the person and ignores later writes to all its identifiers. */
export interface SuppressPerson extends OperationBase {
  readonly type: 'person.suppress';
  readonly person: PersonIdentifier;
}

export interface UnsuppressPerson extends OperationBase {
  readonly type: 'person.unsuppress';
  readonly person: PersonIdentifier;
}

/** `secondary` becomes part of `primary`; without effect if the primary does not exist. */
export interface MergePeople extends OperationBase {
  readonly type: 'person.merge';
  readonly primary: PersonIdentifier;
  readonly secondary: PersonIdentifier;
  /**
   * Pipelines `alias`. If `primary` has no person, it becomes the secondary's. `secondary` of any kind can be the value
   * of an anonymous id.
   */
  readonly isAlias?: true;
}

export interface ChangePersonRelationships extends OperationBase {
  readonly type: 'person.relationships';
  readonly person: PersonIdentifier;
  readonly action: 'add' | 'delete';
  readonly entries: readonly ObjectRelationship[];
  /** The person's half of an intake of before decision 11: it makes no objects. */
  readonly isHalf?: true;
}

export interface AddDevice extends OperationBase {
  readonly type: 'device.add';
  readonly person: PersonIdentifier;
  readonly token: string;
  readonly platform: string;
  readonly lastUsedAtMs?: number;
  readonly attributes: JsonObject;
}

export interface DeleteDevice extends OperationBase {
  readonly type: 'device.delete';
  readonly person: PersonIdentifier;
  readonly token: string;
}

/** One point-in-time action. `person` is null only for an invite event (empty anonymous id). */
export interface TrackEvent extends OperationBase {
  readonly type: 'event.track';
  readonly kind: 'event' | 'page' | 'screen';
  readonly person: PersonIdentifier | null;
  /** On an event of a known person: the anonymous id it was also seen under. */
  readonly anonymousId?: string;
  /** Unique per workspace: the client's ULID or `messageId`, else made at intake. Counted once. */
  readonly eventId: string;
  /** Trimmed. */
  readonly name: string;
  /** Any structure; `recipient`, `from_address` and `reply_to` are reserved and kept. */
  readonly data: JsonObject;
  readonly occurredAtMs: number;
}

export interface IdentifyObject extends OperationBase {
  readonly type: 'object.identify';
  readonly object: ObjectIdentifier;
  readonly attributes: JsonObject;
  readonly relationships: readonly PersonRelationship[];
  readonly attributesAtMs?: number;
  /** The object's half of an intake of before decision 11: it makes no people. */
  readonly isHalf?: true;
}

export interface DeleteObject extends OperationBase {
  readonly type: 'object.delete';
  readonly object: ObjectIdentifier;
}

export interface ChangeObjectRelationships extends OperationBase {
  readonly type: 'object.relationships';
  readonly object: ObjectIdentifier;
  readonly action: 'add' | 'delete';
  readonly entries: readonly PersonRelationship[];
  /** The object's half of an intake of before decision 11: it makes no people. */
  readonly isHalf?: true;
  /** In the half of a call about a person: the person. It is not applied if that person cannot be written to. */
  readonly named?: readonly PersonIdentifier[];
}

/** A metric of a message (`ingestion-conventions.md` §1.6, §3.4); becomes a reporting event. */
export interface ReportMetric extends OperationBase {
  readonly type: 'metric.report';
  readonly deliveryId: string;
  readonly metric: string;
  /** Ours, optional: the channel, for a delivery that is unknown. */
  readonly channel?: string;
  readonly occurredAtMs: number;
  readonly recipient?: string;
  readonly reason?: string;
  readonly href?: string;
  readonly deviceToken?: string;
  /** The choice of a person in an in-app message. */
  readonly actionName?: string;
  readonly actionValue?: string;
  /** Unique per workspace, made at intake or the client's `messageId`. */
  readonly eventId: string;
}

/** A message for the workspace's webhooks, about no person (`POST /v1/publish`). It is stored in the delivery log alone. */
export interface PublishMessage extends OperationBase {
  readonly type: 'message.publish';
  /** Unique per workspace, made at intake or the client's. Sent once. */
  readonly eventId: string;
  /** The client's word, `order.paid`. */
  readonly eventType: string;
  /** Any structure, as sent. */
  readonly payload: JsonObject;
  /** Of the schema that the payload was checked against; absent if the type had no schema. */
  readonly eventTypeVersion?: number;
  /**
   * The customer of the client that it is for. If it is an application of the workspace, only its endpoints receive it.
   */
  readonly application?: string;
  readonly channel?: string;
  readonly occurredAtMs: number;
}

/** The person behind a delivery unsubscribed (Track `/unsubscribe/{delivery_id}`). */
export interface UnsubscribeDelivery extends OperationBase {
  readonly type: 'delivery.unsubscribe';
  readonly deliveryId: string;
}

export interface SubmitForm extends OperationBase {
  readonly type: 'form.submit';
  readonly formId: string;
  readonly person: PersonIdentifier;
  readonly fields: JsonObject;
}

/** Membership of a manual segment; identifiers without a person are skipped. */
export interface ChangeSegment extends OperationBase {
  readonly type: 'segment.change';
  readonly segmentId: number;
  readonly action: 'add' | 'remove';
  readonly people: readonly PersonIdentifier[];
}

/**
 * Something that intake refused or corrected, kept for `GET /v1/ingestion_issues`. It travels with the operations, so
 * it is as durable as they are.
 */
export interface RecordIssue extends OperationBase {
  readonly type: 'issue.record';
  readonly issue: Issue;
  /** The kind of call: `pipelines.track`, `track.v2.batch`, … */
  readonly source: string;
  /** Number of times, if intake counted before recording. */
  readonly count: number;
}

export type Operation =
  | IdentifyPerson
  | DeletePerson
  | SuppressPerson
  | UnsuppressPerson
  | MergePeople
  | ChangePersonRelationships
  | AddDevice
  | DeleteDevice
  | TrackEvent
  | IdentifyObject
  | DeleteObject
  | ChangeObjectRelationships
  | ReportMetric
  | PublishMessage
  | UnsubscribeDelivery
  | SubmitForm
  | ChangeSegment
  | RecordIssue;
