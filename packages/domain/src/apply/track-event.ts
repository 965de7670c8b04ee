/**
 * Events (`ingestion-conventions.md` §1.4), each counted once.
 *
 * An event belongs to the person that it names, who is made on first sight. An anonymous one waits under its anonymous
 * id, without a processing time, until an identify names that id. An invite has no person and no anonymous id, so it
 * does not wait.
 */
import { identifyVisitor } from './visitors.ts';
import { findOrCreatePerson } from './find-person.ts';
import type { Operation, TrackEvent } from '../operations/operation.ts';
import type { PersonState } from '../state/person-directory.ts';
import { reportTracked } from '../reports/incoming-report.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** Applies one event. */
export function trackEvent(set: WorkingSet, operation: TrackEvent): void {
  const { environmentId, person: identifier } = operation;
  if (!takeEventOnce(set, operation, operation.eventId)) return;
  if (identifier === null) {
    addEvent(set, operation, null, undefined);
    reportTracked(set, operation, undefined);
  } else if (identifier.kind === 'anonymous_id') {
    addAnonymousEvent(set, operation, identifier.value);
  } else {
    const found = set.directory.resolve(environmentId, identifier);
    const resolution =
      found.outcome === 'found' ? found : findOrCreatePerson(set, operation, identifier);
    if (resolution.outcome !== 'found') return;
    addEvent(set, operation, operation.anonymousId ?? null, resolution.person);
    if (operation.anonymousId !== undefined)
      identifyVisitor(set, operation, resolution.person, operation.anonymousId);
    // Last: the report has the person with the data of the visitor.
    reportTracked(set, operation, resolution.person);
  }
}

/** Takes the event's id; false, and recorded, if it was taken before. */
export function takeEventOnce(set: WorkingSet, operation: Operation, eventId: string): boolean {
  if (set.takeEventId(operation.environmentId, eventId)) return true;
  set.addIssue(operation, {
    code: 'duplicate_event',
    field: 'id',
    message: `An event with the id "${eventId}" was already taken; this one was not counted.`,
    sample: eventId,
  });
  return false;
}

function addAnonymousEvent(set: WorkingSet, operation: TrackEvent, anonymousId: string): void {
  const owner = set.directory.resolveStored(operation.environmentId, 'anonymous_id', anonymousId);
  if (owner.outcome === 'suppressed') {
    set.addIssue(operation, {
      code: 'suppressed',
      field: 'anonymous_id',
      message: `The anonymous id "${anonymousId}" is suppressed; the event was ignored. This is intended unless the person agreed again; then unsuppress the person.`,
      sample: anonymousId,
    });
    return;
  }
  const person = owner.outcome === 'found' ? owner.person : undefined;
  addEvent(set, operation, anonymousId, person);
  reportTracked(set, operation, person);
  // Held from now on, so that a person who is given the id gets this event.
  if (!person)
    set.directory.assign(operation.environmentId, 'anonymous_id', anonymousId, undefined);
}

function addEvent(
  set: WorkingSet,
  operation: TrackEvent,
  anonymousId: string | null,
  person: PersonState | undefined,
): void {
  set.addEvent(
    {
      environmentId: operation.environmentId,
      eventId: operation.eventId,
      kind: operation.kind,
      personId: null,
      anonymousId,
      name: operation.name,
      data: operation.data,
      occurredAtMs: operation.occurredAtMs,
      receivedAtMs: operation.receivedAtMs,
      processedAtMs: null,
      envelopeNumber: operation.envelopeNumber,
      flushIndex: operation.flushIndex,
    },
    person,
  );
}
