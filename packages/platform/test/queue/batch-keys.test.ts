/** Keys of a batch, as the broker keeps them. */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { keyHashOf } from '@sluice/domain/operations/shard';
import { identify, track } from '@sluice/domain/testing/sample-operations';
import { expect, test } from 'vitest';
import { keyHashesOf, readHashes, writeHashes } from '../../src/queue/batch-keys.ts';

test('each key once, and read as it was written', () => {
  const hashes = keyHashesOf({
    operations: [identify('id:a', { email: 'a@x.y' }), track('id:a', 'e')],
  });
  expect(hashes).toEqual(Uint32Array.of(keyHashOf(1, 'a'), keyHashOf(1, 'a@x.y')));
  expect(readHashes(writeHashes(hashes))).toEqual(hashes);
});

test('operations of a newer version have no keys, so an older intake can drain them from its disk', () => {
  const newer = [
    { type: 'of.a.newer.version', environmentId: 1 },
    [99, 1],
    identify('id:a'),
  ] as unknown as CommitBatch['operations'];
  expect(keyHashesOf({ operations: newer })).toEqual(Uint32Array.of(keyHashOf(1, 'a')));
});
