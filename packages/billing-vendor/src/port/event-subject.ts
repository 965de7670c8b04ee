/**
 * Which of the payment provider's events we have a use for, by their type, and what each is about: the one list of
 * those who keep them (`api/src/billing/provider-event-endpoint.ts`) and those who act on them
 * (`worker/src/settlement/settle-provider-events.ts`). What is not on it is not kept, so it can never be acted on.
 */

/** What the object of an event is. */
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
