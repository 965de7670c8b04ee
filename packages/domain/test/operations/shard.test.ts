import type { Operation, PersonIdentifier } from '@sluice/domain/operations/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { describe, expect, test } from 'vitest';
import { BASE } from '../support/parsing.ts';

const person = (kind: PersonIdentifier['kind'], value: string): Operation => ({
  ...BASE,
  type: 'person.delete',
  person: { kind, value },
});

describe('the shard of a key', () => {
  test('never changes: commit batches of an older version wait under these', () => {
    const keys = [
      '',
      'u1',
      'user-12345',
      'ada@example.com',
      'Zürich',
      '汉字',
      '😀',
      'object:1:acme',
    ];
    expect(keys.map((key) => shardOf(1, key, 2 ** 32))).toEqual(PINNED.environment1);
    expect(keys.map((key) => shardOf(70_000, key, 2 ** 32))).toEqual(PINNED.environment70000);
    expect(keys.map((key) => shardOf(1, key, 16))).toEqual(
      PINNED.environment1.map((hash) => hash % 16),
    );
  });

  test.each([4, 7, 16])('spreads consecutive ids evenly over %i shards', (shardCount) => {
    const counts = Array.from({ length: shardCount }, () => 0);
    const total = 40_000;
    for (let index = 0; index < total; index++) {
      const shard = shardOf(1, `user-${index}`, shardCount);
      counts[shard] = (counts[shard] as number) + 1;
    }
    for (const count of counts)
      expect(Math.abs(count / (total / shardCount) - 1)).toBeLessThan(0.08);
  });

  test('spreads the same id of many workspaces', () => {
    const used = new Set(
      Array.from({ length: 200 }, (_, index) => shardOf(index + 1, 'admin', 16)),
    );
    expect(used.size).toBe(16);
  });
});

describe('the key by which an operation waits its turn', () => {
  test('one email is one key in any letter case, an id is not', () => {
    expect(shardKeyOf(person('email', 'Ada@Example.com'))).toBe(
      shardKeyOf(person('email', 'ada@example.COM')),
    );
    expect(shardKeyOf(person('id', 'Ada'))).not.toBe(shardKeyOf(person('id', 'ada')));
  });

  test('everything that names one person has one key', () => {
    const ada: PersonIdentifier = { kind: 'id', value: 'ada' };
    const operations: Operation[] = [
      person('id', 'ada'),
      { ...BASE, type: 'person.identify', person: ada, attributes: {}, mayCreate: true },
      { ...BASE, type: 'person.merge', primary: ada, secondary: { kind: 'id', value: 'bob' } },
      { ...BASE, type: 'person.relationships', person: ada, action: 'add', entries: [] },
      { ...BASE, type: 'device.add', person: ada, token: 't', platform: 'ios', attributes: {} },
      { ...BASE, type: 'form.submit', formId: 'f', person: ada, fields: {} },
      {
        ...BASE,
        type: 'event.track',
        kind: 'event',
        person: ada,
        eventId: 'e',
        name: 'n',
        data: {},
        occurredAtMs: 0,
      },
    ];
    expect(new Set(operations.map(shardKeyOf))).toEqual(new Set(['ada']));
  });

  test('everything that is about one object has one key, with any people in it', () => {
    const object = { objectTypeId: 1, objectId: 'acme' };
    const entries = [{ person: { kind: 'id', value: 'ada' } as const, attributes: {} }];
    const operations: Operation[] = [
      { ...BASE, type: 'object.identify', object, attributes: {}, relationships: [] },
      { ...BASE, type: 'object.identify', object, attributes: {}, relationships: entries },
      { ...BASE, type: 'object.relationships', object, action: 'delete', entries },
      { ...BASE, type: 'object.delete', object },
    ];
    expect(new Set(operations.map(shardKeyOf))).toEqual(new Set(['object:1:acme']));
  });

  test('invite events, which name no person, spread by their own id', () => {
    const invite = (eventId: string): Operation => ({
      ...BASE,
      type: 'event.track',
      kind: 'event',
      person: null,
      eventId,
      name: 'n',
      data: {},
      occurredAtMs: 0,
    });
    expect(shardKeyOf(invite('a'))).not.toBe(shardKeyOf(invite('b')));
  });
});

/** Made once by an independent implementation in Python. */
const PINNED = {
  environment1: [
    1_647_799_542, 813_476_535, 2_501_013_576, 1_925_714_161, 2_486_153_047, 3_539_518_326,
    2_701_818_701, 2_959_893_953,
  ],
  environment70000: [
    445_226_127, 115_835_913, 1_797_484_593, 3_017_780_578, 2_834_523_808, 506_536_068,
    1_321_469_868, 1_796_592_442,
  ],
};
