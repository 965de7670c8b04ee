/**
 * Merges (`ingestion-conventions.md` §1.6).
 *
 * The tests check the data that the primary keeps, the data that it takes from the secondary, and the reports.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { STORED_ATTRIBUTE_COUNT_MAX } from '../../src/state/merge-attributes.ts';
import { svcId } from '../../src/values/svc-id.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { MemoryStore } from '../support/memory-store.ts';
import {
  addDevice,
  identify,
  merge,
  relate,
  segment,
  NOW_MS,
} from '../../src/testing/sample-operations.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

/** Later than everything before it. */
const LATER_MS = NOW_MS + 5_000;
const mergeLater = (primary: string, secondary: string): Operation => ({
  ...merge(primary, secondary),
  receivedAtMs: LATER_MS,
});

const whoIs = (): object[] => store.people.map(({ id, email, phone }) => ({ id, email, phone }));

describe('an attribute write that is older than', () => {
  const OLDER_MS = NOW_MS - 2_000;
  const NEWER_MS = NOW_MS - 1_000;
  const at = (who: string, plan: string, attributesAtMs: number): Operation =>
    identify(who, { plan }, { attributesAtMs });

  test.each([
    ['the secondary’s value', [identify('id:1'), at('id:2', 'newer', NEWER_MS)]],
    [
      'the primary’s value',
      [at('id:1', 'newer', NEWER_MS), at('id:2', 'of the other', OLDER_MS - 1)],
    ],
  ])('%s is skipped after the merge', (_name, before) => {
    store.apply(...before);
    store.apply(merge('id:1', 'id:2'));
    const changes = store.apply(at('id:1', 'older', OLDER_MS));
    expect(store.people).toMatchObject([{ id: '1', attributes: { plan: 'newer' } }]);
    expect(changes.issues).toMatchObject([{ issue: { code: 'skipped_update' } }]);
    store.apply(at('id:1', 'newest', NOW_MS));
    expect(store.people).toMatchObject([{ attributes: { plan: 'newest' } }]);
  });
});

test.each([
  [null, null, null],
  [-5_000, null, -5_000],
  [null, -5_000, -5_000],
  [NOW_MS, -5_000, NOW_MS],
  [-5_000, NOW_MS, NOW_MS],
])('the newer _timestamp counts for both: of %j and %j it is %j', (own, other, newer) => {
  const at = (attributesAtMs: number | null) => (attributesAtMs === null ? {} : { attributesAtMs });
  store.apply(identify('id:1', { a: 1 }, at(own)), identify('id:2', { b: 2 }, at(other)));
  store.apply(merge('id:1', 'id:2'));
  expect(store.people).toMatchObject([{ id: '1', attributesAtMs: newer }]);
});

describe('if both people have it, the primary keeps its own', () => {
  test('a device of the same token', () => {
    store.apply(
      addDevice('id:1', 't', { of: 'primary' }),
      addDevice('id:2', 't', { of: 'secondary' }),
    );
    store.apply(addDevice('id:2', 'u', { of: 'secondary' }));
    store.apply(merge('id:1', 'id:2'));
    expect(store.devices).toMatchObject([
      { personId: 1, token: 't', attributes: { of: 'primary' } },
      { personId: 1, token: 'u', attributes: { of: 'secondary' } },
    ]);
    expect(store.devices).toHaveLength(2);
  });

  test('a relationship with the same object', () => {
    store.apply(
      relate('id:1', 'acme', { role: 'boss' }),
      relate('id:2', 'acme', { role: 'clerk' }),
    );
    store.apply(relate('id:2', 'other', { role: 'guest' }));
    store.apply(merge('id:1', 'id:2'));
    const [primary] = store.people;
    expect(
      store.relationships.map(({ personId, attributes }) => ({ personId, attributes })),
    ).toEqual([
      { personId: primary?.personId, attributes: { role: 'boss' } },
      { personId: primary?.personId, attributes: { role: 'guest' } },
    ]);
  });

  test('membership of the same segment, once', () => {
    store.apply(identify('id:1'), identify('id:2'));
    store.apply(segment('add', 7, 'id:1', 'id:2'), segment('add', 8, 'id:2'));
    store.apply(merge('id:1', 'id:2'));
    expect(
      store.segmentMembers.map(({ segmentId, personId }) => `${segmentId} ${personId}`).toSorted(),
    ).toEqual(['7 1', '8 1']);
  });

  test.each([
    ['id', '1', '2'],
    ['email', '1@x', '2@x'],
    ['phone', '+49301', '+49302'],
  ] as const)('its %s: the secondary’s is free again', (kind, own, freed) => {
    store.apply(identify(`${kind}:${own}`), identify(`${kind}:${freed}`));
    store.apply(merge(`${kind}:${own}`, `${kind}:${freed}`));
    expect(store.people.map((person) => person[kind])).toEqual([own]);
    store.apply(identify(`${kind}:${freed}`, { is: 'new' }));
    expect(store.people.map((person) => person[kind])).toEqual([own, freed]);
    expect(store.people[0]?.attributes).not.toHaveProperty('is');
  });

  test('its answer to messages: one who wants them is not made to leave by the other', () => {
    store.apply(
      identify('id:1', { unsubscribed: false }),
      identify('id:2', { unsubscribed: true }),
    );
    const changes = store.apply(merge('id:1', 'id:2'));
    expect(store.people).toMatchObject([{ id: '1', unsubscribed: false }]);
    expect(changes.reports).toEqual([]);
  });
});

describe('the primary takes from the secondary', () => {
  test('each kind of identifier that it lacks, by which it is found from then on', () => {
    store.apply(identify('email:a@x'), identify('phone:+49301', { id: '2' }));
    store.apply(merge('email:a@x', 'id:2'));
    expect(whoIs()).toEqual([{ id: '2', email: 'a@x', phone: '+49301' }]);
    store.apply(
      identify('id:2', { found: 'by id' }),
      identify('phone:+49301', { also: 'by phone' }),
    );
    expect(store.people).toMatchObject([{ attributes: { found: 'by id', also: 'by phone' } }]);
  });

  test.each([
    [true, 'customer_unsubscribed'],
    [false, 'customer_subscribed'],
  ])(
    'the answer to messages (unsubscribed: %j), and reports it as %s',
    (unsubscribed, eventType) => {
      store.apply(identify('id:1', { email: 'a@x' }), identify('id:2', { unsubscribed }));
      const changes = store.apply(merge('id:1', 'id:2'));
      expect(store.people).toMatchObject([{ unsubscribed }]);
      expect(changes.reports).toMatchObject([
        { eventType, objectType: 'customer', personId: 1, data: { customer_id: '1' } },
      ]);
    },
  );

  test('attributes up to as many as a person can have, its own first', () => {
    const named = (prefix: string, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, index]));
    store.apply(
      identify('id:1', named('own', STORED_ATTRIBUTE_COUNT_MAX - 1)),
      identify('id:2', named('taken', 3)),
    );
    store.apply(merge('id:1', 'id:2'));
    const names = Object.keys(store.people[0]?.attributes ?? {});
    expect(names).toHaveLength(STORED_ATTRIBUTE_COUNT_MAX);
    expect(names).toContain(`own${STORED_ATTRIBUTE_COUNT_MAX - 2}`);
    expect(names.filter((name) => name.startsWith('taken'))).toEqual(['taken0']);
  });
});

test('the primary is as new as the merge, and its history names the person merged into it', () => {
  store.apply(identify('id:1', { a: 1 }), identify('id:2', { email: 'b@x' }));
  const changes = store.apply(mergeLater('id:1', 'id:2'));
  expect(store.people).toMatchObject([{ id: '1', updatedAtMs: LATER_MS }]);
  expect(changes.events).toMatchObject([
    {
      kind: 'profile_merge',
      personId: 1,
      data: { secondary: { id: '2', email: 'b@x', svc_id: svcId(2) } },
    },
  ]);
});

test('a merge of a person with themselves leaves all rows as they are and stays out of the history', () => {
  store.apply(identify('id:1', { email: 'a@x' }), addDevice('id:1', 't'));
  const before = structuredClone({ people: store.people, devices: store.devices });
  const changes = store.apply(mergeLater('id:1', 'email:a@x'));
  expect({ people: store.people, devices: store.devices }).toEqual(before);
  expect(changes).toMatchObject({ events: [], issues: [], moves: [] });
});
