/**
 * Opens a file of the local disk buffer, alone.
 *
 * SQLite's exclusive lock protects it; the operating system releases the lock at any end of the process. It takes the
 * first free file, and moves the flushes of other dead processes into it.
 *
 * After: `disk-buffer.ts`.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '@sluice/domain/values/errors';
import { keepFilePrivate, keepFolderPrivate } from '@sluice/platform/process/private-file';
import { DiskBuffer, readIdentities } from './disk-buffer.ts';
import { SHARES_SCHEMA, type DiskBufferBound } from './disk-buffer-shares.ts';

export interface DiskBufferOptions extends DiskBufferBound {
  /** Created when missing. */
  readonly directory: string;
  /** Whose commit batches: only files of this name are taken over. */
  readonly name: string;
}

const FORMAT_VERSION = 1;
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

const SCHEMA = `
  create table if not exists flushes (
    position integer primary key,
    size_bytes integer not null,
    envelope_count integer not null,
    is_atomic integer not null,
    spilled_at_ms integer not null,
    envelopes text not null
  ) strict;
  pragma user_version = ${FORMAT_VERSION};`;
/** Earlier versions read and write a file that has these too. `written_at_ms` is null in their rows. */
const ADDITIONS = `
  create table if not exists identities (id text not null) strict;
  create index if not exists flushes_in_order on flushes (coalesce(written_at_ms, spilled_at_ms), position);
  ${SHARES_SCHEMA}`;
/**
 * Opens a file of the disk buffer without another holder, with everything that earlier processes left.
 *
 * @throws AppError CONFIG_INVALID if the folder cannot be written.
 * @throws AppError SPILL_UNREADABLE if a file is damaged: it holds calls that were acknowledged.
 */
export function openDiskBuffer(options: DiskBufferOptions): DiskBuffer {
  const { directory, name } = options;
  const stem = encodeURIComponent(name);
  try {
    keepFolderPrivate(directory, isSpillFile);
    let slot = 0;
    let file = join(directory, `${stem}-${slot}.sqlite`);
    let database = lockFile(file);
    while (database === undefined) {
      file = join(directory, `${stem}-${++slot}.sqlite`);
      database = lockFile(file);
    }
    // The folder's own entry for a new file must survive a power cut too.
    const folder = openSync(directory, 'r');
    fsyncSync(folder);
    closeSync(folder);
    if (readIdentities(database).length === 0)
      database.prepare('insert into identities (id) values (?)').run(randomUUID());
    const diskBuffer = new DiskBuffer(database, options);
    for (const entry of readdirSync(directory).toSorted()) {
      const other = join(directory, entry);
      if (other === file || !entry.startsWith(`${stem}-`)) continue;
      if (!/^\d+\.sqlite$/.test(entry.slice(stem.length + 1))) continue;
      const leftover = lockFile(other);
      if (leftover === undefined) continue;
      diskBuffer.takeOver(leftover);
      leftover.close();
    }
    return diskBuffer;
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      'CONFIG_INVALID',
      `${directory} (INTAKE_SPILL_DIRECTORY) cannot be used (${String(cause)}). It may contain acknowledged calls, so correct its rights. Before you set another folder, move its files there`,
      { cause },
    );
  }
}

/** With the companions that SQLite makes. */
const isSpillFile = (entry: string): boolean => /-\d+\.sqlite(?:-[a-z]+)?$/.test(entry);

/** Undefined if another process holds it. */
function lockFile(file: string): DatabaseSync | undefined {
  keepFilePrivate(file);
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    // Exclusive before the first access: then WAL needs no shared memory and the lock is never given back.
    database.exec(`pragma locking_mode = exclusive; pragma journal_mode = wal;
                   pragma synchronous = full; begin immediate; commit`);
    const found = database.prepare('pragma quick_check(1)').get()?.['quick_check'];
    if (found !== 'ok') throw unreadable(file, String(found));
    const version = database.prepare('pragma user_version').get()?.['user_version'];
    if (version === 0) database.exec(`begin; ${SCHEMA} commit`);
    else if (version !== FORMAT_VERSION)
      throw unreadable(file, `it has format ${String(version)}, this version reads 1`);
    const columns = database.prepare('pragma table_info(flushes)').all();
    if (!columns.some(({ name }) => name === 'written_at_ms'))
      database.exec('alter table flushes add column written_at_ms real');
    database.exec(ADDITIONS);
    return database;
  } catch (error) {
    database.close();
    const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff;
    if (code === SQLITE_BUSY) return undefined;
    if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) throw unreadable(file, String(error));
    throw error;
  }
}

const unreadable = (file: string, found: string): AppError =>
  new AppError(
    'SPILL_UNREADABLE',
    `${file} cannot be read (${found}). It may contain acknowledged calls. Move it and its -wal ` +
      `file to another folder and start again. To recover its calls, run sqlite3 <file> .recover`,
  );
