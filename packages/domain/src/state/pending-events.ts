/**
 * Events and activities of a commit batch until they are written: their person can still change, when an anonymous id
 * turns out to be somebody's and when people are merged.
 */
import { followMerges, type PersonState } from './person-directory.ts';
import type { AnonymousAttachment, EventRow } from './loaded-state.ts';
import { eventText } from '../operations/state-keys.ts';

/** How old an event may be and still become the person's (`ingestion-conventions.md` §1.4, §1.6). */
export const ATTACHED_AGE_MS_MAX = 30 * 24 * 60 * 60 * 1000;

/** An event as it comes, before it is anybody's. */
export type NewEvent = Omit<EventRow, 'personId' | 'processedAtMs'>;

interface PendingEvent extends NewEvent {
  person: PersonState | undefined;
  processedAtMs: number | null;
}

interface PendingAttachment extends Omit<AnonymousAttachment, 'personId'> {
  readonly person: PersonState;
}

export class PendingEvents {
  readonly #events: PendingEvent[] = [];
  readonly #waiting = new Map<string, PendingEvent[]>();
  readonly #attachments: PendingAttachment[] = [];
  readonly #attachedAnonymousIds = new Set<string>();

  /** Without a person it waits under its anonymous id, if it has one. */
  add(event: NewEvent, person: PersonState | undefined, nowMs: number): void {
    const pending: PendingEvent = {
      environmentId: event.environmentId,
      eventId: event.eventId,
      kind: event.kind,
      anonymousId: event.anonymousId,
      name: event.name,
      data: event.data,
      occurredAtMs: event.occurredAtMs,
      receivedAtMs: event.receivedAtMs,
      envelopeNumber: event.envelopeNumber,
      flushIndex: event.flushIndex,
      processedAtMs: person ? nowMs : null,
      person,
    };
    this.#events.push(pending);
    if (person || event.anonymousId === null) return;
    const text = eventText(event.environmentId, event.anonymousId);
    const waiting = this.#waiting.get(text);
    if (waiting) waiting.push(pending);
    else this.#waiting.set(text, [pending]);
  }

  /**
   * Gives the person what waited under an anonymous id since a time.
   *
   * @param isStored - the database may have some too.
   */
  attach(
    person: PersonState,
    anonymousId: string,
    isStored: boolean,
    sinceMs: number,
    processedAtMs: number,
  ): void {
    const { environmentId } = person;
    const text = eventText(environmentId, anonymousId);
    // Stored ones are assigned once: an anonymous id that becomes free again has none left.
    if (isStored && !this.#attachedAnonymousIds.has(text)) {
      this.#attachedAnonymousIds.add(text);
      this.#attachments.push({ environmentId, anonymousId, sinceMs, processedAtMs, person });
    }
    const waiting = this.#waiting.get(text) ?? [];
    for (const event of waiting) {
      if (event.occurredAtMs < sinceMs) continue;
      event.person = person;
      event.processedAtMs = processedAtMs;
    }
    this.#waiting.delete(text);
  }

  /** Leaves older events with a person who is about to be merged, as is done with stored events. */
  leaveBehind(from: PersonState, sinceMs: number): void {
    const before: PersonState = { ...from };
    for (const event of this.#events) {
      const isOld = event.occurredAtMs < sinceMs || event.receivedAtMs < sinceMs;
      if (isOld && event.person && followMerges(event.person) === from) event.person = before;
    }
  }

  attachments(): AnonymousAttachment[] {
    return this.#attachments.map(({ person, ...attachment }) => ({
      ...attachment,
      personId: followMerges(person).personId,
    }));
  }

  rows(): EventRow[] {
    return this.#events.map((event) => ({
      environmentId: event.environmentId,
      eventId: event.eventId,
      kind: event.kind,
      anonymousId: event.anonymousId,
      name: event.name,
      data: event.data,
      occurredAtMs: event.occurredAtMs,
      receivedAtMs: event.receivedAtMs,
      envelopeNumber: event.envelopeNumber,
      flushIndex: event.flushIndex,
      processedAtMs: event.processedAtMs,
      personId: event.person ? followMerges(event.person).personId : null,
    }));
  }
}
