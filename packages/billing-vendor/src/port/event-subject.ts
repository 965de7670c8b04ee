/**
 * The used types of the payment provider's events, each with its subject.
 *
 * It is the one list for the code that stores events (`api/src/billing/provider-event-endpoint.ts`) and the code that
 * acts on them (`worker/src/settlement/settle-provider-events.ts`). Other events are not stored, so they can never be
 * acted on.
 */

/** The kind of an event's object. */
export type EventSubject = 'invoice' | 'subscription' | 'charge' | 'refund' | 'dispute';

/** How the types begin (the payment provider's list of event types). */
const SUBJECTS: readonly (readonly [beginning: string, subject: EventSubject])[] = [
  ['invoice.', 'invoice'],
  ['customer.subscription.', 'subscription'],
  ['charge.refunded', 'charge'],
  ['charge.refund.', 'refund'],
  ['refund.', 'refund'],
  ['charge.dispute.', 'dispute'],
];

/** @returns undefined if we have no use for events of that type. */
export const eventSubject = (type: string): EventSubject | undefined =>
  SUBJECTS.find(([beginning]) => type.startsWith(beginning))?.[1];
