/** Aliases, and merges of visitors (`ingestion-conventions.md` §1.6). */
import { beforeEach, describe, expect, test } from 'vitest';
import { svcId } from '../../src/values/svc-id.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { MemoryStore } from '../support/memory-store.ts';
import { identify, merge, suppress, track } from '../../src/testing/sample-operations.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const alias = (primary: string, secondary: string): Operation =>
  ({ ...merge(primary, secondary), isAlias: true }) as Operation;
const ownerOf = (name: string): number | null | undefined =>
  store.events.find((row) => row.name === name)?.personId;
const whoIs = (): object[] => store.people.map(({ id, email, phone }) => ({ id, email, phone }));

describe('an alias', () => {
  test('gives a free id to the person, who stays the same person, and frees the old id', () => {
    store.apply(identify('id:old', { email: 'a@x', plan: 'pro' }), track('id:old', 'seen'));
    const changes = store.apply(alias('id:new', 'id:old'));
    expect(store.people).toMatchObject([
      { personId: 1, id: 'new', email: 'a@x', attributes: { plan: 'pro' } },
    ]);
    expect(changes.events).toMatchObject([{ kind: 'attribute_change', personId: 1 }]);
    // The old one is free again.
    store.apply(identify('id:old'));
    expect(store.people).toHaveLength(2);
  });

  test('differs from a merge: for a free id a merge changes no person and records an issue', () => {
    store.apply(identify('id:old'));
    const changes = store.apply(merge('id:new', 'id:old'));
    expect(store.people).toMatchObject([{ id: 'old' }]);
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
  });

  test('gives a free anonymous id to the person, with its earlier events', () => {
    store.apply(identify('id:1'), track('anonymous_id:z', 'before'));
    store.apply(alias('anonymous_id:z', 'id:1'));
    store.apply(track('anonymous_id:z', 'later'));
    expect(ownerOf('before')).toBe(1);
    expect(ownerOf('later')).toBe(1);
    expect(store.people).toHaveLength(1);
  });

  test('between two who are there is a merge', () => {
    store.apply(identify('id:1', { a: 1 }), identify('id:2', { b: 2 }));
    store.apply(alias('id:1', 'id:2'));
    expect(store.people).toMatchObject([{ id: '1', attributes: { a: 1, b: 2 } }]);
  });

  test('of an unknown person to a free id records an issue and creates no person', () => {
    const changes = store.apply(alias('id:new', 'id:nobody'));
    expect(store.people).toEqual([]);
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
  });

  test('to a malformed phone records an issue and adds no entry to the history', () => {
    store.apply(identify('id:1'));
    const changes = store.apply(alias('phone:none', 'id:1'));
    expect(whoIs()).toEqual([{ id: '1', email: null, phone: null }]);
    expect(changes).toMatchObject({ events: [], issues: [{ issue: { code: 'invalid' } }] });
  });

  test('to a free svc_id records an issue, and all people stay as they are', () => {
    store.apply(identify('id:1'));
    const before = structuredClone(store.people);
    const changes = store.apply(alias(`svc_id:${svcId(99)}`, 'id:1'));
    expect(store.people).toEqual(before);
    expect(changes).toMatchObject({
      events: [],
      issues: [{ issue: { code: 'person_not_found' } }],
    });
  });
});

describe('a visitor', () => {
  test('without earlier calls belongs to the primary from the merge on', () => {
    store.apply(identify('id:1'));
    store.apply(merge('id:1', 'anonymous_id:z'));
    store.apply(track('anonymous_id:z', 'later'));
    expect(ownerOf('later')).toBe(1);
  });

  test('merged into a free id creates no person, records an issue and stays without a person', () => {
    store.apply(track('anonymous_id:z', 'before'));
    const changes = store.apply(merge('id:new', 'anonymous_id:z'));
    expect(store.people).toEqual([]);
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
    expect(ownerOf('before')).toBeNull();
  });

  test('is identified by an alias that names its anonymous id as an id, which creates a missing person', () => {
    store.apply(identify('anonymous_id:z', { from: 'visitor' }), track('anonymous_id:z', 'before'));
    store.apply(alias('id:new', 'id:z'));
    expect(store.people).toMatchObject([{ id: 'new', attributes: { from: 'visitor' } }]);
    expect(ownerOf('before')).toBe(store.people[0]?.personId);
  });

  test('without earlier calls creates no person if an alias names it, and the alias is an issue', () => {
    const changes = store.apply(alias('id:new', 'anonymous_id:z'));
    expect(store.people).toEqual([]);
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
  });

  test('is not meant by an id of a merge that is no alias', () => {
    store.apply(identify('id:1'), identify('anonymous_id:z', { from: 'visitor' }));
    const changes = store.apply(merge('id:1', 'id:z'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
    expect(store.people).toMatchObject([{ id: '1', attributes: {} }]);
    store.apply(track('anonymous_id:z', 'later'));
    expect(ownerOf('later')).toBeNull();
  });

  test('is not meant by an id of a merge that is no alias, also if their calls come together', () => {
    store.apply(identify('id:1'));
    const changes = store.apply(track('anonymous_id:z', 'before'), merge('id:1', 'id:z'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
    expect(ownerOf('before')).toBeNull();
  });

  test('is not meant by an alias if a person has the id', () => {
    store.apply(identify('id:1'), identify('id:z', { from: 'person' }));
    store.apply(identify('anonymous_id:z', { from: 'visitor' }));
    store.apply(alias('id:1', 'id:z'));
    expect(store.people).toMatchObject([{ id: '1', attributes: { from: 'person' } }]);
    store.apply(track('anonymous_id:z', 'later'));
    expect(ownerOf('later')).toBeNull();
  });

  test('that is a person already is not given to another person, and the alias is an issue', () => {
    store.apply(identify('id:1'), identify('id:2', {}, { anonymousId: 'z' }));
    const changes = store.apply(alias('id:1', 'id:z'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
    store.apply(track('anonymous_id:z', 'later'));
    expect(ownerOf('later')).toBe(2);
  });

  test('and another person, whose anonymous id an alias names, stay two', () => {
    store.apply(identify('id:1', { a: 1 }), identify('id:2', { b: 2 }, { anonymousId: 'z' }));
    const changes = store.apply(alias('id:1', 'anonymous_id:z'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'identifier_conflict' } }]);
    expect(store.people).toMatchObject([
      { id: '1', attributes: { a: 1 } },
      { id: '2', attributes: { b: 2 } },
    ]);
    store.apply(track('anonymous_id:z', 'later'));
    expect(ownerOf('later')).toBe(2);
  });

  test('whose anonymous id is a person’s does not give that person the free id of an alias', () => {
    store.apply(identify('id:2', {}, { anonymousId: 'z' }));
    const changes = store.apply(alias('id:new', 'anonymous_id:z'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
    expect(store.people).toMatchObject([{ id: '2' }]);
  });

  test('whose person has an email alone gives that person the free id of an alias', () => {
    store.apply(identify('email:a@x', { plan: 'pro' }, { anonymousId: 'z' }));
    store.apply(alias('id:new', 'anonymous_id:z'));
    expect(store.people).toMatchObject([{ id: 'new', email: 'a@x', attributes: { plan: 'pro' } }]);
  });

  test('whose person has an email alone, and the person with the id of an alias, stay two', () => {
    store.apply(identify('id:1', { a: 1 }));
    store.apply(identify('email:a@x', { b: 2 }, { anonymousId: 'z' }));
    const changes = store.apply(alias('id:1', 'anonymous_id:z'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'identifier_conflict' } }]);
    expect(whoIs()).toEqual([
      { id: '1', email: null, phone: null },
      { id: null, email: 'a@x', phone: null },
    ]);
  });

  test.each([
    ['merged into a person', merge('id:1', 'anonymous_id:z')],
    ['given to a person by an alias', alias('anonymous_id:z', 'id:1')],
  ])('of a suppressed person stays blocked, and is an issue if %s', (_name, operation) => {
    store.apply(identify('id:1'), identify('id:2', {}, { anonymousId: 'z' }));
    store.apply(suppress('id:2'));
    const changes = store.apply(operation);
    expect(changes.issues).toMatchObject([{ issue: { code: 'suppressed' } }]);
    store.apply(track('anonymous_id:z', 'later'));
    expect(ownerOf('later')).toBeUndefined();
  });

  test('and another person, who is to get its anonymous id by an alias, stay two', () => {
    store.apply(identify('id:1', { a: 1 }, { anonymousId: 'z' }), identify('id:2', { b: 2 }));
    const changes = store.apply(alias('anonymous_id:z', 'id:2'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'identifier_conflict' } }]);
    expect(store.people.map(({ id }) => id)).toEqual(['1', '2']);
  });

  test('does not come from an unknown id of an alias, which is an issue', () => {
    store.apply(identify('id:1'));
    const changes = store.apply(alias('id:1', 'id:nobody'));
    expect(changes.issues).toMatchObject([{ issue: { code: 'person_not_found' } }]);
    store.apply(track('anonymous_id:nobody', 'later'));
    expect(ownerOf('later')).toBeNull();
  });
});
