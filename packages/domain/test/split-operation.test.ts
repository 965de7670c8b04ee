/** What is about an object and people of other shards: whatever shard comes first, nobody who was deleted is made anew. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Operation } from '../src/operation.ts';
import { shardKeyOf, shardOf } from '../src/shard.ts';
import { splitOperation } from '../src/split-operation.ts';
import {
  deleteObject,
  identify,
  identifyObject,
  relateObject,
  remove,
  suppress,
} from '../src/testing.ts';
import { MemoryStore } from './memory-store.ts';

const SHARD_COUNT = 256;

const group = (who: string, objectId: string): Operation =>
  identifyObject(
    objectId,
    { name: objectId },
    { relationships: [{ person: identify(who).person, attributes: { role: 'member' } }] },
  );

/** Applies them as they would be with shards that take turns as `picks` has it: each shard in its own order. */
function applyInShards(operations: readonly Operation[], picks: readonly number[]): MemoryStore {
  const shards = new Map<number, Operation[]>();
  for (const operation of operations) {
    for (const part of splitOperation(operation, SHARD_COUNT)) {
      const shard = shardOf(part.environmentId, shardKeyOf(part), SHARD_COUNT);
      shards.set(shard, [...(shards.get(shard) ?? []), part]);
    }
  }
  const store = new MemoryStore();
  for (let turn = 0; shards.size > 0; turn++) {
    const open = [...shards];
    const [shard, waiting] = open[
      (picks[turn % picks.length] ?? 0) % open.length
    ] as (typeof open)[0];
    const next = waiting.shift();
    if (next) store.apply(next);
    if (waiting.length === 0) shards.delete(shard);
  }
  return store;
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
  test('leaves the people and objects that are there in order, whichever shard is first', () => {
    const who = fc.constantFrom('id:u1', 'id:u2');
    const what = fc.constantFrom('o1', 'o2');
    const operation = fc.oneof(
      fc.tuple(who, what).map(([one, object]) => group(one, object)),
      fc.tuple(who, what).map(([one, object]) => relateObject(object, one, {}, 'delete')),
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

  test('is split only where there are other shards, and never for whom it cannot make', () => {
    const whole = group('id:u1', 'o1');
    expect(splitOperation(whole, 1)).toEqual([whole]);
    expect(splitOperation(whole, SHARD_COUNT)).toHaveLength(2);
    const anonymous = group('anonymous_id:a', 'o1');
    expect(splitOperation(anonymous, SHARD_COUNT)).toEqual([anonymous]);
  });

  test('tells once what is wrong', () => {
    const store = new MemoryStore();
    store.apply(suppress('id:u1'));
    const issues = splitOperation(group('id:u1', 'o1'), SHARD_COUNT).flatMap(
      (part) => store.apply(part).issues,
    );
    expect(issues.map(({ issue }) => issue.code)).toEqual(['suppressed']);
  });
});
