/** Events of each kind that one lane may hold, in turns: a report, a tracked event of one's own, a published message. */
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';

/**
 * The event of a number, `e<number>`.
 *
 * @param personId - whom it is about. A published message is about no person.
 */
export function eventInTurn(
  { environmentId, webhookId }: LaneKey,
  number: number,
  occurredAtMs: number,
  personId?: number,
): ReportingEvent {
  const event = { environmentId, eventId: `e${number}`, occurredAtMs };
  const about = personId === undefined ? {} : { personId };
  switch (number % 3) {
    case 0:
      return {
        ...event,
        ...about,
        eventType: 'customer_subscribed',
        objectType: 'customer',
        metric: 'subscribed',
        data: { customer_id: '42' },
      };
    case 1:
      return {
        ...event,
        ...about,
        eventType: 'event',
        objectType: 'event',
        metric: 'order_placed',
        webhookIds: [webhookId],
        data: { identifiers: { id: '42' }, properties: { total: number } },
      };
    default:
      return {
        ...event,
        eventType: 'message',
        objectType: 'message',
        metric: 'invoice.paid',
        webhookIds: [webhookId],
        data: { payload: { invoice_id: `in_${number}` } },
      };
  }
}
