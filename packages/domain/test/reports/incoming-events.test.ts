/** Incoming events: the report of each kind of call. */
import { describe, expect, it } from 'vitest';
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
  track,
} from '../../src/testing/sample-operations.ts';
import { reportsOf, storeFor } from '../support/incoming-reports.ts';

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
