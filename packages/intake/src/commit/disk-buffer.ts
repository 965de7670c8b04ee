/**
 * The local disk buffer: flushes that the broker could not take, in order, on this machine's disk (SQLite, WAL,
 * `synchronous=FULL`). One row a flush, so each append is one statement: all of it or nothing.
 *
 * - `append` returns when the row is on disk. It blocks the process for one fsync; while the broker
 *   is away there is nothing else to do.
 * - A file belongs to one process at a time, by SQLite's exclusive lock, which the operating system releases however
 *   the process ends. A start takes the first free file, and what other dead processes left is moved into it. Files
 *   are emptied, never removed: another process may be about to lock the very file.
 * - The file name carries the database and the queue prefix: commit batches must not reach another
 *   installation that happens to run in the same folder.
 *
 * - Each flush has the time at which it was written, by the broker's clock where that is known
 *   (`intake-lease.ts`). It goes to the broker in the order of these times, which are comparable between intakes.
 * - A file has an id, by which the broker knows what may be in it. Whoever takes over a file's flushes takes over its id.
 *
 * Needs nothing but the disk.
 *
 * Before and after: `batch-committer.ts`.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { AppError } from '@sluice/domain/values/errors';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { readFlush, writeFlush } from '@sluice/platform/queue/staged-flushes';

export interface BufferedFlush {
  readonly position: number;
  /** When it was written, by the broker's clock as intake knew it; milliseconds. */
  readonly writtenAtMs: number;
  readonly sizeBytes: number;
  readonly envelopes: readonly ShardCommitBatch[];
}

export interface DiskBufferOptions {
  /** Created when missing. */
  readonly directory: string;
  /** Whose commit batches: only files of this name are taken over. */
  readonly name: string;
  /** Of commit batches as JSON; the file is a little larger. */
  readonly sizeBytesMax: number;
}

const FORMAT_VERSION = 1;
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
/** Written for versions from before the broker took every flush whole, which read it. */
const IS_ATOMIC = 1;
/** What a file may keep once it is empty. */
const EMPTY_PAGES_MAX = 4_096;

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
/** Earlier versions read and write a file that has these too. `written_at_ms` is theirs where it is null. */
const ADDITIONS = `
  create table if not exists identities (id text not null) strict;
  create index if not exists flushes_in_order on flushes (coalesce(written_at_ms, spilled_at_ms), position);`;
const IN_ORDER = 'order by coalesce(written_at_ms, spilled_at_ms), position';
const WRITTEN_AT = 'coalesce(written_at_ms, spilled_at_ms)';

export class DiskBuffer {
  readonly #database: DatabaseSync;
  readonly #sizeBytesMax: number;
  readonly #insert: StatementSync;
  readonly #listSizes: StatementSync;
  readonly #list: StatementSync;
  readonly #delete: StatementSync;
  readonly #findOldest: StatementSync;
  readonly #findFirst: StatementSync;
  #identities: readonly string[];
  #lastWrittenAtMs = -Infinity;
  #sizeBytes = 0;
  #commitBatchCount = 0;
  #flushCount = 0;

  constructor(database: DatabaseSync, sizeBytesMax: number) {
    this.#database = database;
    this.#sizeBytesMax = sizeBytesMax;
    this.#insert = database.prepare(
      `insert into flushes (size_bytes, envelope_count, is_atomic, spilled_at_ms, envelopes, written_at_ms)
       values (?, ?, ?, ?, ?, ?)`,
    );
    this.#listSizes = database.prepare(
      `select position, size_bytes from flushes ${IN_ORDER} limit ?`,
    );
    this.#list = database.prepare(
      `select position, size_bytes, ${WRITTEN_AT} as written_at_ms, envelopes from flushes ${IN_ORDER} limit ?`,
    );
    this.#delete = database.prepare('delete from flushes where position = ?');
    this.#findOldest = database.prepare('select min(spilled_at_ms) as at_ms from flushes');
    this.#findFirst = database.prepare(
      `select ${WRITTEN_AT} as at_ms from flushes where position <> ? ${IN_ORDER} limit 1`,
    );
    this.#identities = readIdentities(database);
    const last = database.prepare(`select max(${WRITTEN_AT}) as at_ms from flushes`).get();
    this.#lastWrittenAtMs = (last?.['at_ms'] as number | null | undefined) ?? -Infinity;
    this.#count();
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get sizeBytesMax(): number {
    return this.#sizeBytesMax;
  }

  get commitBatchCount(): number {
    return this.#commitBatchCount;
  }

  get isEmpty(): boolean {
    return this.#flushCount === 0;
  }

  /** By which the broker knows what may be in the file. */
  get id(): string {
    return this.#identities[0] as string;
  }

  /** Ids of files whose flushes are in this one now. */
  get formerIds(): readonly string[] {
    return this.#identities.slice(1);
  }

  /** The broker has forgotten the former ids. */
  forgetFormerIds(): void {
    this.#database.prepare('delete from identities where id <> ?').run(this.id);
    this.#identities = [this.id];
  }

  /** By this machine's clock, Unix milliseconds; undefined where it is empty. */
  oldestAtMs(): number | undefined {
    return (this.#findOldest.get()?.['at_ms'] as number | null | undefined) ?? undefined;
  }

  /** When the first flush was written, by the broker's clock. @param except - the position of one that does not count. */
  firstWrittenAtMs(except = 0): number | undefined {
    return this.#findFirst.get(except)?.['at_ms'] as number | undefined;
  }

  /**
   * Writes one flush behind the others; on disk when it returns.
   *
   * @param atMs - this machine's clock.
   * @param brokerAtMs - the broker's clock; absent: not known.
   * @returns undefined when it would be over the limit; nothing was written then.
   * @throws Error where the disk refuses it (full, broken); nothing was written then.
   */
  append(
    commitBatches: readonly ShardCommitBatch[],
    atMs: number,
    brokerAtMs = atMs,
  ): BufferedFlush | undefined {
    const text = writeFlush(commitBatches);
    const sizeBytes = Buffer.byteLength(text);
    if (this.#sizeBytes + sizeBytes > this.#sizeBytesMax) return undefined;
    // Whatever the clocks do, this process' flushes keep their order.
    const writtenAtMs = Math.max(brokerAtMs, this.#lastWrittenAtMs);
    const values = [
      sizeBytes,
      commitBatches.length,
      IS_ATOMIC,
      Math.round(atMs),
      text,
      writtenAtMs,
    ];
    const position = Number(this.#insert.run(...values).lastInsertRowid);
    this.#lastWrittenAtMs = writtenAtMs;
    this.#sizeBytes += sizeBytes;
    this.#commitBatchCount += commitBatches.length;
    this.#flushCount++;
    return { position, writtenAtMs, sizeBytes, envelopes: commitBatches };
  }

  /**
   * The oldest ones in order: at most `flushesMax`, and only as many as fit into `sizeBytesMax`, but two in any case,
   * where there are two.
   */
  readOldest(flushesMax: number, sizeBytesMax: number): BufferedFlush[] {
    let sizeBytes = 0;
    let count = 0;
    for (const [index, row] of this.#listSizes.all(flushesMax).entries()) {
      sizeBytes += row['size_bytes'] as number;
      if (index >= 2 && sizeBytes > sizeBytesMax) break;
      count++;
    }
    return this.#list.all(count).map((row) => ({
      position: row['position'] as number,
      writtenAtMs: row['written_at_ms'] as number,
      sizeBytes: row['size_bytes'] as number,
      envelopes: readFlush(row['envelopes'] as string),
    }));
  }

  /** Forgets flushes that `readOldest` or `append` gave, together. When nothing is left the disk gets its space back. */
  deleteOldest(flushes: readonly BufferedFlush[]): void {
    this.#database.exec('begin immediate');
    for (const { position } of flushes) this.#delete.run(position);
    this.#database.exec('commit');
    // Not counted anew: that would read the whole file at each step.
    this.#flushCount -= flushes.length;
    for (const flush of flushes) {
      this.#sizeBytes -= flush.sizeBytes;
      this.#commitBatchCount -= flush.envelopes.length;
    }
    if (this.isEmpty) this.#shrink();
  }

  /**
   * Moves everything from a file that nobody holds to the end of this one. A crash on the way leaves second copies,
   * which the worker's claim drops.
   */
  takeOver(other: DatabaseSync): void {
    const rows = other.prepare(
      `select size_bytes, envelope_count, is_atomic, spilled_at_ms, envelopes, ${WRITTEN_AT} from flushes ${IN_ORDER}`,
    );
    const addIdentity = this.#database.prepare('insert into identities (id) values (?)');
    this.#database.exec('begin immediate');
    try {
      for (const row of rows.iterate()) {
        const values = Object.values(row) as (string | number)[];
        this.#insert.run(...values);
      }
      for (const id of readIdentities(other)) addIdentity.run(id);
      this.#database.exec('commit');
    } catch (error) {
      this.#database.exec('rollback');
      throw error;
    }
    other.exec('begin immediate; delete from flushes; delete from identities; commit');
    this.#identities = readIdentities(this.#database);
    this.#count();
  }

  close(): void {
    this.#database.close();
  }

  #count(): void {
    const row = this.#database
      .prepare(
        `select count(*) as flushes, coalesce(sum(size_bytes), 0) as size,
                coalesce(sum(envelope_count), 0) as envelopes from flushes`,
      )
      .get() as { flushes: number; size: number; envelopes: number };
    this.#flushCount = row.flushes;
    this.#sizeBytes = row.size;
    this.#commitBatchCount = row.envelopes;
  }

  #shrink(): void {
    const pages = this.#database.prepare('pragma page_count').get()?.['page_count'] as number;
    if (pages > EMPTY_PAGES_MAX) this.#database.exec('vacuum; pragma wal_checkpoint(truncate)');
  }
}

/** The file's own id first. */
const readIdentities = (database: DatabaseSync): string[] =>
  database
    .prepare('select id from identities order by rowid')
    .all()
    .map((row) => row['id'] as string);

/**
 * Opens a file of the disk buffer that nobody else holds, with everything that earlier processes left.
 *
 * @throws AppError CONFIG_INVALID where the folder cannot be written.
 * @throws AppError SPILL_UNREADABLE where a file is damaged: it holds calls that were acknowledged.
 */
export function openDiskBuffer({ directory, name, sizeBytesMax }: DiskBufferOptions): DiskBuffer {
  const stem = encodeURIComponent(name);
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
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
    const diskBuffer = new DiskBuffer(database, sizeBytesMax);
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
      `${directory} (INTAKE_SPILL_DIRECTORY) cannot be used: ${String(cause)}`,
      { cause },
    );
  }
}

/** Undefined where another process holds it. */
function lockFile(file: string): DatabaseSync | undefined {
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
    `${file} cannot be read (${found}). It may hold calls that were acknowledged. Move it, its -wal ` +
      `beside it, to another folder and start again; what is left of it: sqlite3 <file> .recover`,
  );
