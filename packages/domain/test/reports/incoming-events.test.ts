/** Incoming events: reports of calls to webhooks that ask for them, and the calls without a report. */
import { describe, expect, it } from 'vitest';
import { NO_SUBSCRIPTIONS } from '../../src/delivery/incoming-subscription.ts';
import {
  IncomingSubscriptions,
  LATE_AFTER_MS,
  type IncomingSubscription,
} from '../../src/delivery/incoming-subscription.ts';
import type { ReportingEvent } from '../../src/delivery/reporting-event.ts';
import { IMPORT_SOURCE, type Operation } from '../../src/operations/operation.ts';
import {
  addDevice,
  deleteObject,
  form,
  identify,
  identifyObject,
  merge,
  NOW_MS,
  relate,
  relateObject,
  remove,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';
import { MemoryStore, WAYS } from '../support/memory-store.ts';

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

function storeFor(...changes: Partial<IncomingSubscription>[]): MemoryStore {
  const store = new MemoryStore();
  store.subscriptions = new IncomingSubscriptions(changes.map(subscription));
  return store;
}

/** Applies the operations and returns the reports of incoming events. */
function reportsOf(store: MemoryStore, ...operations: Operation[]): ReportingEvent[] {
  return store.apply(...operations).reports.filter(({ webhookIds }) => webhookIds !== undefined);
}

const brief = ({ objectType, metric, eventId }: ReportingEvent) =>
  `${objectType} ${metric} ${eventId}`;

describe('of each kind of call', () => {
  it.each([
    ['event', track('id:1', 'order_placed', { eventId: 'e', data: { total: 5 } })],
    ['page', track('id:1', 'Home', { eventId: 'e', kind: 'page' })],
    ['screen', track('id:1', 'Cart', { eventId: 'e', kind: 'screen' })],
  ])('%s: its name, its properties, and whose it is', (type, operation) => {
    const store = storeFor({});
    store.apply(identify('id:1', { email: 'a@x', plan: 'pro' }));
    const [report] = reportsOf(store, operation);
    expect(report).toEqual({
      environmentId: 1,
      eventId: 'e',
      eventType: type,
      objectType: type,
      metric: operation.name,
      occurredAtMs: NOW_MS,
      personId: 1,
      webhookIds: [1],
      data: {
        customer_id: '1',
        email_address: 'a@x',
        identifiers: { id: '1', email: 'a@x', svc_id: 'a3000001' },
        name: operation.name,
        properties: operation.data,
      },
      content: { person_attributes: { plan: 'pro' } },
    });
  });

  it('identify, of a person and of a visitor; a form is one', () => {
    const store = storeFor({});
    const reports = reportsOf(
      store,
      identify('id:1', { plan: 'pro', email: 'a@x' }),
      identify('anonymous_id:v', { theme: 'dark' }),
      form('id:1', 'signup', { city: 'Rome' }),
    );
    expect(reports.map(({ metric, data }) => ({ metric, ...data }))).toEqual([
      {
        metric: 'identify',
        customer_id: '1',
        email_address: 'a@x',
        identifiers: { id: '1', email: 'a@x', svc_id: 'a3000001' },
        attributes: { plan: 'pro', email: 'a@x' },
      },
      {
        metric: 'identify',
        customer_id: '',
        email_address: '',
        identifiers: { id: null, email: null },
        anonymous_id: 'v',
        attributes: { theme: 'dark' },
      },
      expect.objectContaining({ form_id: 'signup', attributes: { city: 'Rome' } }),
    ]);
  });

  it('group, from either side, with the person where there is one', () => {
    const store = storeFor({});
    const entry = { person: { kind: 'id', value: '1' } as const, attributes: { role: 'owner' } };
    const reports = reportsOf(
      store,
      identifyObject('acme', { name: 'Acme' }, { relationships: [entry] }),
      relate('id:1', 'other', { role: 'member' }),
      relateObject('acme', 'id:1', {}, 'delete'),
      identifyObject('alone', {}),
    );
    expect(reports.map(({ metric, personId, data }) => [metric, personId, data])).toEqual([
      [
        'group',
        2,
        expect.objectContaining({
          object_type_id: '1',
          object_id: 'acme',
          attributes: { name: 'Acme' },
          identifiers: { id: '1', email: null, svc_id: 'a3000002' },
          relationships: [{ identifiers: { id: '1' }, relationship_attributes: { role: 'owner' } }],
        }),
      ],
      [
        'add_relationships',
        2,
        expect.objectContaining({
          relationships: [
            {
              object_type_id: '1',
              object_id: 'other',
              relationship_attributes: { role: 'member' },
            },
          ],
        }),
      ],
      ['delete_relationships', 2, expect.objectContaining({ object_id: 'acme' })],
      ['group', undefined, expect.objectContaining({ object_id: 'alone', relationships: [] })],
    ]);
  });

  it('delete, of a person and of an object', () => {
    const store = storeFor({ events: ['delete'] });
    store.apply(identify('id:1', { email: 'a@x' }), identifyObject('acme'));
    const reports = reportsOf(store, remove('id:1'), deleteObject('acme'), remove('id:1'));
    expect(reports.map(({ objectType, metric, data }) => [objectType, metric, data])).toEqual([
      [
        'delete',
        'delete',
        {
          customer_id: '1',
          email_address: 'a@x',
          identifiers: { id: '1', email: 'a@x', svc_id: 'a3000001' },
        },
      ],
      ['delete', 'delete', expect.objectContaining({ object_type_id: '1', object_id: 'acme' })],
    ]);
  });

  it('devices and merges are no incoming events', () => {
    const store = storeFor({});
    store.apply(identify('id:1'), identify('id:2'));
    expect(reportsOf(store, addDevice('id:1', 't'), merge('id:1', 'id:2'))).toEqual([]);
  });
});

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

describe('which calls', () => {
  it.each(WAYS)('an event id once, %s', (_, isTogether) => {
    const store = storeFor({});
    const twice = [track('id:1', 'a', { eventId: 'e' }), track('id:1', 'b', { eventId: 'e' })];
    const reports = isTogether
      ? reportsOf(store, ...twice)
      : twice.flatMap((operation) => reportsOf(store, operation));
    expect(reports.map(brief)).toEqual(['event a e']);
  });

  it.each(WAYS)(
    'an anonymous event once, under its anonymous id, before it is somebody’s, %s',
    (_, isTogether) => {
      const store = storeFor({ events: ['event'] });
      const calls = [
        track('anonymous_id:v', 'seen', { eventId: '1' }),
        identify('id:1', {}, { anonymousId: 'v' }),
        track('anonymous_id:v', 'bought', { eventId: '2' }),
      ];
      const reports = isTogether
        ? reportsOf(store, ...calls)
        : calls.flatMap((operation) => reportsOf(store, operation));
      expect(reports.map((report) => [brief(report), report.personId, report.data])).toEqual([
        [
          'event seen 1',
          undefined,
          expect.objectContaining({ anonymous_id: 'v', identifiers: { id: null, email: null } }),
        ],
        ['event bought 2', 1, expect.objectContaining({ anonymous_id: 'v', customer_id: '1' })],
      ]);
    },
  );

  it('the suppression of a person is reported last, and later calls of the person are not', () => {
    const store = storeFor({});
    store.apply(identify('id:1', { anonymous_id: 'v' }));
    const entry = { person: { kind: 'id', value: '1' } as const, attributes: {} };
    const reports = reportsOf(
      store,
      suppress('id:1'),
      suppress('id:1'),
      track('id:1', 'a'),
      track('anonymous_id:v', 'b'),
      identify('id:1', { plan: 'pro' }),
      relate('id:1', 'acme'),
      identifyObject('acme', {}, { relationships: [entry] }),
      remove('id:1'),
      suppress('id:nobody'),
    );
    expect(reports.map(({ objectType, metric }) => `${objectType} ${metric}`)).toEqual([
      'delete suppress',
    ]);
    store.apply(unsuppress('id:1'));
    expect(reportsOf(store, track('id:1', 'back'))).toHaveLength(1);
  });

  it('a call that newer attributes supersede is not reported, but its new relationships are', () => {
    const store = storeFor({});
    const at = (attributesAtMs: number) => ({ attributesAtMs });
    store.apply(
      identify('id:1', { plan: 'new' }, at(2_000)),
      identifyObject('acme', { a: 2 }, at(2_000)),
      identify('anonymous_id:v', { plan: 'new' }, at(2_000)),
    );
    const entry = { person: { kind: 'id', value: '1' } as const, attributes: {} };
    const reports = reportsOf(
      store,
      identify('id:1', { plan: 'old' }, at(1_000)),
      identify('anonymous_id:v', { plan: 'old' }, at(1_000)),
      identifyObject('acme', { a: 1 }, at(1_000)),
      identifyObject('acme', { a: 1 }, { ...at(1_000), relationships: [entry] }),
    );
    expect(reports.map(({ data }) => data)).toEqual([
      expect.not.objectContaining({ attributes: expect.anything() }),
    ]);
  });

  it('a later event of a visitor has the identifiers of the person, also if no webhook wanted the linking event', () => {
    const store = storeFor({ eventNames: ['bought'] });
    store.apply(identify('id:1', { email: 'a@x' }));
    const reports = reportsOf(
      store,
      track('id:1', 'seen', { anonymousId: 'v' }),
      track('anonymous_id:v', 'bought'),
    );
    expect(reports.map(({ data }) => data)).toEqual([
      expect.objectContaining({ anonymous_id: 'v', customer_id: '1', email_address: 'a@x' }),
    ]);
  });

  it('of a person who is merged within the commit batch, as of whom they are part of', () => {
    const store = storeFor({ events: ['event'] });
    store.apply(identify('id:1'), identify('id:2'));
    const [report] = reportsOf(store, track('id:2', 'a'), merge('id:1', 'id:2'));
    expect(report).toMatchObject({ personId: 1, data: { customer_id: '2' } });
  });

  it('names of a client’s cannot stand for ours', () => {
    const store = storeFor({});
    const data = { identifiers: { svc_id: 'a3000009' }, customer_id: 'x' };
    const [report] = reportsOf(store, track('anonymous_id:v', 'a', { data }));
    expect(report?.data).toMatchObject({
      customer_id: '',
      identifiers: { id: null, email: null },
      properties: data,
    });
  });
});
