/** Refused identifiers, the words to their sender, and the history. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import type { StateChanges } from '../../src/state/loaded-state.ts';
import { identify, NOW_MS, suppress } from '../../src/testing/sample-operations.ts';
import { svcId } from '../../src/values/svc-id.ts';
import { MemoryStore } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const [FIRST, SECOND] = [svcId(1), svcId(2)];
const issuesOf = ({ issues }: StateChanges): object[] => issues.map(({ issue }) => issue);
const historyOf = ({ events }: StateChanges): object[] =>
  events.map(({ kind, name, data }) => ({ kind, name, data }));
const conflict = (kind: string, data: object): object => ({
  kind: 'failed_attribute_change',
  name: kind,
  data: { ...data, reason: 'identifier_conflict' },
});

describe('without the svc_id', () => {
  test.each([
    ['b@x', 'replaces it with "b@x"'],
    ['', 'removes it'],
  ])('an email that is set stays, and a call with %j is in the history', (email, wish) => {
    store.apply(identify('id:1', { email: 'a@x' }));
    const changes = store.apply(identify('id:1', { email }));
    expect(issuesOf(changes)).toMatchObject([
      {
        code: 'identifier_conflict',
        field: 'email',
        message: `Person ${FIRST} (id "1", email "a@x") already has the email "a@x"; only a call under its svc_id ${wish}.`,
        sample: email,
      },
    ]);
    expect(historyOf(changes)).toEqual([conflict('email', { email })]);
  });

  test('an email of another person stays theirs, and the history names its owner', () => {
    store.apply(identify('id:1'), identify('email:b@x'));
    const changes = store.apply(identify('id:1', { email: 'b@x' }));
    expect(issuesOf(changes)).toMatchObject([
      {
        code: 'identifier_conflict',
        field: 'email',
        message: `The email "b@x" belongs to person ${SECOND} (email "b@x"); person ${FIRST} (id "1") was not given it. Merge the two if they are one person.`,
        sample: 'b@x',
      },
    ]);
    expect(historyOf(changes)).toEqual([conflict('email', { email: 'b@x', belongs_to: SECOND })]);
  });

  test('the email that the person has, in other letters, is neither a change nor an issue', () => {
    store.apply(identify('email:a@x'));
    const changes = store.apply(identify('email:a@x', { email: 'A@x' }));
    expect(changes).toMatchObject({ issues: [], events: [] });
  });

  test('a phone of a person with another identifier is an ordinary attribute', () => {
    store.apply(identify('id:1', { phone: '+4915112345678' }));
    expect(store.people).toMatchObject([
      { id: '1', phone: null, attributes: { phone: '+4915112345678' } },
    ]);
  });

  test('a value that is neither text nor a number is left out', () => {
    const changes = store.apply(identify('id:1', { email: { a: 1 } }));
    expect(issuesOf(changes)).toMatchObject([
      {
        code: 'invalid',
        field: 'email',
        message: 'The email is neither text nor a number; it was left out.',
      },
    ]);
  });
});

describe('under the svc_id', () => {
  const underFirst = (attributes: Parameters<typeof identify>[1]): Operation => ({
    ...identify(`svc_id:${FIRST}`, attributes),
    receivedAtMs: NOW_MS + 1,
  });

  test('an email is removed and free again, and the history has both values', () => {
    store.apply(identify('id:1', { email: 'a@x' }));
    const changes = store.apply(underFirst({ email: null }));
    expect(historyOf(changes)).toMatchObject([
      { kind: 'attribute_change', data: { email: { from: 'a@x', to: null } } },
    ]);
    expect(store.identifiers.map(({ kind, value }) => `${kind}:${value}`)).toEqual(['id:1']);
    store.apply(identify('email:a@x'));
    expect(store.people).toMatchObject([{ id: '1', email: null }, { email: 'a@x' }]);
  });

  test('a replaced id still means the person in late calls of before', () => {
    store.apply(identify('id:1'));
    store.apply(underFirst({ id: '2' }));
    store.apply({ ...identify('id:1', { plan: 'late' }), receivedAtMs: NOW_MS, isReplayed: true });
    expect(store.people).toMatchObject([{ id: '2', attributes: { plan: 'late' } }]);
  });

  test('a phone is replaced by another number', () => {
    store.apply(identify('phone:+4915100000000'));
    expect(issuesOf(store.apply(underFirst({ phone: '+4915100000001' })))).toEqual([]);
    expect(store.people).toMatchObject([{ phone: '+4915100000001' }]);
  });

  test.each([
    [
      'suppressed',
      '+4915112345678',
      'The phone "+4915112345678" is suppressed; it was left out. This is intended unless the person agreed again; then unsuppress the person.',
    ],
    [
      'invalid',
      'none',
      'The phone is no number in E.164 form, like +4915112345678; it was left out.',
    ],
  ])('a phone that is %s is left out, and the rest of the call is not', (code, phone, message) => {
    store.apply(identify('phone:+4915100000000'), suppress('phone:+4915112345678'));
    const changes = store.apply(underFirst({ email: 'a@x', phone }));
    expect(issuesOf(changes)).toMatchObject([{ code, field: 'phone', message }]);
    expect(historyOf(changes)).toMatchObject([
      { kind: 'attribute_change', data: { email: { from: null, to: 'a@x' } } },
    ]);
  });

  test.each(['id:1', `svc_id:${FIRST}`])(
    'and without it, %s, the removal of an email that is missing changes no row',
    (who) => {
      store.apply(identify('id:1'));
      const changes = store.apply({
        ...identify(who, { email: null }),
        receivedAtMs: NOW_MS + 1,
      });
      expect(changes).toMatchObject({ issues: [], events: [], people: { updated: [] } });
    },
  );
});

test.each([
  ['is repeated', 'email:a@x', { email: 'A@x' }, { email: { from: null, to: 'a@x' } }],
  ['is removed', 'id:1', { email: null }, { id: { from: null, to: '1' } }],
  ['is of another person', 'id:1', { email: 'other@x' }, { id: { from: null, to: '1' } }],
  ['is another one', 'email:a@x', { email: 'b@x' }, { email: { from: null, to: 'a@x' } }],
  [
    'is suppressed',
    'phone:+4915100000000',
    { phone: '+4915112345678' },
    { phone: { from: null, to: '+4915100000000' } },
  ],
])(
  'the history of a new person keeps their name if an identifier of the call %s',
  (_, who, attributes, data) => {
    store.apply(identify('id:9', { email: 'other@x' }), suppress('phone:+4915112345678'));
    const { events } = store.apply(identify(who, attributes));
    expect(events.find(({ kind }) => kind === 'profile_create')).toMatchObject({ data });
  },
);
