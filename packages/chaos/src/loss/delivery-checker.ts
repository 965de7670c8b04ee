/**
 * Compares the deliveries that an endpoint accepted with the acknowledged calls.
 *
 * Each event and each published message must come. A person's events must be accepted in the order in which their
 * client sent them. Of two copies the first one counts.
 */
import type { DeliveryReceiver } from './delivery-receiver.ts';
import type { SentEvent, SentPerson } from './loss-call.ts';

const PROBLEMS_MAX = 10;

/** @returns the differences, a line each; empty without one. */
export function findUndelivered(
  people: readonly Pick<SentPerson, 'name' | 'events'>[],
  published: readonly SentEvent[],
  { accepted, problems: wrongBodies }: Pick<DeliveryReceiver, 'accepted' | 'problems'>,
): string[] {
  const problems = [...wrongBodies];
  for (const { eventId, call } of published)
    if (!accepted.has(eventId)) problems.push(`published and not delivered: ${eventId} (${call})`);
  for (const { name, events } of people) {
    let last = -1;
    for (const [place, { eventId, call }] of events.entries()) {
      const which = `event ${place} of ${name} (${eventId}; ${call})`;
      const acceptedAt = accepted.get(eventId);
      if (acceptedAt === undefined) problems.push(`not delivered: ${which}`);
      else if (acceptedAt < last)
        problems.push(`delivered before the one sent before it: ${which}`);
      else last = acceptedAt;
    }
  }
  return problems.length <= PROBLEMS_MAX
    ? problems
    : [...problems.slice(0, PROBLEMS_MAX), `and ${problems.length - PROBLEMS_MAX} more`];
}
