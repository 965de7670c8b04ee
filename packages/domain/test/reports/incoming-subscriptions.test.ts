/** Webhooks that ask for incoming events, by their types, names and filters. */
import { describe, expect, it } from 'vitest';
import { NO_SUBSCRIPTIONS } from '../../src/delivery/incoming-subscription.ts';
import {
  LATE_AFTER_MS,
  type IncomingSubscription,
} from '../../src/delivery/incoming-subscription.ts';
import { IMPORT_SOURCE } from '../../src/operations/operation.ts';
import { identify, NOW_MS, track } from '../../src/testing/sample-operations.ts';
import { MemoryStore } from '../support/memory-store.ts';
import { brief, reportsOf, storeFor } from '../support/incoming-reports.ts';

describe('which webhooks', () => {
  it('webhooks that list the type, or every type', () => {
    const store = storeFor(
      { webhookId: 1, events: ['page'] },
      { webhookId: 2, events: ['event'] },
      { webhookId: 3, events: ['*'] },
      { webhookId: 4, environmentId: 2 },
    );
    const [report] = reportsOf(store, track('id:1', 'order_placed'));
    expect(report?.webhookIds).toEqual([2, 3]);
  });

  it('by the names of tracked events, and of no other type', () => {
    const store = storeFor({ eventNames: ['order_placed', 'refund'] });
    const reports = reportsOf(
      store,
      track('id:1', 'order_placed', { eventId: '1' }),
      track('id:1', 'Order_Placed', { eventId: '2' }),
      track('id:1', 'Home', { eventId: '3', kind: 'page' }),
    );
    expect(reports.map(brief)).toEqual(['event order_placed 1', 'page Home 3']);
  });

  it('by properties, names, and identifiers of the person', () => {
    const attributeFilters = [
      { field: 'data.properties.total', operator: 'gte', values: ['100'] },
      { field: 'metric', operator: 'in', values: ['order_placed'] },
      { field: 'data.identifiers.email', operator: 'eq', values: ['A@x'] },
    ] as const;
    const store = storeFor({ attributeFilters });
    store.apply(identify('id:1', { email: 'a@x' }), identify('id:2', { email: 'b@x' }));
    const placed = (eventId: string, who: string, total: number, name = 'order_placed') =>
      track(who, name, { eventId, data: { total } });
    const reports = reportsOf(
      store,
      placed('1', 'id:1', 100),
      placed('2', 'id:1', 99),
      placed('3', 'id:2', 100),
      placed('4', 'id:1', 100, 'order_paid'),
    );
    expect(reports.map(({ eventId }) => eventId)).toEqual(['1']);
  });

  it('by the person’s attributes, if the webhook has them in its bodies', () => {
    const attributeFilters = [
      { field: 'data.person_attributes.plan', operator: 'eq', values: ['pro'] },
    ] as const;
    const store = storeFor(
      { webhookId: 1, attributeFilters, withPersonAttributes: true },
      { webhookId: 2, attributeFilters },
    );
    store.apply(identify('id:1', { plan: 'pro' }), identify('id:2', { plan: 'free' }));
    const reports = reportsOf(store, track('id:1', 'a'), track('id:2', 'a'));
    expect(reports.map(({ webhookIds }) => webhookIds)).toEqual([[1]]);
  });

  it('rows of imports and late events only if the webhook asks for them', () => {
    const late = { occurredAtMs: NOW_MS - LATE_AFTER_MS - 1 };
    const operations = [
      track('id:1', 'now', { eventId: '1', occurredAtMs: NOW_MS - LATE_AFTER_MS }),
      track('id:1', 'late', { eventId: '2', ...late }),
      track('id:1', 'imported', { eventId: '3', source: IMPORT_SOURCE }),
      track('id:1', 'both', { eventId: '4', source: IMPORT_SOURCE, ...late }),
    ];
    const idsOf = (changes: Partial<IncomingSubscription>) =>
      reportsOf(storeFor(changes), ...operations).map(({ eventId }) => eventId);
    expect(idsOf({})).toEqual(['1']);
    expect(idsOf({ withLate: true })).toEqual(['1', '2']);
    expect(idsOf({ withImports: true })).toEqual(['1', '3']);
    expect(idsOf({ withImports: true, withLate: true })).toEqual(['1', '2', '3', '4']);
  });

  it('without webhooks no call is reported', () => {
    const store = new MemoryStore();
    store.subscriptions = NO_SUBSCRIPTIONS;
    expect(reportsOf(store, track('id:1', 'order_placed'), identify('id:1'))).toEqual([]);
  });
});
