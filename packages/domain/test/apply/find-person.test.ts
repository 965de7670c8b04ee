/** People whom a call names: made on first sight, or recorded as missing or suppressed. */
import { beforeEach, expect, test } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import { identify, merge, suppress, track } from '../../src/testing/sample-operations.ts';
import { MemoryStore } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

test.each([
  ['id:1', { id: { from: null, to: '1' } }],
  ['email:a@x', { email: { from: null, to: 'a@x' } }],
  ['phone:+4915112345678', { phone: { from: null, to: '+4915112345678' } }],
])('the first call about %s begins the history of a person', (who, data) => {
  const { events } = store.apply(track(who, 'seen'));
  expect(events.map(({ kind }) => kind).toSorted()).toEqual(['event', 'profile_create']);
  expect(events.find(({ kind }) => kind === 'profile_create')).toMatchObject({
    personId: 1,
    data,
  });
  const attributes = who.startsWith('phone:') ? { phone: who.slice('phone:'.length) } : {};
  expect(store.people).toMatchObject([{ attributes }]);
  expect(Object.keys(store.people[0]?.attributes ?? {})).toEqual(Object.keys(attributes));
});

test('an anonymous id that an alias names as a new name makes no person', () => {
  store.apply(identify('anonymous_id:z', { from: 'visitor' }));
  const alias = { ...merge('anonymous_id:y', 'anonymous_id:z'), isAlias: true } as Operation;
  const { issues } = store.apply(alias);
  expect(store.people).toEqual([]);
  expect(issues).toMatchObject([{ issue: { code: 'person_not_found', field: 'anonymous_id' } }]);
});

test.each(['id:1', 'email:a@x'])('a call about the suppressed %s is recorded', (who) => {
  const [kind, value] = who.split(':');
  store.apply(suppress(who));
  for (const call of [track(who, 'seen'), identify(who), merge(who, 'id:other')]) {
    const { issues } = store.apply(call);
    expect(issues.map(({ issue }) => issue)).toContainEqual({
      code: 'suppressed',
      field: kind,
      message: `The ${kind} "${value}" is suppressed; the call was ignored. This is intended unless the person agreed again; then unsuppress the person.`,
      sample: value,
    });
  }
});

test('a call about a person who is missing is recorded', () => {
  const { issues } = store.apply(merge('id:1', 'id:2'));
  expect(issues.map(({ issue }) => issue)).toEqual([
    {
      code: 'person_not_found',
      field: 'id',
      message:
        'No person has the id "1", so the call has no effect. Check it, or identify the person first.',
      sample: '1',
    },
  ]);
});

test.each([track('svc_id:a3000009', 'seen'), identify('svc_id:a3000009', { plan: 'pro' })])(
  'an unknown svc_id makes no person: $type',
  (call) => {
    const { issues } = store.apply(call);
    expect(store.people).toEqual([]);
    expect(issues).toMatchObject([{ issue: { code: 'person_not_found', field: 'svc_id' } }]);
  },
);
