/** Owners of bytes in the disk buffer, and its last share. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import type { DiskBuffer } from '../../src/commit/disk-buffer.ts';
import { openDiskBuffer } from '../../src/commit/open-disk-buffer.ts';

function makeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-test-shares-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const openIn = (directory: string, sizeBytesMax = 10_000, isAlone = false): DiskBuffer =>
  openDiskBuffer({
    directory,
    name: 'test',
    sizeBytesMax,
    sharePercent: 25,
    isAlone: () => isAlone,
  });

/** On disk about as large as `sizeBytes`. */
const flushOf = (sizeBytes: number): ShardCommitBatch[] => [
  { shard: 0, envelope: { id: 'x'.repeat(sizeBytes), operations: [] } },
];

/** One call a flush, each asked for as the batcher does, until one is refused. */
function fill(diskBuffer: DiskBuffer, environmentId: number): number {
  let count = 0;
  while (diskBuffer.hasCapacityFor(environmentId, 500, 500)) {
    if (!diskBuffer.append(flushOf(500), new Map([[environmentId, 500]]), 1)) break;
    count++;
  }
  return count;
}

test('one workspace leaves the last share of the file to others; alone it takes everything', () => {
  const shared = openIn(makeDirectory());
  fill(shared, 1);
  expect(shared.sizeBytes).toBeGreaterThan(6_000);
  expect(shared.sizeBytes).toBeLessThanOrEqual(7_500);
  fill(shared, 2);
  expect(shared.sizeBytesOf(2)).toBeGreaterThan(1_500);
  expect(shared.sizeBytesOf(2)).toBeLessThanOrEqual(2_500);
  expect(shared.hasCapacityFor(1, 500, 500)).toBe(false);
  shared.close();

  const alone = openIn(makeDirectory(), 10_000, true);
  fill(alone, 1);
  expect(alone.sizeBytes).toBeGreaterThan(9_000);
  alone.close();
});

test('an empty disk buffer has capacity for any call, because calls go to the broker', () => {
  const diskBuffer = openIn(makeDirectory(), 100);
  expect(diskBuffer.hasCapacityFor(1, 1_000_000, 1_000_000)).toBe(true);
  diskBuffer.close();
});

test('waiting requests count with the size that they will take on the disk', () => {
  const diskBuffer = openIn(makeDirectory());
  diskBuffer.append(flushOf(2_000), new Map([[1, 1_000]]), 1);
  // Twice its size on disk: 2,050 are there, 2,700 of its own wait, and the others' 2,000.
  expect(diskBuffer.hasCapacityFor(1, 1_350, 2_350)).toBe(true);
  expect(diskBuffer.hasCapacityFor(1, 1_350, 2_850)).toBe(false);
  diskBuffer.close();
});

test('the next process knows whose bytes were left, also in the file of another dead one', () => {
  const directory = makeDirectory();
  const [one, other] = [openIn(directory), openIn(directory)];
  one.append(flushOf(100), new Map([[1, 10]]), 1);
  other.append(flushOf(300), new Map([[2, 30]]), 2);
  const [oneSize, otherSize] = [one.sizeBytes, other.sizeBytes];
  one.close();
  other.close();
  const next = openIn(directory);
  expect([next.sizeBytesOf(1), next.sizeBytesOf(2)]).toEqual([oneSize, otherSize]);
  next.deleteOldest(next.readOldest(10, 10_000));
  expect([next.sizeBytesOf(1), next.sizeBytesOf(2), next.sizeBytesOf(0)]).toEqual([0, 0, 0]);
  next.close();
});

test('a flush of an earlier version counts for no workspace, and a flush that it deleted is forgotten', () => {
  const directory = makeDirectory();
  const before = openIn(directory);
  before.append(flushOf(100), new Map([[1, 10]]), 1);
  before.close();
  const database = new DatabaseSync(join(directory, 'test-0.sqlite'));
  database.exec(`delete from flushes;
    insert into flushes (position, size_bytes, envelope_count, is_atomic, spilled_at_ms, envelopes)
    values (7, 50, 1, 1, 1, '[]')`);
  database.close();
  const after = openIn(directory);
  expect([after.sizeBytesOf(1), after.sizeBytesOf(0)]).toEqual([0, 50]);
  after.close();
});

test('after any appends and deletions, the sizes of all owners add up to the size of the disk buffer', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          sizeBytes: fc.integer({ min: 1, max: 500 }),
          owners: fc.dictionary(fc.constantFrom('1', '2', '3', '4'), fc.nat({ max: 1_000 })),
          isDeleted: fc.boolean(),
        }),
        { maxLength: 12 },
      ),
      (steps) => {
        const directory = mkdtempSync(join(tmpdir(), 'sluice-test-shares-'));
        const diskBuffer = openIn(directory);
        const sum = () => [0, 1, 2, 3, 4].reduce((all, id) => all + diskBuffer.sizeBytesOf(id), 0);
        try {
          for (const { sizeBytes, owners, isDeleted } of steps) {
            const sizes = new Map(Object.entries(owners).map(([id, size]) => [Number(id), size]));
            diskBuffer.append(flushOf(sizeBytes), sizes, 1);
            if (isDeleted) diskBuffer.deleteOldest(diskBuffer.readOldest(1, 1).slice(0, 1));
            expect(sum()).toBe(diskBuffer.sizeBytes);
          }
        } finally {
          diskBuffer.close();
          rmSync(directory, { recursive: true, force: true });
        }
      },
    ),
    { numRuns: 25 },
  );
});
