/** Webhooks for incoming events, and the reports of calls. */
import {
  IncomingSubscriptions,
  type IncomingSubscription,
} from '../../src/delivery/incoming-subscription.ts';
import type { ReportingEvent } from '../../src/delivery/reporting-event.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { MemoryStore } from './memory-store.ts';

const ALL = ['event', 'page', 'screen', 'identify', 'group', 'delete'];

const subscription = (changes: Partial<IncomingSubscription> = {}): IncomingSubscription => ({
  environmentId: 1,
  webhookId: 1,
  applicationId: null,
  events: ALL,
  eventNames: null,
  attributeFilters: null,
  withImports: false,
  withLate: false,
  withPersonAttributes: false,
  ...changes,
});

export function storeFor(...changes: Partial<IncomingSubscription>[]): MemoryStore {
  const store = new MemoryStore();
  store.subscriptions = new IncomingSubscriptions(changes.map(subscription));
  return store;
}

/** Applies the operations and returns the reports of incoming events. */
export function reportsOf(store: MemoryStore, ...operations: Operation[]): ReportingEvent[] {
  return store.apply(...operations).reports.filter(({ webhookIds }) => webhookIds !== undefined);
}

export const brief = ({ objectType, metric, eventId }: ReportingEvent) =>
  `${objectType} ${metric} ${eventId}`;
