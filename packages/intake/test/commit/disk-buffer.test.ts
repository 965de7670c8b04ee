import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DiskBuffer } from '../../src/commit/disk-buffer.ts';
import { openDiskBuffer, type DiskBufferOptions } from '../../src/commit/open-disk-buffer.ts';

const ALONE = { sharePercent: 25, isAlone: () => true };
const NOBODY: ReadonlyMap<number, number> = new Map();

let directory: string;
const opened: DiskBuffer[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sluice-test-spill-'));
});
afterEach(() => {
  for (const diskBuffer of opened.splice(0)) diskBuffer.close();
  rmSync(directory, { recursive: true, force: true });
});

function open(overrides: Partial<DiskBufferOptions> = {}): DiskBuffer {
  const diskBuffer = openDiskBuffer({
    ...ALONE,
    directory,
    name: 'sluice-test',
    sizeBytesMax: 1_000_000,
    ...overrides,
  });
  opened.push(diskBuffer);
  return diskBuffer;
}

/** As the end of its process does. */
function close(diskBuffer: DiskBuffer): void {
  opened.splice(opened.indexOf(diskBuffer), 1);
  diskBuffer.close();
}

const flush = (...ids: string[]): ShardCommitBatch[] =>
  ids.map((id, shard) => ({ shard, envelope: { id, operations: [] } }));

const idsOf = (diskBuffer: DiskBuffer): string[] =>
  diskBuffer
    .readOldest(100, 1_000_000)
    .flatMap(({ envelopes: commitBatches }) =>
      commitBatches.map(({ envelope: commitBatch }) => commitBatch.id),
    );

describe('the disk buffer', () => {
  test('gives flushes back in order and whole, also after its process ended without a word', () => {
    const first = open();
    first.append(flush('a', 'b'), NOBODY, 5);
    first.append(flush('c'), NOBODY, 6);
    close(first);

    const second = open();
    expect(second.readOldest(1, 1_000_000)).toMatchObject([{ envelopes: flush('a', 'b') }]);
    expect(idsOf(second)).toEqual(['a', 'b', 'c']);
    expect(second).toMatchObject({ isEmpty: false, commitBatchCount: 3 });
    expect(second.oldestAtMs()).toBe(5);
  });

  test('keeps a flush that was appended meanwhile when the oldest are deleted', () => {
    const diskBuffer = open();
    diskBuffer.append(flush('a'), NOBODY, 1);
    const oldest = diskBuffer.readOldest(10, 1_000_000);
    diskBuffer.append(flush('b'), NOBODY, 2);
    diskBuffer.deleteOldest(oldest);
    expect(idsOf(diskBuffer)).toEqual(['b']);
    expect(diskBuffer.commitBatchCount).toBe(1);
    diskBuffer.deleteOldest(diskBuffer.readOldest(10, 1_000_000));
    expect(diskBuffer).toMatchObject({ isEmpty: true, commitBatchCount: 0, sizeBytes: 0 });
  });

  test('a step takes two large flushes and not a third', () => {
    const diskBuffer = open();
    for (const id of ['a', 'b', 'c']) diskBuffer.append(flush(id), NOBODY, 1);
    expect(diskBuffer.readOldest(10, 1)).toHaveLength(2);
    expect(diskBuffer.readOldest(1, 1)).toHaveLength(1);
  });

  test('refuses flushes over its limit, and takes them again once it has capacity', () => {
    const diskBuffer = open({ sizeBytesMax: 150 });
    expect(diskBuffer.append(flush('a'), NOBODY, 1)).toBeDefined();
    expect(diskBuffer.append(flush('b'), NOBODY, 1)).toBeDefined();
    expect(diskBuffer.append(flush('c'), NOBODY, 1)).toBeUndefined();
    expect(idsOf(diskBuffer)).toEqual(['a', 'b']);
    diskBuffer.deleteOldest(diskBuffer.readOldest(1, 1));
    expect(diskBuffer.append(flush('c'), NOBODY, 1)).toBeDefined();
    expect(idsOf(diskBuffer)).toEqual(['b', 'c']);
  });

  test('returns the flushes that two processes left in the order of their times, from both files', () => {
    const first = open();
    const second = open();
    const ids = [first.id, second.id];
    for (const [diskBuffer, id, atMs] of [
      [first, 'a', 1.5],
      [second, 'b', 2],
      [first, 'c', 2.5],
      [second, 'd', 3],
    ] as const)
      diskBuffer.append(flush(id), NOBODY, 0, atMs);
    expect(second.firstWrittenAtMs()).toBe(2);
    close(first);
    close(second);
    const next = open();
    expect(idsOf(next)).toEqual(['a', 'b', 'c', 'd']);
    expect(next.firstWrittenAtMs()).toBe(1.5);
    // It answers for both.
    expect([next.id, ...next.formerIds]).toEqual(ids);
    next.forgetFormerIds();
    close(next);
    expect(open()).toMatchObject({ id: ids[0], formerIds: [] });
  });

  test('flushes of one moment keep their order when another process takes over their file', () => {
    const [first, second] = [open(), open()];
    // The clock stands still, or is set back: only the file's own order remains.
    for (const id of ['a', 'b', 'c', 'd']) second.append(flush(id), NOBODY, 7, 7);
    close(first);
    close(second);
    const next = open();
    expect(idsOf(next)).toEqual(['a', 'b', 'c', 'd']);
    next.append(flush('e'), NOBODY, 1, 1);
    expect(idsOf(next)).toEqual(['a', 'b', 'c', 'd', 'e']);
    close(next);
    // The file that it was in is empty, so it does not come a second time.
    expect(idsOf(open())).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('takes over a file of a version that wrote no times of the broker', () => {
    const database = new DatabaseSync(join(directory, 'sluice-test-0.sqlite'));
    database.exec(`create table flushes (
        position integer primary key, size_bytes integer not null, envelope_count integer not null,
        is_atomic integer not null, spilled_at_ms integer not null, envelopes text not null) strict;
      pragma user_version = 1`);
    database
      .prepare('insert into flushes values (1, 40, 1, 1, 7, ?)')
      .run(JSON.stringify(flush('a')));
    database.close();
    const diskBuffer = open();
    diskBuffer.append(flush('b'), NOBODY, 8);
    expect(idsOf(diskBuffer)).toEqual(['a', 'b']);
    expect(diskBuffer.firstWrittenAtMs()).toBe(7);
  });

  test('counts bytes, not letters', () => {
    const diskBuffer = open();
    const kept = diskBuffer.append(flush('€'.repeat(1_000)), NOBODY, 1);
    expect(kept?.sizeBytes).toBeGreaterThan(3_000);
    expect(diskBuffer.sizeBytes).toBe(kept?.sizeBytes);
  });

  test('stays as it is if the full disk refuses a flush, and keeps a later one', () => {
    close(open());
    const database = new DatabaseSync(join(directory, 'sluice-test-0.sqlite'));
    database.exec('pragma max_page_count = 8');
    const diskBuffer = new DiskBuffer(database, { sizeBytesMax: 1_000_000_000, ...ALONE });
    opened.push(diskBuffer);
    diskBuffer.append(flush('a'), NOBODY, 1);
    const sizeBytes = diskBuffer.sizeBytes;
    expect(() => diskBuffer.append(flush('b'.repeat(100_000)), NOBODY, 1)).toThrow('full');
    expect(diskBuffer).toMatchObject({ sizeBytes, commitBatchCount: 1 });
    expect(idsOf(diskBuffer)).toEqual(['a']);
    diskBuffer.append(flush('c'), NOBODY, 1);
    expect(idsOf(diskBuffer)).toEqual(['a', 'c']);
  });

  test('two processes never share a file, and the next start takes over the flushes of both', () => {
    const first = open();
    const second = open();
    first.append(flush('a'), NOBODY, 1);
    second.append(flush('b'), NOBODY, 2);
    expect(idsOf(first)).toEqual(['a']);
    close(first);
    close(second);
    const next = open();
    expect(idsOf(next)).toEqual(['a', 'b']);
    expect(next.commitBatchCount).toBe(2);
    // And it has no other owner any more.
    expect(open().isEmpty).toBe(true);
  });

  test('installations in the same folder have separate files and read only their own flushes', () => {
    const ours = open();
    ours.append(flush('a'), NOBODY, 1);
    close(ours);
    expect(open({ name: 'sluice-test-2' }).isEmpty).toBe(true);
    expect(open({ name: '../other/é' }).isEmpty).toBe(true);
    expect(idsOf(open())).toEqual(['a']);
    expect(readdirSync(directory).filter((name) => name.endsWith('.sqlite'))).toHaveLength(3);
  });

  test('an emptied file gives the disk its space back', () => {
    const diskBuffer = open({ sizeBytesMax: 100_000_000 });
    for (let n = 0; n < 20; n++) diskBuffer.append(flush('x'.repeat(1_000_000)), NOBODY, 1);
    diskBuffer.deleteOldest(diskBuffer.readOldest(100, 100_000_000));
    expect(statSync(join(directory, 'sluice-test-0.sqlite')).size).toBeLessThan(100_000);
  });

  test('a damaged file stops the start, and the error names the file and the remedy', () => {
    writeFileSync(join(directory, 'sluice-test-0.sqlite'), 'no database'.repeat(1_000));
    expect(() => open()).toThrow(
      expect.objectContaining({
        code: 'SPILL_UNREADABLE',
        message: expect.stringMatching(/sluice-test-0\.sqlite.*acknowledged.*Move it/),
      }),
    );
  });

  test('a file of a later version stops the start, and the error names its format', () => {
    close(open());
    const database = new DatabaseSync(join(directory, 'sluice-test-0.sqlite'));
    database.exec('pragma user_version = 2');
    database.close();
    expect(() => open()).toThrow(
      expect.objectContaining({
        code: 'SPILL_UNREADABLE',
        message: expect.stringContaining('format 2'),
      }),
    );
  });

  test('a folder that cannot be made stops the start and names its setting', () => {
    writeFileSync(join(directory, 'file'), '');
    expect(() =>
      openDiskBuffer({
        directory: join(directory, 'file', 'spill'),
        name: 'a',
        sizeBytesMax: 1,
        ...ALONE,
      }),
    ).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  });
});
