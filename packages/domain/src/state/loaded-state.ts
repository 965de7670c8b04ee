/**
 * The loaded state, and the changes of the apply step.
 *
 * It is the stored rows that a commit batch's operations may read or change, as the apply step sees them.
 *
 * Step 9 of the walk: `find-state-needs.ts` finds the rows to load, the worker loads them under locks,
 * `apply-operations.ts` applies the operations, the worker writes the changes. Rows are values: the apply step makes
 * new ones and never writes to a loaded one.
 */
import type { Issue } from '../operations/issue.ts';
import type { JsonObject } from '../values/json.ts';
import type { IncomingSubscriptions } from '../delivery/incoming-subscription.ts';
import type { ReportingEvent } from '../delivery/reporting-event.ts';
import type { OrderPlace } from '../operations/order-place.ts';
import type { StoredIdentifierKind } from '../operations/state-keys.ts';
import type { AttributePlaces } from './attribute-places.ts';
import type { OwnerEnds } from './names/name-ends.ts';
import type { VisitorProfile } from './visitor-profile.ts';

export interface IdentifierKey {
  readonly environmentId: number;
  readonly kind: StoredIdentifierKind;
  /** Emails in lower case. */
  readonly value: string;
}

export interface IdentifierRow extends IdentifierKey {
  /** The owner. Null for an anonymous id without one. Of a suppressed identifier it is the earlier owner. */
  readonly personId: number | null;
  readonly suppressed: boolean;
}

/**
 * `svc_id`: the number of a deleted person. `id with email`, of earlier versions: the id of a person who had an email when
 * they were deleted.
 */
export type DeletedKind =
  | StoredIdentifierKind
  | 'svc_id'
  | `${StoredIdentifierKind} with ${'id' | 'email'}`;

/** The names that a deleted person had, and since when they were there; an absent name is null. */
export type DeletedNames = Partial<Pick<PersonRow, 'id' | 'email' | 'phone' | 'createdAtMs'>>;

/** An identifier that a deleted person had. */
export interface DeletedIdentifier {
  readonly environmentId: number;
  readonly kind: DeletedKind;
  readonly value: string;
  /** When intake took the call that deletes, suppresses or unsuppresses: the last of them. */
  readonly deletedAtMs: number;
  /** Until when it was whose; null if an earlier version remembered it. */
  readonly owners: OwnerEnds | null;
  /** Of a deleted person, under their number; else null. */
  readonly names: DeletedNames | null;
}

export interface PersonKey {
  readonly environmentId: number;
  readonly personId: number;
}

export interface PersonRow extends PersonKey {
  readonly id: string | null;
  /** As first sent. */
  readonly email: string | null;
  readonly phone: string | null;
  readonly attributes: JsonObject;
  /** Null if no call has set it. */
  readonly unsubscribed: boolean | null;
  readonly attributesAtMs: number | null;
  /** Time of the last write of each attribute, if a visitor's traits may have to be compared with it; else null. */
  readonly attributePlaces: AttributePlaces | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface VisitorKey {
  readonly environmentId: number;
  readonly anonymousId: string;
}

/** A visitor's row is in the partition of its week, so one that moves is deleted there and inserted here. */
export interface VisitorRowKey extends VisitorKey {
  /** The first day of the week of the last write, `2026-11-26`: by it, the row is dropped. */
  readonly week: string;
}

/** Data of an anonymous id that take effect once the id has an owner. Its events are in `events`. */
export interface VisitorRow extends VisitorRowKey {
  /** The last write of an attribute; null if it has no attributes. */
  readonly newestPlace: OrderPlace | null;
  readonly profile: VisitorProfile;
}

/** The last write of an attribute by any visitor of a workspace who has no person. */
export interface NewestVisitorPlace {
  readonly environmentId: number;
  readonly place: OrderPlace;
}

export interface ObjectKey {
  readonly environmentId: number;
  readonly objectNumber: number;
}

export interface ObjectRow extends ObjectKey {
  readonly objectTypeId: number;
  readonly objectId: string;
  readonly attributes: JsonObject;
  readonly attributesAtMs: number | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface RelationshipKey extends PersonKey, ObjectKey {}

export interface RelationshipRow extends RelationshipKey {
  readonly attributes: JsonObject;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface DeviceKey extends PersonKey {
  readonly token: string;
}

export interface DeviceRow extends DeviceKey {
  readonly platform: string;
  readonly lastUsedAtMs: number | null;
  readonly attributes: JsonObject;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface SegmentMemberRow extends PersonKey {
  readonly segmentId: number;
  readonly addedAtMs: number;
}

export interface MessageDeliveryKey {
  readonly environmentId: number;
  readonly deliveryId: string;
}

/** A message that something was reported about. */
export interface MessageDeliveryRow extends MessageDeliveryKey {
  readonly channel: string;
  readonly recipient: string | null;
  readonly personId: number | null;
  readonly createdAtMs: number;
}

/** Event ids are unique per workspace. */
export interface EventKey {
  readonly environmentId: number;
  readonly eventId: string;
}

/** An event id to be taken, with the data of its trace. */
export interface EventClaim extends EventKey {
  readonly receivedAtMs: number;
  readonly source?: string | undefined;
  /** Of the commit batch that brought it. */
  readonly envelopeNumber?: number | undefined;
}

/** The webhooks that want the incoming events of these operations. */
export interface LoadedIncoming {
  readonly subscriptions: IncomingSubscriptions;
  /** People whom only events name, as they were read without a lock, by number. */
  readonly people: ReadonlyMap<number, PersonRow>;
}

/** The stored rows about these operations. A row that is absent does not exist, except people that only events name. */
export interface LoadedState {
  readonly identifiers: readonly IdentifierRow[];
  readonly people: readonly PersonRow[];
  readonly objects: readonly ObjectRow[];
  readonly relationships: readonly RelationshipRow[];
  readonly devices: readonly DeviceRow[];
  /** Loaded only for merges: joining and leaving need no look. */
  readonly segmentMembers: readonly SegmentMemberRow[];
  readonly messageDeliveries: readonly MessageDeliveryRow[];
  readonly visitors: readonly VisitorRow[];
  /** Of the identifiers that replayed calls name. */
  readonly deletedIdentifiers: readonly DeletedIdentifier[];
  /**
   * Of workspaces with people whose attributes the operations may write; a workspace without such visitors is absent.
   */
  readonly newestVisitorPlaces: readonly NewestVisitorPlace[];
  /** Event ids of the operations that earlier commit batches took. */
  readonly takenEvents: readonly EventKey[];
  /** Absent if no webhook of these workspaces takes incoming events; then no reports are made. */
  readonly incoming?: LoadedIncoming;
}

/** The kind of a row of `events`: a client's event, or an activity of ours (`ingestion-conventions.md` §5.3). */
export type ActivityKind =
  | 'event'
  | 'page'
  | 'screen'
  | 'form'
  | 'attribute_change'
  | 'failed_attribute_change'
  | 'skipped_update'
  | 'profile_create'
  | 'profile_delete'
  | 'profile_merge'
  | 'anon_merge'
  | 'add_relationship'
  | 'delete_relationship';

export interface EventRow extends EventKey {
  readonly kind: ActivityKind;
  readonly personId: number | null;
  readonly anonymousId: string | null;
  readonly name: string | null;
  readonly data: JsonObject;
  readonly occurredAtMs: number;
  readonly receivedAtMs: number;
  /** Null while it has no person. */
  readonly processedAtMs: number | null;
  /** Of the operation that made it: the commit batch that brought that, and its index in the flush. */
  readonly envelopeNumber: number | undefined;
  readonly flushIndex: number | undefined;
}

/** Assigns stored anonymous events since a time to a person. */
export interface AnonymousAttachment extends PersonKey {
  readonly anonymousId: string;
  readonly sinceMs: number;
  /** Of a person who is gone since: only earlier events. Null: all. */
  readonly untilMs: number | null;
  readonly processedAtMs: number;
}

/** Moves the stored rows of `fromPersonId` to another person; of events only the ones since a time. */
export interface PersonMove {
  readonly environmentId: number;
  readonly fromPersonId: number;
  readonly toPersonId: number;
  readonly sinceMs: number;
}

/** Issues are kept counted by workspace, day, code, source and field. */
export interface IssueRow {
  readonly environmentId: number;
  readonly source: string;
  readonly issue: Issue;
  readonly count: number;
  readonly atMs: number;
}

/** Rows of one table: those to be there afterwards, and those not to be. */
export interface RowChanges<Row, Key> {
  readonly inserted: readonly Row[];
  readonly updated: readonly Row[];
  readonly deleted: readonly Key[];
}

/**
 * The changes of the apply step, to be written in the order of the members. Identifiers, events and message deliveries
 * of people who move or go are reached by person, for they are not all in the loaded state.
 */
export interface StateChanges {
  readonly moves: readonly PersonMove[];
  /** They are gone, and their identifiers are blocked. */
  readonly suppressedPeople: readonly PersonKey[];
  /** They are gone, and their identifiers are free. */
  readonly removedPeople: readonly PersonKey[];
  /** `deleted`: merged, suppressed and removed ones. */
  readonly people: RowChanges<PersonRow, PersonKey>;
  readonly identifiers: RowChanges<IdentifierRow, IdentifierKey>;
  readonly objects: RowChanges<ObjectRow, ObjectKey>;
  readonly relationships: RowChanges<RelationshipRow, RelationshipKey>;
  readonly devices: RowChanges<DeviceRow, DeviceKey>;
  readonly segmentMembers: RowChanges<SegmentMemberRow, SegmentMemberRow>;
  readonly messageDeliveries: RowChanges<MessageDeliveryRow, MessageDeliveryRow>;
  readonly deletedIdentifiers: readonly DeletedIdentifier[];
  readonly visitors: RowChanges<VisitorRow, VisitorRowKey>;
  readonly attachments: readonly AnonymousAttachment[];
  readonly events: readonly EventRow[];
  readonly reports: readonly ReportingEvent[];
  readonly issues: readonly IssueRow[];
}
