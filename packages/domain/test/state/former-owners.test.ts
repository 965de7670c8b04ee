/**
 * Late calls by names that their owners lost since.
 *
 * The owner gave the name up, or became part of another person.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import {
  identify,
  merge,
  NOW_MS,
  relateObject,
  remove,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';
import { svcId } from '../../src/values/svc-id.ts';
import { MemoryStore } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const late = (operation: Operation, atMs: number): Operation => ({
  ...operation,
  receivedAtMs: NOW_MS + atMs,
  isReplayed: true,
});
const at = (operation: Operation, atMs: number): Operation => ({
  ...operation,
  receivedAtMs: NOW_MS + atMs,
});
const numberOf = (name: string): number => {
  const row = store.identifiers.find(({ kind, value }) => `${kind}:${value}` === name);
  return row?.personId ?? 0;
};
const rename = (from: string, to: string | null): Operation =>
  identify(`svc_id:${svcId(numberOf(from))}`, { id: to });
const eventsOf = (name: string): (string | null)[] =>
  store.events
    .filter((row) => row.kind === 'event' && row.personId === numberOf(name))
    .map((row) => row.name);

describe('a person gave a name up, and another one has it', () => {
  beforeEach(() => {
    store.apply(identify('id:x', { email: 'owner@x.example' }));
    store.apply(identify('email:other@x.example'));
    store.apply(at(rename('id:x', 'y'), 100));
    store.apply(at(identify('email:other@x.example', { id: 'x' }), 200));
  });

  it('a late deletion by the name deletes its owner of that time', () => {
    store.apply(late(remove('id:x'), 50));
    expect(store.people).toMatchObject([{ id: 'x', email: 'other@x.example' }]);
    expect(store.identifiers).toHaveLength(2);
  });

  it('a deletion of later than that deletes the present owner', () => {
    store.apply(late(remove('id:x'), 250));
    expect(store.people).toMatchObject([{ id: 'y', email: 'owner@x.example' }]);
  });

  it('late calls by the name are about its owner of that time', () => {
    store.apply(late(track('id:x', 'early'), 50), late(identify('id:x', { plan: 'pro' }), 60));
    store.apply(late(relateObject('acme', 'id:x'), 70), late(track('id:x', 'later'), 250));
    expect(eventsOf('id:y')).toEqual(['early']);
    expect(eventsOf('id:x')).toEqual(['later']);
    expect(store.people.find(({ id }) => id === 'y')?.attributes).toEqual({ plan: 'pro' });
    expect(store.relationships.map(({ personId }) => personId)).toEqual([numberOf('id:y')]);
  });

  it('a late deletion by the name is the end of its owner of that time for later late calls too', () => {
    store.apply(late(remove('id:x'), 50));
    store.apply(late(identify('id:x', { plan: 'old' }), 40), late(identify('id:y'), 45));
    expect(store.people).toMatchObject([{ id: 'x', attributes: {} }]);
  });

  it('a late suppression by the name suppresses its owner of that time', () => {
    store.apply(late(suppress('id:x'), 50));
    expect(store.people).toMatchObject([{ id: 'x', email: 'other@x.example' }]);
    const blocked = store.identifiers.filter((row) => row.suppressed).map(({ value }) => value);
    expect(blocked.toSorted()).toEqual(['owner@x.example', 'y']);
  });

  it('a late alias of the name gives its owner of that time no other one', () => {
    const { issues } = store.apply(
      late({ ...merge('id:z', 'id:x'), isAlias: true } as Operation, 50),
    );
    expect(store.people.map(({ id }) => id)).toEqual(['y', 'x']);
    expect(issues).toHaveLength(1);
  });

  it('a late merge by the name joins its owner of that time', () => {
    store.apply(identify('email:third@x.example'));
    store.apply(late(merge('email:third@x.example', 'id:x'), 50));
    expect(store.people.map(({ id, email }) => [id, email])).toEqual([
      ['x', 'other@x.example'],
      ['y', 'third@x.example'],
    ]);
  });
});

describe('a person gave a name up before they were merged', () => {
  let number: string;
  beforeEach(() => {
    store.apply(identify('id:x'), identify('id:p'), identify('id:q'));
    number = svcId(numberOf('id:x'));
    store.apply(at(rename('id:x', 'y'), 100));
    store.apply(at(merge('id:p', 'id:y'), 200));
  });

  it.each(['id:p', 'id:q'])('a late call by it makes no person once %s is deleted', (last) => {
    if (last === 'id:q') store.apply(at(merge('id:q', 'id:p'), 250));
    store.apply(at(remove(last), 300));
    const before = store.people;
    store.apply(late(identify('id:x', { plan: 'old' }), 50));
    store.apply(late(track(`svc_id:${number}`, 'seen'), 60));
    expect(store.people).toEqual(before);
  });

  it('late calls by it or by their number are about the person they became', () => {
    store.apply(late(identify('id:x', { plan: 'old' }), 50));
    store.apply(late(track(`svc_id:${number}`, 'seen'), 60));
    expect(store.people).toMatchObject([{ id: 'p', attributes: { plan: 'old' } }, { id: 'q' }]);
    expect(eventsOf('id:p')).toEqual(['seen']);
  });
});

it('a late change under the number of a merged person replaces no name of the person they became', () => {
  store.apply(identify('id:s'), identify('id:p'));
  const change = identify(`svc_id:${svcId(numberOf('id:s'))}`, {
    id: 'new',
    email: 'new@x.example',
    plan: 'pro',
  });
  store.apply(at(merge('id:p', 'id:s'), 100));
  store.apply(late(change, 50));
  expect(store.people).toMatchObject([
    { id: 'p', email: 'new@x.example', attributes: { plan: 'pro' } },
  ]);
});

it('a late suppression by a name that its owner gave up blocks the name too, if it is free', () => {
  store.apply(identify('id:x'));
  store.apply(at(rename('id:x', 'y'), 100));
  store.apply(late(suppress('id:x'), 50));
  store.apply(identify('id:x'), identify('id:y'));
  expect(store.people).toEqual([]);
  store.apply(at(unsuppress('id:y'), 200), at(identify('id:x'), 300));
  expect(store.people).toHaveLength(1);
});

it('a call of after the merge by the number of the merged person has no effect', () => {
  store.apply(identify('id:s'), identify('id:p'));
  const number = svcId(numberOf('id:s'));
  store.apply(at(merge('id:p', 'id:s'), 100));
  store.apply(late(track(`svc_id:${number}`, 'seen'), 150));
  expect(eventsOf('id:p')).toEqual([]);
});

// The clock of the second intake is behind.
it.each([
  ['deleted', true],
  ['there', false],
])(
  'a name that a person gave up twice by clocks that differ is theirs before both: %s',
  (_, isDeleted) => {
    store.apply(identify('id:x', { email: 'a@x.example' }));
    store.apply(at(rename('id:x', null), 100));
    store.apply(at(identify('email:a@x.example', { id: 'x' }), 30));
    store.apply(at(rename('id:x', null), 50));
    if (isDeleted) store.apply(at(remove('email:a@x.example'), 200));
    store.apply(late(identify('id:x', { plan: 'old' }), 70));
    expect(store.people.map(({ attributes }) => attributes)).toEqual(
      isDeleted ? [] : [{ plan: 'old' }],
    );
  },
);

it('a person who has a name again between two others is its owner in both times', () => {
  store.apply(identify('id:x', { email: 'a@x.example' }), identify('email:b@x.example'));
  store.apply(at(rename('id:x', null), 100));
  store.apply(at(identify('email:b@x.example', { id: 'x' }), 110));
  store.apply(at(rename('id:x', null), 200));
  store.apply(at(identify('email:a@x.example', { id: 'x' }), 210));
  store.apply(at(rename('id:x', null), 300));
  for (const [name, atMs] of [
    ['first', 50],
    ['second', 150],
    ['third', 250],
  ] as const)
    store.apply(late(track('id:x', name), atMs));
  expect(eventsOf('email:a@x.example')).toEqual(['first', 'third']);
  expect(eventsOf('email:b@x.example')).toEqual(['second']);
});

// The clock of the first change is ahead, and the clock of the second one behind.
it('of two owners, the one who had a name first is its owner before both, by any clocks', () => {
  store.apply(identify('id:x', { email: 'a@x.example' }), identify('email:b@x.example'));
  store.apply(at(rename('id:x', null), 130));
  store.apply(at(identify('email:b@x.example', { id: 'x' }), 110));
  store.apply(at(rename('id:x', null), 90));
  store.apply(late(track('id:x', 'seen'), 10));
  expect(eventsOf('email:a@x.example')).toEqual(['seen']);
});

it('a late deletion of a person leaves late calls to the earlier owner of a name that they were given since', () => {
  store.apply(identify('id:x', { email: 'a@x.example' }), identify('email:b@x.example'));
  store.apply(at(rename('id:x', null), 60));
  store.apply(at(identify('email:b@x.example', { id: 'x' }), 70));
  store.apply(late(remove('email:b@x.example'), 50), late(track('id:x', 'seen'), 40));
  expect(store.people).toMatchObject([{ email: 'a@x.example' }]);
  expect(eventsOf('email:a@x.example')).toEqual(['seen']);
});

it('if a name had too many owners since, a late call by it changes no person and is an issue', () => {
  store.apply(identify('id:x', { email: 'a@x.example' }));
  store.apply(at(rename('id:x', null), 100));
  store.deletedIdentifiers = store.deletedIdentifiers.map((row) => ({
    ...row,
    owners: row.owners && new Map([...row.owners, ['forgotten', 0]]),
  }));
  for (const call of [remove('id:x'), identify('id:x', { plan: 'old' })]) {
    const { issues } = store.apply(late(call, 50));
    expect(issues[0]?.issue.message).toContain('so many owners');
  }
  expect(store.people).toMatchObject([{ id: null, attributes: {} }]);
  store.apply(late(identify('id:x'), 150));
  expect(store.people).toHaveLength(2);
});

it('a late call of before the last forgotten owner finds no person, also if an earlier end is kept', () => {
  store.apply(identify('id:x', { email: 'a@x.example' }));
  store.apply(at(rename('id:x', null), 300));
  const [early, forgotten] = [NOW_MS + 50, NOW_MS + 200];
  store.deletedIdentifiers = store.deletedIdentifiers.map((row) => ({
    ...row,
    owners:
      row.owners && new Map([[`nobody ${early}`, early], ...row.owners, ['forgotten', forgotten]]),
  }));
  for (const atMs of [40, 100, 199]) {
    const { issues } = store.apply(late(remove('id:x'), atMs));
    expect(issues[0]?.issue.message).toContain('so many owners');
  }
  expect(store.people).toHaveLength(1);
  store.apply(late(remove('id:x'), 200));
  expect(store.people).toHaveLength(0);
});

it('a name that was deleted without a person is of the person to whom a late call gave it before', () => {
  store.apply(identify('id:x'));
  store.apply(at(remove('email:a@x.example'), 300));
  store.apply(late(identify('id:x', { email: 'a@x.example' }), 100));
  store.apply(late(identify('email:a@x.example', { plan: 'pro' }), 200));
  expect(store.people).toMatchObject([{ id: 'x', attributes: { plan: 'pro' } }]);
});

it('a name that a late call gave to a person who was suppressed was suppressed with their others', () => {
  store.apply(identify('id:x'));
  store.apply(at(suppress('id:x'), 200));
  store.apply(at(unsuppress('id:x'), 400));
  store.apply(late(identify('id:x', { email: 'a@x.example' }), 100));
  const { issues } = store.apply(late(track('email:a@x.example', 'seen'), 300));
  expect(issues).toMatchObject([{ issue: { code: 'suppressed' } }]);
});
