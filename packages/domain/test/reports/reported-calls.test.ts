/** Calls that are reported: once each, about the right person, and calls without a report. */
import { describe, expect, it } from 'vitest';
import {
  identify,
  identifyObject,
  merge,
  relate,
  remove,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';
import { WAYS } from '../support/memory-store.ts';
import { brief, reportsOf, storeFor } from '../support/incoming-reports.ts';

const relationship = (objectId: string, attributes: object = {}) => ({
  object_type_id: '1',
  object_id: objectId,
  relationship_attributes: attributes,
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
    const joining = (objectId: string) => ({
      ...at(1_000),
      relationships: {
        action: 'add' as const,
        entries: [{ object: { objectTypeId: 1, objectId }, attributes: { role: 'owner' } }],
      },
    });
    const reports = reportsOf(
      store,
      identify('id:1', { plan: 'old' }, at(1_000)),
      identify('anonymous_id:v', { plan: 'old' }, at(1_000)),
      identify('id:1', { plan: 'old' }, joining('first')),
      identify('anonymous_id:v', { plan: 'old' }, joining('second')),
      identifyObject('acme', { a: 1 }, at(1_000)),
      identifyObject('acme', { a: 1 }, { ...at(1_000), relationships: [entry] }),
    );
    expect(
      reports.map(({ objectType, data }) => [
        objectType,
        'attributes' in data,
        data['anonymous_id'],
        data['relationships'],
      ]),
    ).toEqual([
      ['identify', false, undefined, [relationship('first', { role: 'owner' })]],
      ['identify', false, 'v', [relationship('second', { role: 'owner' })]],
      ['group', false, undefined, [{ identifiers: { id: '1' }, relationship_attributes: {} }]],
    ]);
  });

  it('only relationships to known objects are reported', () => {
    const store = storeFor({});
    store.apply(identify('id:1'), identifyObject('acme'));
    const leave = (...objectIds: string[]) => ({
      ...relate('id:1', '', {}, 'delete'),
      entries: objectIds.map((objectId) => ({
        object: { objectTypeId: 1, objectId },
        attributes: {},
      })),
    });
    const unknown = { object: { svcObjectId: 'ob99' }, attributes: {} };
    const joining = { relationships: { action: 'add' as const, entries: [unknown] } };
    const reports = reportsOf(
      store,
      relate('id:1', 'unknown', {}, 'delete'),
      relate('anonymous_id:v', 'unknown', {}, 'delete'),
      leave('acme', 'unknown') as ReturnType<typeof relate>,
      identify('id:1', { plan: 'pro' }, joining),
    );
    expect(reports.map(({ metric, data }) => [metric, data['relationships']])).toEqual([
      ['delete_relationships', [relationship('acme')]],
      ['identify', undefined],
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

  it.each(WAYS)(
    'an event that names a visitor’s person has the visitor’s data, and comes after the reports that it causes, %s',
    (_, isTogether) => {
      const store = storeFor({ events: ['event'] });
      const calls = [
        identify('id:1'),
        identify('anonymous_id:v', { plan: 'pro', unsubscribed: true }),
        track('id:1', 'bought', { anonymousId: 'v' }),
      ];
      const reports = isTogether
        ? store.apply(...calls).reports
        : calls.flatMap((operation) => store.apply(operation).reports);
      expect(reports.map(({ metric, content }) => [metric, content])).toEqual([
        ['unsubscribed', undefined],
        ['bought', { person_attributes: { plan: 'pro', unsubscribed: true } }],
      ]);
    },
  );

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
