/**
 * Operations end the same in commit batches of any size. The rows loaded for a batch are enough for each of its
 * operations, also if an earlier one gave a person a name or took one away.
 */
import {
  assert,
  array,
  constantFrom,
  property,
  tuple,
  type Arbitrary,
  oneof,
  nat,
} from 'fast-check';
import { expect, test } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import {
  addDevice,
  deleteDevice,
  identify,
  merge,
  relate,
  remove,
  segment,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';
import { MemoryStore } from '../support/memory-store.ts';

/** Few, so that operations meet. */
const NAMES = ['id:1', 'id:2', 'email:a@x', 'anonymous_id:m'] as const;
const IDENTIFIED = NAMES.slice(0, 3);
const name = constantFrom(...NAMES);
const person = constantFrom(...IDENTIFIED);
const token = constantFrom('t1');
const object = constantFrom('o1');

/** Made anew for each run: event ids count up. */
const operation: Arbitrary<() => Operation> = oneof(
  tuple(person, constantFrom('a', 'b', 'c'), nat(9)).map(
    ([who, attribute, value]) =>
      () =>
        identify(who, { [attribute]: value }),
  ),
  tuple(person, constantFrom('a@x', '')).map(
    ([who, email]) =>
      () =>
        identify(who, { email }),
  ),
  person.map((who) => () => identify(who, { plan: 'pro' }, { anonymousId: 'm' })),
  tuple(person, person).map(
    ([primary, secondary]) =>
      () =>
        merge(primary, secondary),
  ),
  tuple(person, person).map(
    ([primary, secondary]) =>
      () =>
        ({ ...merge(primary, secondary), isAlias: true }) as Operation,
  ),
  person.map((who) => () => remove(who)),
  person.map((who) => () => suppress(who)),
  person.map((who) => () => unsuppress(who)),
  tuple(person, token).map(
    ([who, which]) =>
      () =>
        addDevice(who, which),
  ),
  tuple(person, token).map(
    ([who, which]) =>
      () =>
        deleteDevice(who, which),
  ),
  tuple(person, object).map(
    ([who, which]) =>
      () =>
        relate(who, which),
  ),
  tuple(person, person).map(
    ([one, other]) =>
      () =>
        segment('add', 4, one, other),
  ),
  name.map((who) => () => track(who, 'seen')),
);

const byText = (one: unknown, other: unknown): number =>
  JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;

/** Without the numbers that rows are given: those depend on how many were taken before. */
function endOf(store: MemoryStore) {
  const { people, identifiers, relationships, devices, segmentMembers, events } = store;
  const places = new Map(people.map(({ personId }, index) => [personId, index]));
  const who = (personId: number | null): number | null =>
    personId === null ? null : (places.get(personId) ?? -1);
  const objects = new Map(store.objects.map((row) => [row.objectNumber, row.objectId]));
  return {
    people: people.map(({ id, email, phone, attributes, unsubscribed }) => ({
      ...{ id, email, phone, unsubscribed },
      attributes,
    })),
    identifiers: identifiers
      .map(({ kind, value, personId, suppressed }) => [
        `${kind}:${value}`,
        who(personId),
        suppressed,
      ])
      .toSorted(byText),
    relationships: relationships
      .map(({ personId, objectNumber }) => [who(personId), objects.get(objectNumber)])
      .toSorted(byText),
    devices: devices.map((row) => [who(row.personId), row.token]).toSorted(byText),
    segments: segmentMembers.map((row) => who(row.personId)).toSorted(byText),
    events: events
      .filter(({ kind }) => kind === 'event')
      .map((row) => [row.name, who(row.personId)])
      .toSorted(byText),
  };
}

/** Somebody has something of each kind. */
function startingStore(): MemoryStore {
  const store = new MemoryStore();
  store.apply(identify('id:1'), identify('id:2'), addDevice('id:1', 't1'), relate('id:1', 'o1'));
  store.apply(segment('add', 4, 'id:1'));
  return store;
}

test('operations in any commit batches end as one after another', () => {
  assert(
    property(array(tuple(operation, nat(3)), { minLength: 2, maxLength: 12 }), (drawn) => {
      const operations = drawn.map(([make]) => make());
      const single = startingStore();
      for (const each of operations) single.apply(each);
      const batched = startingStore();
      let batch: Operation[] = [];
      operations.forEach((each, index) => {
        batch.push(each);
        if (drawn[index]?.[1] !== 0 && index < operations.length - 1) return;
        batched.apply(...batch);
        batch = [];
      });
      expect(endOf(batched)).toEqual(endOf(single));
    }),
    { numRuns: 2_000 },
  );
});

test('a person who gets an email and is merged by it in one batch brings everything along', () => {
  const store = startingStore();
  store.apply(identify('id:1', { email: 'a@x' }), merge('id:2', 'email:a@x'));
  expect(endOf(store)).toMatchObject({
    people: [{ id: '2' }],
    devices: [[0, 't1']],
    relationships: [[0, 'o1']],
    segments: [0],
  });
});
