/**
 * Incoming events (`domain/src/delivery/incoming-event.ts`): a call's data, as it is applied, for the webhooks that
 * want them. A call that is ignored is not reported: one that is suppressed, a duplicate or without a person.
 *
 * A report names the person as they are once the call is applied. It is in the order of the person's calls, and stands
 * after the reporting events that the same call causes.
 */
import type { JsonObject } from '../values/json.ts';
import { canBeMadeObject } from '../operations/can-be-made.ts';
import type {
  ChangeObjectRelationships,
  ChangePersonRelationships,
  DeleteObject,
  IdentifyObject,
  IdentifyPerson,
  ObjectIdentifier,
  ObjectRelationship,
  Operation,
  PersonIdentifier,
  PersonRelationship,
  PublishMessage,
  TrackEvent,
} from '../operations/operation.ts';
import type { IncomingEventType } from '../delivery/incoming-event.ts';
import type { ApplicationKey, EventArrival } from '../delivery/incoming-subscription.ts';
import type { ReportingEvent } from '../delivery/reporting-event.ts';
import type { PersonState } from '../state/person-directory.ts';
import type { WorkingSet } from '../state/working-set.ts';
import {
  arrivalOf,
  incomingEvent,
  ON_TIME,
  publishedMessage,
  trackedEvent,
  type ReportedPerson,
} from './incoming-body.ts';

/**
 * Reports an event, page or screen that is stored, once.
 *
 * @param person - undefined for a visitor without a person.
 */
export function reportTracked(
  set: WorkingSet,
  operation: TrackEvent,
  person: PersonState | undefined,
): void {
  if (!hasSubscriptions(set, operation)) return;
  log(set, trackedEvent(operation, person && whoIs(set, person)), arrivalOf(operation));
}

/**
 * Reports a published message of any age: its client means to send it. A message that names an application of the
 * workspace is for that application's endpoints alone; any other name is a label for the workspace's own webhooks.
 */
export function reportPublished(set: WorkingSet, operation: PublishMessage): void {
  const { environmentId, application: applicationId } = operation;
  const isOfApplication =
    applicationId !== undefined &&
    set.incoming?.subscriptions.hasApplication({ environmentId, applicationId }) === true;
  if (!isOfApplication && !hasSubscriptions(set, operation)) return;
  const message = publishedMessage(operation);
  log(set, isOfApplication ? { ...message, applicationId } : message, ON_TIME);
}

/** Names that published messages give as their application, each once. */
export function applicationsIn(operations: readonly Operation[]): ApplicationKey[] {
  const named = new Map<string, ApplicationKey>();
  for (const operation of operations) {
    if (operation.type !== 'message.publish' || operation.application === undefined) continue;
    const { environmentId, application: applicationId } = operation;
    named.set(`${environmentId} ${applicationId}`, { environmentId, applicationId });
  }
  return [...named.values()];
}

/**
 * Reports attributes and relationships of a person, or of a visitor without a person. A relationship to an unknown
 * object is left out of it.
 *
 * @param call - as it was sent.
 * @param withAttributes - false: they were older than the stored ones, and skipped.
 */
export function reportIdentify(
  set: WorkingSet,
  operation: Operation,
  { person: named, anonymousId, attributes, relationships }: IdentifyCall,
  person: PersonState | undefined,
  withAttributes = true,
): void {
  if (!hasSubscriptions(set, operation)) return;
  const entries = relationships ? appliedEntries(set, operation, relationships) : [];
  if (!withAttributes && entries.length === 0) return;
  const visitor = named.kind === 'anonymous_id' ? named.value : anonymousId;
  report(set, operation, 'identify', 'identify', person, {
    ...(visitor !== undefined && { anonymous_id: visitor }),
    ...(withAttributes && { attributes }),
    ...(relationships &&
      entries.length > 0 && {
        relationship_action: relationships.action,
        relationships: entries.map(objectEntry),
      }),
    ...(operation.type === 'form.submit' && { form_id: operation.formId }),
  });
}

type IdentifyCall = Pick<IdentifyPerson, 'person' | 'anonymousId' | 'attributes' | 'relationships'>;

/** Reports relationships of a person, or of a visitor. A call that names only unknown objects is not reported. */
export function reportObjectsOfPerson(
  set: WorkingSet,
  operation: ChangePersonRelationships,
  person: PersonState | undefined,
): void {
  if (!hasSubscriptions(set, operation)) return;
  const { person: named, action } = operation;
  const entries = appliedEntries(set, operation, operation);
  if (entries.length === 0) return;
  report(set, operation, 'group', `${action}_relationships`, person, {
    ...(named.kind === 'anonymous_id' && { anonymous_id: named.value }),
    relationships: entries.map(objectEntry),
  });
}

/** The ones that had an effect. An object that a relationship makes may still be missing: the call's other half makes it. */
const appliedEntries = (
  set: WorkingSet,
  { environmentId }: Operation,
  { action, entries }: Pick<ChangePersonRelationships, 'action' | 'entries'>,
): readonly ObjectRelationship[] =>
  entries.filter(
    ({ object }) =>
      set.findObject(environmentId, object) !== undefined ||
      (action === 'add' && canBeMadeObject(object)),
  );

/**
 * Reports attributes or relationships of an object. People who are suppressed or unknown are left out of it. A call
 * that names only such people is not reported.
 *
 * @param withAttributes - false: they were older than the stored ones, and skipped.
 */
export function reportObject(
  set: WorkingSet,
  operation: IdentifyObject | ChangeObjectRelationships,
  withAttributes = true,
): void {
  if (!hasSubscriptions(set, operation)) return;
  const { environmentId, object } = operation;
  const named = operation.type === 'object.identify' ? operation.relationships : operation.entries;
  const entries = named.filter(({ person }) => {
    const { outcome } = set.directory.resolve(environmentId, person);
    return outcome === 'found' || (outcome === 'unknown' && person.kind === 'anonymous_id');
  });
  const isIdentify = operation.type === 'object.identify';
  if (entries.length === 0 && (named.length > 0 || !isIdentify || !withAttributes)) return;
  const [only] = entries.length === 1 ? entries : [];
  const owner = only && set.directory.resolve(environmentId, only.person);
  const metric = isIdentify ? 'group' : (`${operation.action}_relationships` as const);
  report(set, operation, 'group', metric, owner?.outcome === 'found' ? owner.person : undefined, {
    ...(only?.person.kind === 'anonymous_id' && { anonymous_id: only.person.value }),
    ...objectName(object),
    ...(isIdentify && withAttributes && { attributes: operation.attributes }),
    relationships: entries.map(personEntry),
  });
}

/** Reports a person as they were; they go with it. `suppress`: no later call about them is reported. */
export function reportPersonDeletion(
  set: WorkingSet,
  operation: Operation,
  person: PersonState,
  metric: 'delete' | 'suppress',
): void {
  if (hasSubscriptions(set, operation)) report(set, operation, 'delete', metric, person, {});
}

/** Reports the deletion of an object. */
export function reportObjectDeletion(set: WorkingSet, operation: DeleteObject): void {
  if (hasSubscriptions(set, operation))
    report(set, operation, 'delete', 'delete', undefined, objectName(operation.object));
}

const hasSubscriptions = ({ incoming }: WorkingSet, { environmentId }: Operation): boolean =>
  incoming?.subscriptions.has(environmentId) === true;

function report(
  set: WorkingSet,
  operation: Operation,
  type: IncomingEventType,
  metric: string,
  person: PersonState | undefined,
  data: JsonObject,
): void {
  const { environmentId, envelopeNumber, receivedAtMs: occurredAtMs } = operation;
  const event = incomingEvent(
    {
      environmentId,
      envelopeNumber,
      eventId: set.effects.newId(),
      eventType: type,
      metric,
      occurredAtMs,
    },
    person && whoIs(set, person),
    data,
  );
  log(set, event, ON_TIME);
}

function log(set: WorkingSet, event: ReportingEvent, arrival: EventArrival): void {
  const webhookIds = set.incoming?.subscriptions.subscribersOf(event, arrival) ?? [];
  if (webhookIds.length > 0) set.addReport({ ...event, webhookIds });
}

const whoIs = ({ incoming }: WorkingSet, { personId, row }: PersonState): ReportedPerson => ({
  personId,
  row: row ?? incoming?.people.get(personId),
});

const objectName = (object: ObjectIdentifier): JsonObject =>
  'svcObjectId' in object
    ? { svc_object_id: object.svcObjectId }
    : { object_type_id: String(object.objectTypeId), object_id: object.objectId };

const objectEntry = ({ object, attributes }: ObjectRelationship): JsonObject => ({
  ...objectName(object),
  relationship_attributes: attributes,
});

const personEntry = ({ person, attributes }: PersonRelationship): JsonObject => ({
  identifiers: identifierOf(person),
  relationship_attributes: attributes,
});

const identifierOf = ({ kind, value }: PersonIdentifier): JsonObject => ({ [kind]: value });
