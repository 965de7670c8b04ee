/** Identifiers that a commit batch holds, and the ones it only reads. */
import { describe, expect, it, test } from 'vitest';
import { identifiersToHold, mergeStanceOf } from '../../src/state/held-identifiers.ts';
import type { Operation } from '../../src/operations/operation.ts';
import type { IdentifierRow } from '../../src/state/loaded-state.ts';
import { findStateNeeds } from '../../src/state/find-state-needs.ts';
import {
  deleteObject,
  identify,
  identifyObject,
  merge,
  metric,
  relateObject,
  remove,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';

/** `id:1=7` is of person 7, `anonymous_id:z=` has no owner, `id:1=7!` is suppressed. */
function stored(text: string): IdentifierRow {
  const [, kind, value, personId, mark] = /^(\w+):(\w+)=(\d*)(!?)$/.exec(text) ?? [];
  return {
    environmentId: 1,
    kind: kind as IdentifierRow['kind'],
    value: value ?? '',
    personId: personId === '' ? null : Number(personId),
    suppressed: mark === '!',
  };
}

function held(operations: Operation[], found: string[], otherPeople: number[] = []): string[] {
  return identifiersToHold(findStateNeeds(operations), found.map(stored), otherPeople).map(
    ({ kind, value }) => `${kind}:${value}`,
  );
}

const seen = (who: string, anonymousId?: string) =>
  track(who, 'seen', anonymousId === undefined ? {} : { anonymousId });

describe('a simple event', () => {
  it('holds no identifier of a known person, by any of their names', () => {
    const operations = [seen('id:1'), seen('id:1'), seen('email:a'), seen('anonymous_id:z')];
    expect(held(operations, ['id:1=7', 'email:a=7', 'anonymous_id:z=8'])).toEqual([]);
  });

  it('holds no identifier of a suppressed person, because it is ignored', () => {
    expect(held([seen('id:1')], ['id:1=7!'])).toEqual([]);
  });

  it('holds identifiers of unknown people, and an anonymous id without an owner', () => {
    expect(held([seen('id:1'), seen('id:2')], ['id:2=7'])).toEqual(['id:1']);
    expect(held([seen('anonymous_id:z')], ['anonymous_id:z='])).toEqual(['anonymous_id:z']);
  });

  it('holds both names if it gives an anonymous id to a person, and no name if the person has it', () => {
    const both = ['id:1', 'anonymous_id:z'];
    expect(held([seen('id:1', 'z')], ['id:1=7'])).toEqual(both);
    expect(held([seen('id:1', 'z')], ['id:1=7', 'anonymous_id:z='])).toEqual(both);
    expect(held([seen('id:1', 'z')], ['id:1=7', 'anonymous_id:z=8'])).toEqual(both);
    expect(held([seen('id:1', 'z')], ['id:1=7', 'anonymous_id:z=7'])).toEqual([]);
  });

  it('of a svc_id holds the anonymous id', () => {
    expect(held([seen('svc_id:a3000001', 'z')], ['anonymous_id:z=7'])).toEqual(['anonymous_id:z']);
  });
});

describe('beside other operations', () => {
  const found = ['id:1=7', 'email:a=7', 'id:2=8', 'email:b=8'];

  test.each([
    ['identify', identify('id:1', { plan: 'pro' })],
    ['delete', remove('id:1')],
    ['suppress', suppress('id:1')],
    ['unsuppress', unsuppress('id:1')],
  ])('%s: every name of the person is held, and names of other people are not', (_, operation) => {
    const operations = [seen('email:a'), seen('email:b'), seen('id:2'), operation];
    expect(held(operations, found)).toEqual(['email:a', 'id:1']);
    expect(held(operations.toReversed(), found)).toEqual(['id:1', 'email:a']);
  });

  it('holds the names of people whom an operation means without naming them', () => {
    expect(held([seen('id:1'), seen('id:2')], found, [8])).toEqual(['id:2']);
  });

  it('holds an attribute that becomes an identifier, and the names of its owner', () => {
    const operations = [identify('id:3', { email: 'b' }), seen('id:1'), seen('id:2')];
    expect(held(operations, found)).toEqual(['id:3', 'email:b', 'id:2']);
  });

  it('holds everything of a person of whom one name is being given away', () => {
    const operations = [seen('id:1', 'z'), seen('email:b'), seen('email:a')];
    expect(held(operations, [...found, 'anonymous_id:z=8'])).toEqual([
      'id:1',
      'anonymous_id:z',
      'email:b',
      'email:a',
    ]);
  });
});

test('a commit batch merges, reads, or holds its identifiers', () => {
  expect(mergeStanceOf([])).toBe('holds');
  expect(mergeStanceOf([identify('id:1'), metric('d', 'opened')])).toBe('holds');
  expect(mergeStanceOf([identify('id:1'), seen('id:1')])).toBe('reads');
  expect(mergeStanceOf([seen('id:1'), merge('id:1', 'id:2'), seen('id:1')])).toBe('merges');
});

test('of the objects that calls name, the deleted ones are known apart', () => {
  const calls = [identifyObject('kept'), deleteObject('gone'), relateObject('other', 'id:1')];
  const names = findStateNeeds(calls);
  expect(names.objectNames.map(({ objectId }) => objectId)).toEqual(['kept', 'gone', 'other']);
  expect(names.deletedObjects).toEqual({
    objectNames: [{ environmentId: 1, objectTypeId: 1, objectId: 'gone' }],
    objects: [],
  });
});
