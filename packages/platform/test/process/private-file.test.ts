/** Files of customers' data are their owner's alone. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepFilePrivate, keepFolderPrivate } from '../../src/process/private-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-test-private-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('a database is private from its first byte, and so is its log', () => {
  const path = join(folder, 'data.sqlite');
  keepFilePrivate(path);
  const database = new DatabaseSync(path);
  database.exec('pragma journal_mode = wal; create table t (a)');
  expect([path, `${path}-wal`].map(modeOf)).toEqual(['600', '600']);
  database.close();
});

test('a file that an earlier version left open to others becomes private and keeps its content', () => {
  const path = join(folder, 'data.sqlite');
  for (const name of [path, `${path}-wal`]) {
    writeFileSync(name, 'kept');
    chmodSync(name, 0o644);
  }
  keepFilePrivate(path);
  expect([path, `${path}-wal`].map(modeOf)).toEqual(['600', '600']);
  expect(statSync(path).size).toBe(4);
});

test.each([
  ['was not there is made private', undefined, [], '700'],
  ['with only our files is closed', 0o755, ['a.sqlite'], '700'],
  ['that is a volume with only our files is closed', 0o755, ['a.sqlite', 'lost+found'], '700'],
  ['that holds something else stays as it is', 0o755, ['a.sqlite', 'notes'], '755'],
  ['that is everybody’s stays as it is', 0o1777, [], '777'],
] as const)('a folder that %s', (_, mode, entries, wanted) => {
  const path = join(folder, 'of/data');
  if (mode !== undefined) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, mode);
  }
  for (const entry of entries) writeFileSync(join(path, entry), '');
  keepFolderPrivate(path, (entry) => entry.endsWith('.sqlite'));
  expect(modeOf(path)).toBe(wanted);
});
