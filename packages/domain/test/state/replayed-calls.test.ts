/**
 * A late call from a disk buffer makes no deleted person anew.
 *
 * The call waited there, and was taken before its person was deleted.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import { svcId } from '../../src/values/svc-id.ts';
import {
  addDevice,
  form,
  identify,
  identifyObject,
  merge,
  metric,
  NOW_MS,
  relate,
  relateObject,
  remove,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';
import { MemoryStore, WAYS } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const DELETED_AT_MS = NOW_MS + 1_000;
const CLOCKS_APART_MS = 120_000;
const replayed = (operation: Operation, receivedAtMs: number): Operation => ({
  ...operation,
  receivedAtMs,
  isReplayed: true,
});

describe.each(WAYS)('%s', (_, isTogether) => {
  const deletePerson = () =>
    store.applyEach(isTogether, identify('id:1', { email: 'a@example.com' }), {
      ...remove('id:1'),
      receivedAtMs: DELETED_AT_MS,
    });

  it.each([
    ['an identify', identify('id:1')],
    ['an identify by the email', identify('email:A@example.com')],
    ['an event', track('id:1', 'seen')],
    ['a device', addDevice('id:1', 'token')],
    ['a relationship', relate('id:1', 'acme')],
    ['a form', form('email:a@example.com', 'f', {})],
  ])('%s of before the deletion creates no person', (_name, call) => {
    deletePerson();
    store.apply(replayed(call, DELETED_AT_MS - 1));
    expect(store.people).toEqual([]);
    expect(store.events.filter(({ kind }) => kind === 'event')).toEqual([]);
    store.apply(
      replayed({ ...call, ...('eventId' in call && { eventId: 'another' }) }, DELETED_AT_MS + 1),
    );
    expect(store.people).toHaveLength(1);
  });

  it('leaves a person unchanged who has the identifier since', () => {
    deletePerson();
    store.apply({ ...identify('id:1', { plan: 'new' }), receivedAtMs: DELETED_AT_MS + 1 });
    store.apply(replayed(identify('id:1', { plan: 'old' }), DELETED_AT_MS - 1));
    store.apply(replayed(merge('id:1', 'id:1'), DELETED_AT_MS - 1));
    expect(store.people).toMatchObject([{ id: '1', attributes: { plan: 'new' } }]);
  });
});

it('a late call that brings another person the email of a deleted one makes that person without it', () => {
  store.apply(identify('id:1', { email: 'a@example.com' }));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(replayed(identify('id:2', { email: 'a@example.com', plan: 'pro' }), NOW_MS));
  expect(store.people).toMatchObject([{ id: '2', email: null, attributes: { plan: 'pro' } }]);
});

it.each([
  ['email:a@example.com', identify('id:2', { email: 'a@example.com' }), 'id:2'],
  ['id:1', identify('email:a@example.com', { id: '1' }), 'email:a@example.com'],
  [
    'email:a@example.com',
    identify('phone:+15550100', { email: 'a@example.com' }),
    'phone:+15550100',
  ],
  ['email:a@example.com', identify('anonymous_id:v', { email: 'a@example.com' }), 'anonymous_id:v'],
  ['id:1', identify('id:1', { email: 'b@example.com' }), 'email:b@example.com'],
  ['id:1', identify('id:1', { anonymous_id: 'v' }), 'anonymous_id:v'],
  ['id:1', form('id:1', 'f', { email: 'b@example.com' }), 'email:b@example.com'],
  ['id:1', track('id:1', 'seen', { anonymousId: 'v' }), 'anonymous_id:v'],
  ['id:1', { ...merge('id:new', 'id:1'), isAlias: true } as Operation, 'id:new'],
])(
  '%s was deleted: a name that a late call gives the person makes no person',
  (own, call, name) => {
    store.apply(identify(own));
    store.apply({ ...remove(own), receivedAtMs: DELETED_AT_MS });
    store.apply(replayed(call, NOW_MS));
    store.apply(replayed(track(name, 'seen'), NOW_MS + 1));
    store.apply(replayed(identify('id:third', { anonymous_id: 'v' }), DELETED_AT_MS + 1));
    expect(store.people).toMatchObject([{ id: 'third' }]);
    expect(store.events.filter(({ kind }) => kind === 'event')).toEqual([]);
    const isByEvent = !name.startsWith('anonymous_id:');
    store.apply(track(name, 'seen again'));
    expect(store.people).toHaveLength(isByEvent ? 2 : 1);
  },
);

it.each([
  ['id:1', 'id:1'],
  ['id:1', 'email:a@example.com'],
  ['email:A@example.com', 'id:1'],
])(
  'the call that makes a person is late, and %s is deleted first: %s has no person',
  (own, name) => {
    store.apply({ ...remove(own), receivedAtMs: DELETED_AT_MS });
    store.apply(replayed(identify('id:1', { email: 'a@example.com' }), NOW_MS));
    store.apply(replayed(track(name, 'seen'), NOW_MS + 1));
    expect(store.people).toEqual([]);
    store.apply(identify('id:1', { email: 'a@example.com' }));
    expect(store.people).toMatchObject([{ id: '1', email: 'a@example.com' }]);
  },
);

it('a late call does not take a name away from its present owner', () => {
  store.apply(identify('id:1'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(identify('id:2', { email: 'b@example.com' }));
  store.apply(replayed(identify('id:1', { email: 'b@example.com' }), NOW_MS));
  store.apply(replayed(identify('email:b@example.com', { plan: 'pro' }), NOW_MS + 1));
  expect(store.people).toMatchObject([{ id: '2', attributes: { plan: 'pro' } }]);
});

it('a second email of a deleted person is free, for the first one was kept', () => {
  store.apply(identify('id:1', { email: 'a@example.com' }));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(replayed(identify('id:1', { email: 'b@example.com' }), NOW_MS));
  store.apply(replayed(track('email:b@example.com', 'seen'), NOW_MS + 1));
  expect(store.people).toMatchObject([{ id: null, email: 'b@example.com' }]);
});

it('a late call about an object and a deleted person takes effect on the object and the others', () => {
  store.apply(identify('id:1'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  const relationships = ['1', '2', '3'].map((value) => ({
    person: { kind: 'id', value } as const,
    attributes: {},
  }));
  store.apply(replayed(identifyObject('acme', { name: 'Acme' }, { relationships }), NOW_MS));
  store.apply(replayed(relateObject('other', 'id:1'), NOW_MS));
  store.apply(replayed(relate('id:1', 'third'), NOW_MS));
  expect(store.objects).toMatchObject([
    { objectId: 'acme', attributes: { name: 'Acme' } },
    { objectId: 'other' },
    { objectId: 'third' },
  ]);
  expect(store.people.map(({ id }) => id)).toEqual(['2', '3']);
  expect(store.relationships).toHaveLength(2);
});

it('the id of a late event of a deleted person is used up', () => {
  store.apply(identify('id:1'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(
    replayed(track('id:1', 'seen', { eventId: 'same' }), NOW_MS),
    track('id:2', 'seen', { eventId: 'same' }),
  );
  expect(store.events.filter(({ kind }) => kind === 'event')).toEqual([]);
});

describe('a call of before a suppression that comes after its end', () => {
  const afterSuppression = (...calls: Operation[]) => {
    store.apply({ ...suppress('id:1'), receivedAtMs: DELETED_AT_MS });
    store.apply({ ...unsuppress('id:1'), receivedAtMs: DELETED_AT_MS + 10 });
    for (const call of calls) store.apply(call);
    return store.people;
  };

  it.each([
    ['of a person', [identify('id:1')]],
    ['of a name without a person', []],
  ])('does not bring back the data %s', (_name, before) => {
    for (const call of before) store.apply(call);
    expect(afterSuppression(replayed(identify('id:1', { plan: 'old' }), NOW_MS))).toEqual([]);
    store.apply(replayed(identify('id:1', { plan: 'new' }), DELETED_AT_MS + 11));
    expect(store.people).toMatchObject([{ attributes: { plan: 'new' } }]);
  });

  it('has no effect if it was sent during the suppression', () => {
    store.apply(identify('id:1'));
    expect(afterSuppression(replayed(identify('id:1'), DELETED_AT_MS + 5))).toEqual([]);
  });

  it.each([
    ['id:1', identify('email:b@example.com', { id: '1' })],
    ['email:a@example.com', identify('id:2', { email: 'a@example.com' })],
    ['email:a@example.com', identify('email:b@example.com', { email: 'a@example.com' })],
  ])(
    'has no effect if it was sent during the suppression and names %s beside another',
    (_, call) => {
      store.apply(identify('id:1', { email: 'a@example.com' }));
      expect(afterSuppression(replayed(call, DELETED_AT_MS + 5))).toEqual([]);
    },
  );
});

it.each([
  ['email:a@example.com', identify('id:2', { email: 'a@example.com' })],
  ['id:1', identify('email:b@example.com', { id: '1' })],
])('%s was deleted by a worker of an earlier version: a late call makes no person', (own, call) => {
  store.apply(identify(own));
  store.apply({ ...remove(own), receivedAtMs: DELETED_AT_MS });
  store.deletedIdentifiers = store.deletedIdentifiers
    .filter(({ kind }) => kind !== 'svc_id')
    .map((each) => ({ ...each, owners: null, names: null }));
  store.apply(replayed(call, NOW_MS));
  expect(store.people).toEqual([]);
});

it.each(WAYS)(
  '%s: a call of a suppression names a person who was blocked and freed',
  (_, isTogether) => {
    store.applyEach(
      isTogether,
      identify('id:1', { email: 'a@example.com' }),
      { ...suppress('id:1'), receivedAtMs: DELETED_AT_MS },
      { ...unsuppress('id:1'), receivedAtMs: DELETED_AT_MS + 10 },
    );
    store.apply(replayed(identify('id:2', { email: 'a@example.com' }), DELETED_AT_MS + 5));
    expect(store.people).toEqual([]);
  },
);

it('of two deletions of a name, the owner at the time of the late call counts', () => {
  store.apply(identify('id:1', { email: 'a@example.com' }), remove('id:1'));
  store.apply(identify('email:a@example.com'));
  store.apply({ ...remove('email:a@example.com'), receivedAtMs: DELETED_AT_MS });
  store.apply(replayed(identify('id:2', { email: 'a@example.com' }), NOW_MS));
  expect(store.people).toEqual([]);
  store.apply(replayed(identify('id:3', { email: 'a@example.com' }), NOW_MS - 1));
  expect(store.people).toMatchObject([{ id: '3', email: null }]);
});

it('a name that looks like the mark of another name is no mark', () => {
  store.apply(identify('id:x'), identify('id:with email x'));
  for (const who of ['id:x', 'id:with email x'])
    store.apply({ ...remove(who), receivedAtMs: DELETED_AT_MS });
  store.apply(replayed(identify('email:b@example.com', { id: 'x' }), NOW_MS));
  expect(store.people).toEqual([]);
});

it.each(['email:b@example.com', 'anonymous_id:v'])(
  'a name that a late call gives a suppressed person is blocked: %s',
  (name) => {
    store.apply(identify('id:1'));
    store.apply({ ...suppress('id:1'), receivedAtMs: DELETED_AT_MS });
    const brought = identify('id:1', { email: 'b@example.com', anonymous_id: 'v' });
    store.apply(replayed(brought, NOW_MS));
    store.apply(track(name, 'seen'));
    expect(store.people).toEqual([]);
    expect(store.events.filter(({ kind }) => kind === 'event')).toEqual([]);
    store.apply({ ...unsuppress('id:1'), receivedAtMs: DELETED_AT_MS + 10 });
    store.apply(identify('email:b@example.com'));
    expect(store.people).toHaveLength(1);
  },
);

it('a late deletion leaves a person who was made after it was received', () => {
  const madeAtMs = NOW_MS + 1 + CLOCKS_APART_MS;
  store.apply(identify('id:1'), { ...identify('id:2'), receivedAtMs: madeAtMs + 1 });
  store.apply(replayed(remove('id:1'), NOW_MS + 1), replayed(remove('id:2'), NOW_MS + 1));
  expect(store.people).toMatchObject([{ id: '2' }]);
});

// One intake's clock may be a minute ahead, and another's a minute behind.
it('a late deletion of a person who was there before it by two clocks that differ deletes them', () => {
  store.apply({ ...identify('id:1'), receivedAtMs: NOW_MS + CLOCKS_APART_MS });
  store.apply(replayed(remove('id:1'), NOW_MS));
  expect(store.people).toEqual([]);
});

it('a late deletion of a deleted person leaves the present owner of the name', () => {
  store.apply(identify('id:1'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(identify('id:1'));
  store.apply(replayed(remove('id:1'), NOW_MS + 1));
  expect(store.people).toMatchObject([{ id: '1' }]);
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS + 1 });
  store.apply(replayed(track('id:1', 'seen'), NOW_MS + 2));
  expect(store.people).toEqual([]);
});

it.each([
  ['id:1', 'id:2'],
  ['id:2', 'id:1'],
])('a late merge of a deleted person and a present one leaves the present one: %s', (to, from) => {
  store.apply(identify('id:1', { plan: 'old' }), identify('id:2'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(replayed(merge(to, from), NOW_MS + 1));
  expect(store.people).toMatchObject([{ id: '2', attributes: {} }]);
  expect(store.identifiers).toHaveLength(1);
});

it('a visitor whom a late call gives to a deleted person keeps later data for another person', () => {
  store.apply(identify('id:1'), identify('anonymous_id:v', { early: true }));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply({ ...identify('anonymous_id:v', { later: true }), receivedAtMs: DELETED_AT_MS + 1 });
  store.apply(replayed(identify('id:1', { anonymous_id: 'v' }), NOW_MS + 1));
  store.apply({ ...identify('id:2', { anonymous_id: 'v' }), receivedAtMs: DELETED_AT_MS + 2 });
  expect(store.people).toMatchObject([{ id: '2', attributes: { later: true } }]);
  expect(Object.keys(store.people[0]?.attributes ?? {})).toEqual(['later']);
});

it('a name that a late call under the svc_id of a deleted person gives them makes no person', () => {
  store.apply(identify('id:1'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  const who = `svc_id:${svcId(1)}`;
  store.apply(replayed(identify(who, { email: 'b@example.com' }), NOW_MS + 1));
  store.apply(replayed(track('email:b@example.com', 'seen'), NOW_MS + 2));
  expect(store.people).toEqual([]);
});

it('a metric of a message to a deleted person is reported without the person', () => {
  store.apply(identify('email:a@example.com'));
  store.apply({ ...remove('email:a@example.com'), receivedAtMs: DELETED_AT_MS });
  const { reports } = store.apply(
    replayed(metric('m', 'sent', { recipient: 'a@example.com' }), NOW_MS + 1),
  );
  expect(reports).toMatchObject([{ eventType: 'email_sent', data: { customer_id: '' } }]);
});

it('a call that did not wait comes after the deletion, with any clock of its intake', () => {
  store.apply(identify('id:1'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply({ ...identify('id:1'), receivedAtMs: DELETED_AT_MS - 60_000 });
  expect(store.people).toHaveLength(1);
});

it('a person who is made and deleted twice in one commit batch is remembered once', () => {
  const changes = store.apply(identify('id:1'), remove('id:1'), identify('id:1'), remove('id:1'));
  expect(changes.deletedIdentifiers.map(({ kind }) => kind)).toEqual(['svc_id', 'id', 'svc_id']);
});

it('a deleted name without a person is remembered in one row', () => {
  const changes = store.apply(remove('id:1'));
  expect(changes.deletedIdentifiers.map(({ kind }) => kind)).toEqual(['id']);
});

it('others are left as they are', () => {
  store.apply(identify('id:1'), identify('id:2'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(replayed(identify('id:2', { plan: 'pro' }), DELETED_AT_MS - 1));
  store.apply(replayed(identifyObject('acme', { name: 'A' }), DELETED_AT_MS - 1));
  expect(store.people).toMatchObject([{ id: '2', attributes: { plan: 'pro' } }]);
  expect(store.objects).toHaveLength(1);
});
