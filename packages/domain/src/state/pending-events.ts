/**
 * Events and activities of a commit batch until they are written: their person can still change, when an anonymous id
 * turns out to be somebody's and when people are merged.
 */
import { followMerges, type PersonState } from './person-directory.ts';
import type { AnonymousAttachment, EventRow } from './loaded-state.ts';
import { eventText } from '../operations/state-keys.ts';

/** How old an event may be and still become the person's (`ingestion-conventions.md` §1.4, §1.6). */
export const ATTACHED_AGE_MS_MAX = 30 * 24 * 60 * 60 * 1000;

/** An event as it comes, without a person. It becomes the row of the event: most operations are events. */
export type NewEvent = Omit<EventRow, 'personId' | 'processedAtMs'> & {
  personId: number | null;
  processedAtMs: number | null;
};

interface PendingAttachment extends Omit<AnonymousAttachment, 'personId'> {
  readonly person: PersonState;
}

export class PendingEvents {
  readonly #events: NewEvent[] = [];
  /** Whose each event is, at its place among the events. */
  readonly #people: (PersonState | undefined)[] = [];
  /** Places of events by `eventText` of their anonymous id. */
  readonly #waiting = new Map<string, number[]>();
  readonly #attachments: PendingAttachment[] = [];
  /** Anonymous ids whose stored events have a person, up to a time. Null: all of them. */
  readonly #attachedUntilMs = new Map<string, number | null>();
  /** Of all events, by either of their times. */
  #oldestMs = Infinity;

  /** Without a person it waits under its anonymous id, if it has one. */
  add(event: NewEvent, person: PersonState | undefined, nowMs: number): void {
    if (person) event.processedAtMs = nowMs;
    const place = this.#events.push(event) - 1;
    this.#oldestMs = Math.min(this.#oldestMs, event.occurredAtMs, event.receivedAtMs);
    this.#people.push(person);
    if (person || event.anonymousId === null) return;
    const text = eventText(event.environmentId, event.anonymousId);
    const waiting = this.#waiting.get(text);
    if (waiting) waiting.push(place);
    else this.#waiting.set(text, [place]);
  }

  /**
   * Gives the person the events that waited under an anonymous id since a time.
   *
   * @param isStored - the database may have some too.
   * @param untilMs - of a person who is gone since: later ones go on waiting. Null: they get all.
   */
  attach(
    person: PersonState,
    anonymousId: string,
    isStored: boolean,
    givenSinceMs: number,
    untilMs: number | null,
    processedAtMs: number,
  ): void {
    const { environmentId } = person;
    const text = eventText(environmentId, anonymousId);
    // Stored ones are assigned once: an anonymous id that becomes free again has no more of them.
    const attachedUntilMs = this.#attachedUntilMs.get(text);
    const sinceMs = Math.max(givenSinceMs, attachedUntilMs ?? 0);
    if (isStored && attachedUntilMs !== null) {
      this.#attachedUntilMs.set(text, untilMs);
      const attachment = { environmentId, anonymousId, sinceMs, untilMs, processedAtMs, person };
      this.#attachments.push(attachment);
    }
    const later: number[] = [];
    for (const place of this.#waiting.get(text) ?? []) {
      const event = this.#events[place];
      if (!event || event.occurredAtMs < givenSinceMs) continue;
      if (untilMs !== null && event.receivedAtMs >= untilMs) {
        later.push(place);
        continue;
      }
      this.#people[place] = person;
      event.processedAtMs = processedAtMs;
    }
    this.#waiting.set(text, later);
  }

  /** Leaves older events with a person who is about to be merged, as is done with stored events. */
  leaveBehind(from: PersonState, sinceMs: number): void {
    // Hardly any transaction has one: the loop was a tenth of the worker's time for a thousand merges.
    if (this.#oldestMs >= sinceMs) return;
    const before: PersonState = { ...from };
    for (const [place, event] of this.#events.entries()) {
      const person = this.#people[place];
      const isOld = event.occurredAtMs < sinceMs || event.receivedAtMs < sinceMs;
      if (isOld && person && followMerges(person) === from) this.#people[place] = before;
    }
  }

  attachments(): AnonymousAttachment[] {
    return this.#attachments.map(({ person, ...attachment }) => ({
      ...attachment,
      personId: followMerges(person).personId,
    }));
  }

  /** The events, each its person's by now. */
  rows(): readonly EventRow[] {
    for (const [place, person] of this.#people.entries()) {
      const event = this.#events[place];
      if (event && person) event.personId = followMerges(person).personId;
    }
    return this.#events;
  }
}
