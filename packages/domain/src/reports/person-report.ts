/** Reporting events about a person's subscription (`ingestion-webhooks.md` §6, `ingestion-conventions.md` §4.4). */
import { isJsonObject, type Json, type JsonObject } from '../values/json.ts';
import type { Operation } from '../operations/operation.ts';
import type { LoadedPerson } from '../state/person-directory.ts';
import type { MessageChannel, ReportingEvent } from '../delivery/reporting-event.ts';
import type { PersonRow } from '../state/loaded-state.ts';
import { svcId } from '../values/svc-id.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** `identifiers` as reporting webhooks name a person. */
export function identifiersOf(person: PersonRow): JsonObject {
  return { id: person.id, email: person.email, svc_id: svcId(person.personId) };
}

/** Reports the flag, if it has changed. `objectType` is the channel that changed it, or `customer`. */
export function reportSubscription(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  before: boolean | null,
  objectType: MessageChannel | 'customer',
): void {
  const { unsubscribed } = person.row;
  if (unsubscribed === before) return;
  if (unsubscribed === true) {
    report(set, operation, person, {
      eventType: 'customer_unsubscribed',
      objectType,
      metric: 'unsubscribed',
    });
  } else if (before === true || unsubscribed === false) {
    report(set, operation, person, {
      eventType: 'customer_subscribed',
      objectType,
      metric: 'subscribed',
    });
  }
}

/** Reports the preferences as they are after a change. */
export function reportPreferences(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  preferences: Json | undefined,
): void {
  const topics =
    isJsonObject(preferences) && Object.hasOwn(preferences, 'topics') ? preferences['topics'] : {};
  report(set, operation, person, {
    eventType: 'customer_subscription_preferences_changed',
    objectType: 'customer',
    metric: 'svc_subscription_preferences_changed',
    content: { content: JSON.stringify(topics) },
  });
}

function report(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  what: Pick<ReportingEvent, 'eventType' | 'objectType' | 'metric' | 'content'>,
): void {
  const { row } = person;
  set.addReport({
    ...what,
    environmentId: operation.environmentId,
    eventId: set.effects.newId(),
    ...('eventId' in operation ? { causeEventId: operation.eventId } : {}),
    ...(operation.envelopeNumber !== undefined && { envelopeNumber: operation.envelopeNumber }),
    occurredAtMs: operation.receivedAtMs,
    personId: row.personId,
    data: {
      customer_id: row.id ?? '',
      email_address: row.email ?? '',
      identifiers: identifiersOf(row),
    },
  });
}
