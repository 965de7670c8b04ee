/** Merges with places of writes, and of people who are gone. */
import { beforeEach, expect, test } from 'vitest';
import { orderPlaceOf } from '../../src/operations/order-place.ts';
import { PREFERENCES_ATTRIBUTE } from '../../src/parsing/read-preferences.ts';
import type { AttributePlaces } from '../../src/state/attribute-places.ts';
import { identify, merge, NOW_MS, remove } from '../../src/testing/sample-operations.ts';
import type { JsonObject } from '../../src/values/json.ts';
import { MemoryStore } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const [EARLY, LATE] = [1, 2].map((minor) => orderPlaceOf({ major: 0, minor }, 0)) as [
  string,
  string,
];
const PREFERENCE = `${PREFERENCES_ATTRIBUTE}.topics.news`;

/** @returns the places of the primary after the merge. */
function joined(
  attributes: JsonObject,
  own: AttributePlaces | null,
  other: AttributePlaces | null,
): AttributePlaces | null | undefined {
  store.apply(identify('id:1', attributes), identify('id:2'));
  store.people = store.people.map((row) => ({
    ...row,
    attributePlaces: row.id === '1' ? own : other,
  }));
  store.apply(merge('id:1', 'id:2'));
  return store.people[0]?.attributePlaces;
}

test.each<[string, JsonObject, AttributePlaces | null, AttributePlaces | null, object | null]>([
  ['neither has one', {}, null, null, null],
  ['the secondary has none', {}, { plan: EARLY }, null, { plan: EARLY }],
  ['the secondary alone has one', {}, null, { plan: EARLY }, { plan: EARLY }],
  ['each has another', {}, { a: LATE }, { b: EARLY }, { a: LATE, b: EARLY }],
  ['the secondary wrote later', {}, { plan: EARLY }, { plan: LATE }, { plan: LATE }],
  ['the primary wrote later', {}, { plan: LATE }, { plan: EARLY }, { plan: LATE }],
  ['the primary keeps its value', { plan: 1 }, { plan: EARLY }, { plan: LATE }, { plan: EARLY }],
  ['the primary keeps a value without a place', { plan: 1 }, null, { plan: LATE }, {}],
  ['a name is one of all objects', {}, null, { valueOf: LATE }, { valueOf: LATE }],
  [
    'the primary has no answer to messages',
    {},
    null,
    { unsubscribed: LATE },
    { unsubscribed: LATE },
  ],
  ['the primary keeps its answer', { unsubscribed: false }, null, { unsubscribed: LATE }, {}],
  ['the primary has no preferences', {}, null, { [PREFERENCE]: LATE }, { [PREFERENCE]: LATE }],
  [
    'the primary keeps its preferences',
    { [PREFERENCES_ATTRIBUTE]: { topics: { offers: true } } },
    null,
    { [PREFERENCE]: LATE },
    {},
  ],
])('a value has the place of its last write if %s', (_, attributes, own, other, places) => {
  expect(joined(attributes, own, other)).toEqual(places);
});

test('a late call by a name that the merge made free is about the person of the merge', () => {
  store.apply(identify('id:1'), identify('id:2'));
  store.apply({ ...merge('id:1', 'id:2'), receivedAtMs: NOW_MS + 100 });
  store.apply({
    ...identify('id:2', { plan: 'late' }),
    receivedAtMs: NOW_MS + 50,
    isReplayed: true,
  });
  expect(store.people).toMatchObject([{ id: '1', attributes: { plan: 'late' } }]);
});

test.each([
  ['the primary', 'id:2', 'id:1'],
  ['the secondary', 'id:1', 'id:2'],
])('a late merge with a person who is deleted since has no effect: %s', (_, present, deleted) => {
  store.apply(identify(present, { plan: 'pro' }), identify(deleted, { email: 'gone@x.example' }));
  store.apply({ ...remove(deleted), receivedAtMs: NOW_MS + 100 });
  const before = structuredClone(store.people);
  const changes = store.apply({
    ...merge('id:1', 'id:2'),
    receivedAtMs: NOW_MS + 50,
    isReplayed: true,
  });
  expect(store.people).toEqual(before);
  expect(changes).toMatchObject({ events: [], moves: [] });
});
