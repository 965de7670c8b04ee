/** Operations about an object and people of other shards: with any shard first, deleted people stay deleted. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { IdentifyPerson, Operation } from '../../src/operations/operation.ts';
import { shardKeyOf, shardOf } from '../../src/operations/shard.ts';
import { splitOperation } from '../../src/testing/split-operation.ts';
import { svcId } from '../../src/values/svc-id.ts';
import {
  deleteObject,
  identify,
  identifyObject,
  relate,
  relateObject,
  remove,
  suppress,
} from '../../src/testing/sample-operations.ts';
import { MemoryStore } from '../support/memory-store.ts';

const SHARD_COUNT = 256;

const group = (who: string, objectId: string): Operation =>
  identifyObject(
    objectId,
    { name: objectId },
    { relationships: [{ person: identify(who).person, attributes: { role: 'member' } }] },
  );

const identifyWith = (who: string, objectId: string, more: Partial<IdentifyPerson> = {}) =>
  identify(
    who,
    {},
    {
      relationships: {
        action: 'add',
        entries: [{ object: { objectTypeId: 1, objectId }, attributes: { role: 'member' } }],
      },
      ...more,
    },
  );

/** Applies them as shards would that take turns as `picks` has it, each in its own order. */
function applyInShards(operations: readonly Operation[], picks: readonly number[]): MemoryStore {
  const store = new MemoryStore();
  for (const part of inShards(operations, picks)) store.apply(part);
  return store;
}

/** Their parts in turn, as `picks` has it. */
function inShards(operations: readonly Operation[], picks: readonly number[]): Operation[] {
  const shards = new Map<number, Operation[]>();
  for (const operation of operations) {
    for (const part of splitOperation(operation, SHARD_COUNT)) {
      const shard = shardOf(part.environmentId, shardKeyOf(part), SHARD_COUNT);
      shards.set(shard, [...(shards.get(shard) ?? []), part]);
    }
  }
  const parts: Operation[] = [];
  for (let turn = 0; shards.size > 0; turn++) {
    const open = [...shards];
    const [shard, waiting] = open[
      (picks[turn % picks.length] ?? 0) % open.length
    ] as (typeof open)[0];
    const next = waiting.shift();
    if (next) parts.push(next);
    if (waiting.length === 0) shards.delete(shard);
  }
  return parts;
}

function applyInOrder(operations: readonly Operation[]): MemoryStore {
  const store = new MemoryStore();
  for (const operation of operations) store.apply(operation);
  return store;
}

const whoIsThere = (store: MemoryStore) => ({
  people: store.people.map(({ id }) => String(id)).toSorted(),
  objects: store.objects.map(({ objectId }) => objectId).toSorted(),
});

function relationshipsOf({ people, objects, relationships }: MemoryStore): string[] {
  return relationships
    .map(({ personId, objectNumber, attributes }) => {
      const who = people.find((row) => row.personId === personId)?.id;
      const what = objects.find((row) => row.objectNumber === objectNumber)?.objectId;
      return `${who} ${what} ${JSON.stringify(attributes)}`;
    })
    .toSorted();
}

const PICKS = fc.array(fc.nat(), { minLength: 1, maxLength: 12 });

describe('a call about an object of one shard and people of others', () => {
  test('leaves the same people and objects as in order, with any shard first', () => {
    const who = fc.constantFrom('id:u1', 'id:u2');
    const what = fc.constantFrom('o1', 'o2');
    const operation = fc.oneof(
      fc.tuple(who, what).map(([one, object]) => group(one, object)),
      fc.tuple(who, what).map(([one, object]) => relateObject(object, one, {}, 'delete')),
      fc.tuple(who, what).map(([one, object]) => identifyWith(one, object)),
      fc.tuple(who, what).map(([one, object]) => relate(one, object)),
      fc.tuple(who, what).map(([one, object]) => relate(one, object, {}, 'delete')),
      who.map(remove),
      who.map((one) => identify(one)),
      what.map(deleteObject),
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 8 }), PICKS, (operations, picks) => {
        expect(whoIsThere(applyInShards(operations, picks))).toEqual(
          whoIsThere(applyInOrder(operations)),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['is made', [group('id:u1', 'o1'), group('id:u2', 'o1')]],
    ['is made of people who are there', [identify('id:u1'), group('id:u1', 'o1')]],
    ['is made and deleted', [group('id:u1', 'o1'), relateObject('o1', 'id:u1', {}, 'delete')]],
    [
      'is made, deleted and made again',
      [group('id:u1', 'o1'), relateObject('o1', 'id:u1', {}, 'delete'), group('id:u1', 'o1')],
    ],
    ['of a person is made', [identifyWith('id:u1', 'o1'), relate('id:u2', 'o1')]],
    [
      'of a person is made, deleted and made again',
      [
        relate('id:u1', 'o1', { role: 'member' }),
        relate('id:u1', 'o1', {}, 'delete'),
        identifyWith('id:u1', 'o1'),
      ],
    ],
    [
      'of a person is made from the other side, and deleted',
      [group('id:u1', 'o1'), relate('id:u1', 'o1', {}, 'delete')],
    ],
    [
      'of a person is deleted from the other side',
      [identifyWith('id:u1', 'o1'), relateObject('o1', 'id:u1', {}, 'delete')],
    ],
    ['of a person goes with its object', [identifyWith('id:u1', 'o1'), deleteObject('o1')]],
    ['of a person goes with them', [identifyWith('id:u1', 'o1'), remove('id:u1')]],
    [
      'has what its person was last told',
      [relate('id:u1', 'o1', { n: 1 }), relate('id:u1', 'o1', { n: 2 })],
    ],
    ['goes with its person', [group('id:u1', 'o1'), remove('id:u1')]],
    ['goes with its person, who is blocked', [group('id:u1', 'o1'), suppress('id:u1')]],
    ['goes with its object', [group('id:u1', 'o1'), deleteObject('o1')]],
    [
      'is that of the person who comes after',
      [identify('id:u1'), remove('id:u1'), group('id:u1', 'o1')],
    ],
  ])('the relationship %s, as in order', (_, operations) => {
    fc.assert(
      fc.property(PICKS, (picks) => {
        expect(relationshipsOf(applyInShards(operations, picks))).toEqual(
          relationshipsOf(applyInOrder(operations)),
        );
      }),
    );
  });

  test('is split only if there are other shards, and never for an anonymous id', () => {
    const whole = group('id:u1', 'o1');
    expect(splitOperation(whole, 1)).toEqual([whole]);
    expect(splitOperation(whole, SHARD_COUNT)).toHaveLength(2);
    const anonymous = group('anonymous_id:a', 'o1');
    expect(splitOperation(anonymous, SHARD_COUNT)).toEqual([anonymous]);
  });

  test('makes no object for whom it is not applied to', () => {
    const object = (...operations: Operation[]) =>
      fc.assert(
        fc.property(PICKS, (picks) => {
          const store = applyInOrder(operations.slice(0, -1));
          const [last] = operations.slice(-1);
          for (const part of inShards([last as Operation], picks)) store.apply(part);
          expect([store.objects, store.relationships]).toEqual([[], []]);
        }),
      );
    object(suppress('id:u1'), identifyWith('id:u1', 'o1'));
    object(suppress('id:u1'), relate('id:u1', 'o1'));
    const blocked = { attributes: { email: 'a@example.com' } };
    object(
      identify('id:u1'),
      suppress('email:a@example.com'),
      identifyWith('id:u1', 'o1', blocked),
    );
    object(identifyWith('svc_id:a3000001', 'o1'));
    object(identifyWith('id:u1', 'o1', { mayCreate: false }));
  });

  test('is about people named by svc_id too', () => {
    fc.assert(
      fc.property(PICKS, (picks) => {
        const store = applyInOrder([identify('id:u1')]);
        const person = `svc_id:${svcId(store.people[0]?.personId ?? 0)}`;
        for (const part of inShards([identifyWith(person, 'o1'), deleteObject('o1')], picks))
          store.apply(part);
        expect([store.people.length, store.objects, store.relationships]).toEqual([1, [], []]);
      }),
    );
  });

  test('reports each fault once', () => {
    const store = new MemoryStore();
    store.apply(suppress('id:u1'));
    const codes = (operation: Operation) =>
      splitOperation(operation, SHARD_COUNT)
        .flatMap((part) => store.apply(part).issues)
        .map(({ issue }) => issue.code);
    expect(codes(group('id:u1', 'o1'))).toEqual(['suppressed']);
    expect(codes(relate('id:u1', 'o2'))).toEqual(['suppressed']);
    expect(codes(identifyWith('id:u1', 'o2'))).toEqual(['suppressed']);
    expect(codes(identifyWith('svc_id:a3ffffff', 'o2'))).toEqual(['person_not_found']);
    store.apply(identify('id:u2'));
    expect(codes(relate('id:u2', 'o2', {}, 'delete'))).toEqual(['object_not_found']);
  });
});
