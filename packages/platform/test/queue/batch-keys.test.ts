/** Keys of a batch, as the broker keeps them. */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { keyHashOf } from '@sluice/domain/operations/shard';
import { identify, track } from '@sluice/domain/testing/sample-operations';
import { expect, test } from 'vitest';
import { batchKeysOf, readBatchKeys, writeBatchKeys } from '../../src/queue/batch-keys.ts';

test('each key once, and read as it was written', () => {
  const keys = batchKeysOf({
    operations: [identify('id:a', { email: 'a@x.y' }), track('id:a', 'e')],
  });
  expect(keys.keys).toEqual(Uint32Array.of(keyHashOf(1, 'a'), keyHashOf(1, 'a@x.y')));
  expect(readBatchKeys(writeBatchKeys(keys))).toEqual(keys);
});

test('only events that name their person alone are free of order', () => {
  const isFree = (...operations: Operation[]): boolean => {
    const keys = batchKeysOf({ operations });
    const read = readBatchKeys(writeBatchKeys(keys));
    expect(read).toEqual(keys);
    return read.isOrderFree;
  };
  const event = track('id:a', 'e');
  expect(isFree(event, track('email:a@x.y', 'e'), track('anonymous_id:v', 'e'))).toBe(true);
  expect(isFree(event, { ...event, anonymousId: 'v' })).toBe(false);
  expect(isFree(event, identify('id:b'))).toBe(false);
});

test('a batch that an older version wrote has an order', () => {
  const { keys } = batchKeysOf({ operations: [track('id:a', 'e')] });
  const older = writeBatchKeys({ keys, isOrderFree: false });
  expect(older).toHaveLength(4);
  expect(readBatchKeys(older)).toEqual({ keys, isOrderFree: false });
});

test('operations of a newer version have no keys, so an older intake can drain them from its disk', () => {
  const newer = [
    { type: 'of.a.newer.version', environmentId: 1 },
    [99, 1],
    identify('id:a'),
  ] as unknown as CommitBatch['operations'];
  expect(batchKeysOf({ operations: newer })).toEqual({
    keys: Uint32Array.of(keyHashOf(1, 'a')),
    isOrderFree: false,
  });
});
