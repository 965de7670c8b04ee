/** Limits of the disk buffer, and a flush that its file refuses. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { expect, onTestFinished, test } from 'vitest';
import { openDiskBuffer } from '../../src/commit/open-disk-buffer.ts';

const NOBODY: ReadonlyMap<number, number> = new Map();
const MEGABYTE = 1_000_000;

function open(sizeBytesMax: number) {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-test-limits-'));
  const diskBuffer = openDiskBuffer({
    directory,
    name: 'test',
    sizeBytesMax,
    sharePercent: 25,
    isAlone: () => true,
  });
  onTestFinished(() => {
    diskBuffer.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { diskBuffer, fileSizeBytes: () => statSync(join(directory, 'test-0.sqlite')).size };
}

const flush = (id: string): ShardCommitBatch[] => [{ shard: 0, envelope: { id, operations: [] } }];
const sizeBytesOf = (id: string) => Buffer.byteLength(JSON.stringify(flush(id)));

test('flushes fill it to the last byte, and not one byte further', () => {
  const { diskBuffer } = open(2 * sizeBytesOf('a'));
  expect(diskBuffer.append(flush('a'), NOBODY, 1)).toBeDefined();
  expect(diskBuffer.append(flush('bb'), NOBODY, 1)).toBeUndefined();
  expect(diskBuffer.append(flush('b'), NOBODY, 1)).toBeDefined();
  expect(diskBuffer).toMatchObject({
    sizeBytes: 2 * sizeBytesOf('a'),
    sizeBytesMax: 2 * sizeBytesOf('a'),
    commitBatchCount: 2,
  });
});

test('a flush that its file refuses is not there afterwards, and the next one is kept', () => {
  const { diskBuffer } = open(MEGABYTE);
  diskBuffer.append(flush('a'), NOBODY, 1);
  // Of a workspace that no column takes, found after the flush itself was written.
  expect(() => diskBuffer.append(flush('b'), new Map([[1.5, 10]]), 2)).toThrow('cannot store');
  expect(diskBuffer).toMatchObject({ commitBatchCount: 1, sizeBytes: sizeBytesOf('a') });
  diskBuffer.append(flush('c'), NOBODY, 3);
  const kept = diskBuffer.readOldest(10, MEGABYTE);
  expect(kept.flatMap(({ envelopes }) => envelopes.map(({ envelope }) => envelope.id))).toEqual([
    'a',
    'c',
  ]);
});

test('a file that is not empty is not written anew', () => {
  const { diskBuffer, fileSizeBytes } = open(100 * MEGABYTE);
  for (let n = 0; n < 30; n++) diskBuffer.append(flush('x'.repeat(MEGABYTE)), NOBODY, 1);
  const before = fileSizeBytes();
  expect(before).toBeGreaterThan(20 * MEGABYTE);
  diskBuffer.deleteOldest(diskBuffer.readOldest(20, 100 * MEGABYTE));
  expect(fileSizeBytes()).toBeGreaterThanOrEqual(before);
});
