/** Devices, objects, segments, forms, messages: ingestion-conventions.md §1.5, §1.6 and §2. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { StateChanges } from '../../src/state/loaded-state.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { MemoryStore, WAYS } from '../support/memory-store.ts';
import {
  addDevice,
  deleteDevice,
  deleteObject,
  form,
  identify,
  identifyObject,
  metric,
  relate,
  relateObject,
  remove,
  segment,
  unsubscribeDelivery,
} from '../../src/testing/sample-operations.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const codes = (changes: StateChanges): string[] => changes.issues.map((row) => row.issue.code);

describe('devices', () => {
  it.each(WAYS)('lays a device over itself and deletes it, %s', (_, isTogether) => {
    store.applyEach(
      isTogether,
      addDevice('id:1', 't', { os: '17', locale: 'de' }),
      addDevice('id:1', 't', { os: '18', locale: null }),
      addDevice('id:1', 'u'),
    );
    expect(store.devices).toMatchObject([{ token: 't', attributes: { os: '18' } }, { token: 'u' }]);
    store.apply(deleteDevice('id:1', 't'));
    expect(store.devices).toMatchObject([{ token: 'u' }]);
    store.apply(remove('id:1'));
    expect(store.devices).toEqual([]);
  });
});

describe('objects and relationships', () => {
  it.each(WAYS)(
    'relates from both sides, and creates missing people and objects, %s',
    (_, isTogether) => {
      store.applyEach(
        isTogether,
        relate('id:1', 'acme', { role: 'boss' }),
        relateObject('acme', 'email:b@x', { role: 'clerk' }),
        identifyObject(
          'acme',
          { size: 3 },
          { relationships: [{ person: { kind: 'id', value: '1' }, attributes: { since: 2020 } }] },
        ),
      );
      expect(store.objects).toMatchObject([
        { objectTypeId: 1, objectId: 'acme', attributes: { size: 3 } },
      ]);
      expect(store.people).toHaveLength(2);
      expect(store.relationships).toMatchObject([
        { attributes: { role: 'boss', since: 2020 } },
        { attributes: { role: 'clerk' } },
      ]);
      expect(store.events.filter((row) => row.kind === 'add_relationship')).toHaveLength(2);
    },
  );

  it.each(WAYS)(
    'forgets the attributes of a relationship that was deleted and made again, %s',
    (_, isTogether) => {
      store.applyEach(
        isTogether,
        relate('id:1', 'acme', { a: 1 }),
        relate('id:1', 'acme', {}, 'delete'),
        relateObject('acme', 'id:1', { b: 1 }),
      );
      expect(store.relationships).toMatchObject([{ attributes: { b: 1 } }]);
    },
  );

  it('deletes an object with its relationships, also of people outside the commit batch', () => {
    store.apply(relate('id:1', 'acme'), relate('id:2', 'acme'), relate('id:2', 'other'));
    store.apply(deleteObject('acme'));
    expect(store.objects).toMatchObject([{ objectId: 'other' }]);
    expect(store.relationships).toHaveLength(1);
    store.apply(deleteObject('other'), relate('id:2', 'other'));
    expect(store.relationships).toHaveLength(1);
  });

  it('changes no object for an unknown svc object id, or for one of another workspace', () => {
    store.apply(identifyObject('acme'));
    const object = { svcObjectId: 'ob000001' };
    store.apply({ ...identifyObject('', { a: 1 }), object });
    expect(store.objects).toMatchObject([{ attributes: { a: 1 } }]);
    expect(
      codes(store.apply({ ...identifyObject('', { a: 2 }), object, environmentId: 2 })),
    ).toEqual(['object_not_found']);
    expect(
      codes(store.apply({ ...identifyObject('', { a: 2 }), object: { svcObjectId: 'ob0000ff' } })),
    ).toEqual(['object_not_found']);
  });

  it('skips object attributes that are older than the stored ones', () => {
    store.apply(identifyObject('acme', { a: 1 }, { attributesAtMs: 2000 }));
    expect(codes(store.apply(identifyObject('acme', { a: 2 }, { attributesAtMs: 1999 })))).toEqual([
      'skipped_update',
    ]);
    expect(store.objects).toMatchObject([{ attributes: { a: 1 } }]);
  });
});

describe('segments and forms', () => {
  it.each(WAYS)(
    'adds and removes members, skipping identifiers of unknown people, %s',
    (_, isTogether) => {
      store.applyEach(
        isTogether,
        identify('id:1'),
        identify('id:2'),
        segment('add', 7, 'id:1', 'id:2', 'id:3'),
        segment('remove', 7, 'id:1'),
        segment('add', 7, 'id:2'),
      );
      expect(store.segmentMembers).toMatchObject([{ segmentId: 7, personId: 2 }]);
      expect(store.people).toHaveLength(2);
    },
  );

  it('makes a person of a form and notes it', () => {
    store.apply(form('email:a@x', 'contact', { name: 'Ann' }));
    expect(store.people).toMatchObject([{ email: 'a@x', attributes: { name: 'Ann' } }]);
    expect(store.events).toMatchObject([
      { kind: 'profile_create' },
      { kind: 'form', name: 'contact', data: { name: 'Ann' } },
    ]);
  });
});

describe('messages', () => {
  it('reports a metric of the channel of the delivery, else of the call, else email', () => {
    const type = (operation: Operation) => store.apply(operation).reports[0]?.eventType;
    expect(type(metric('d1', 'opened'))).toBe('email_opened');
    expect(type(metric('d2', 'delivered', { channel: 'push' }))).toBe('push_delivered');
    expect(type(metric('d2', 'opened', { channel: 'sms' }))).toBe('push_opened');
  });

  it('reports the recipient’s known identifiers and the details of the message', () => {
    store.apply(identify('id:1', { email: 'a@x' }));
    const [report] = store.apply(
      metric('d1', 'bounced', { recipient: 'A@x', reason: 'full' }),
    ).reports;
    expect(report).toMatchObject({
      objectType: 'email',
      metric: 'bounced',
      data: {
        delivery_id: 'd1',
        customer_id: '1',
        identifiers: { email: 'a@x' },
        recipient: 'A@x',
        failure_message: 'full',
      },
    });
  });

  it('reports a metric once and refuses one that the channel does not have', () => {
    const operation = metric('d1', 'opened');
    expect(store.apply(operation, operation).reports).toHaveLength(1);
    expect(codes(store.apply(metric('d1', 'replied')))).toEqual(['unsupported']);
  });

  it('unsubscribes the person behind a message, for the channel that it came by', () => {
    store.apply(identify('id:1', { email: 'a@x' }), metric('d1', 'sent', { recipient: 'a@x' }));
    expect(store.apply(unsubscribeDelivery('d1')).reports).toMatchObject([
      { eventType: 'customer_unsubscribed', objectType: 'email' },
    ]);
    expect(store.apply(unsubscribeDelivery('d1')).reports).toEqual([]);
    expect(codes(store.apply(unsubscribeDelivery('d2')))).toEqual(['person_not_found']);
    store.apply(remove('id:1'));
    expect(codes(store.apply(unsubscribeDelivery('d1')))).toEqual(['person_not_found']);
  });
});
