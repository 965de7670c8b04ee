/**
 * The local disk buffer: flushes that the broker could not take, in order.
 *
 * - On this machine's disk: SQLite, WAL, `synchronous=FULL`, one row a flush. An append is one statement, whole or not
 *   at all. `append` returns when the row is on disk. It blocks the process for one fsync; while the broker is away
 *   there is no other work.
 * - A file belongs to one process at a time, by SQLite's exclusive lock, which the operating system releases at any end
 *   of the process. A start takes the first free file and moves the flushes of other dead processes into it. Files are
 *   emptied, never removed: another process may be about to lock the very file. Their name has the database and the
 *   queue prefix: commit batches must not reach another installation in the same folder.
 * - Each flush has the time of its writing, by the broker's clock if known (`intake-lease.ts`), and goes to the broker
 *   in this order, which is the same for all intakes. A file has an id, by which the broker knows its possible content;
 *   a process that takes over a file's flushes takes over its id. Before and after: `batch-committer.ts`.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { readFlush, writeFlush } from '@sluice/platform/queue/staged-flushes';
import { DiskBufferShares, type DiskBufferBound } from './disk-buffer-shares.ts';

export interface BufferedFlush {
  readonly position: number;
  /** When it was written, by the broker's clock as intake knew it; milliseconds. */
  readonly writtenAtMs: number;
  readonly sizeBytes: number;
  readonly envelopes: readonly ShardCommitBatch[];
}

/** Pages that a file may keep once it is empty. */
const EMPTY_PAGES_MAX = 4_096;
/** Written for versions from before the broker took every flush whole, which read it. */
const IS_ATOMIC = 1;

const IN_ORDER = 'order by coalesce(written_at_ms, spilled_at_ms), position';
const WRITTEN_AT = 'coalesce(written_at_ms, spilled_at_ms)';

export class DiskBuffer {
  readonly #database: DatabaseSync;
  readonly #sizeBytesMax: number;
  readonly #shares: DiskBufferShares;
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

  constructor(database: DatabaseSync, bound: DiskBufferBound) {
    this.#database = database;
    this.#sizeBytesMax = bound.sizeBytesMax;
    this.#shares = new DiskBufferShares(database, bound);
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

  /**
   * True if the requests of a workspace that wait for a flush would find capacity here. While the buffer is empty,
   * flushes go to the broker: then they do.
   */
  hasCapacityFor(environmentId: number, ownSizeBytes: number, waitingSizeBytes: number): boolean {
    if (this.isEmpty) return true;
    return this.#shares.hasCapacityFor(
      environmentId,
      ownSizeBytes,
      waitingSizeBytes,
      this.#sizeBytes,
    );
  }

  /** Bytes of a workspace. */
  sizeBytesOf(environmentId: number): number {
    return this.#shares.heldBy(environmentId);
  }

  /** The id by which the broker knows the possible content of the file. */
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

  /** By this machine's clock, Unix milliseconds; undefined if it is empty. */
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
   * @param requestSizes - bytes of its requests, by workspace.
   * @param atMs - this machine's clock.
   * @param brokerAtMs - the broker's clock; absent if it is unknown.
   * @returns undefined if it would be over the limit; the flush was not written then.
   * @throws Error if the disk refuses it (full, broken); the flush was not written then.
   */
  append(
    commitBatches: readonly ShardCommitBatch[],
    requestSizes: ReadonlyMap<number, number>,
    atMs: number,
    brokerAtMs = atMs,
  ): BufferedFlush | undefined {
    const text = writeFlush(commitBatches);
    const sizeBytes = Buffer.byteLength(text);
    if (this.#sizeBytes + sizeBytes > this.#sizeBytesMax) return undefined;
    // This process' flushes keep their order, also if a clock jumps.
    const writtenAtMs = Math.max(brokerAtMs, this.#lastWrittenAtMs);
    const values = [
      sizeBytes,
      commitBatches.length,
      IS_ATOMIC,
      Math.round(atMs),
      text,
      writtenAtMs,
    ];
    const { position, parts } = this.#transact(() => {
      const inserted = Number(this.#insert.run(...values).lastInsertRowid);
      return { position: inserted, parts: this.#shares.add(inserted, sizeBytes, requestSizes) };
    });
    this.#shares.added(parts);
    this.#lastWrittenAtMs = writtenAtMs;
    this.#sizeBytes += sizeBytes;
    this.#commitBatchCount += commitBatches.length;
    this.#flushCount++;
    return { position, writtenAtMs, sizeBytes, envelopes: commitBatches };
  }

  /**
   * The oldest ones in order: at most `flushesMax`, and only as many as fit into `sizeBytesMax`, but two in any case,
   * if there are two.
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

  /**
   * Forgets flushes that `readOldest` or `append` gave, together. When the buffer is empty the disk gets its space
   * back.
   */
  deleteOldest(flushes: readonly BufferedFlush[]): void {
    this.#transact(() => {
      for (const { position, sizeBytes } of flushes) {
        this.#delete.run(position);
        this.#shares.remove(position, sizeBytes);
      }
    });
    // Not counted anew: that would read the whole file at each step.
    this.#flushCount -= flushes.length;
    for (const flush of flushes) {
      this.#sizeBytes -= flush.sizeBytes;
      this.#commitBatchCount -= flush.envelopes.length;
    }
    if (this.isEmpty) this.#shrink();
  }

  /**
   * Moves all flushes from a file without a holder to the end of this one. A crash on the way leaves second copies,
   * which the worker's claim drops.
   */
  takeOver(other: DatabaseSync): void {
    const rows = other.prepare(
      `select size_bytes, envelope_count, is_atomic, spilled_at_ms, envelopes, ${WRITTEN_AT} as written_at_ms, position
       from flushes ${IN_ORDER}`,
    );
    const addIdentity = this.#database.prepare('insert into identities (id) values (?)');
    this.#transact(() => {
      for (const { position, ...row } of rows.iterate()) {
        const values = Object.values(row) as (string | number)[];
        const ownPosition = Number(this.#insert.run(...values).lastInsertRowid);
        this.#shares.copy(other, position as number, ownPosition);
      }
      for (const id of readIdentities(other)) addIdentity.run(id);
    });
    other.exec(
      'begin immediate; delete from flushes; delete from flush_workspaces; delete from identities; commit',
    );
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
                coalesce(sum(envelope_count), 0) as envelopes, max(${WRITTEN_AT}) as at_ms from flushes`,
      )
      .get() as { flushes: number; size: number; envelopes: number; at_ms: number | null };
    this.#flushCount = row.flushes;
    this.#sizeBytes = row.size;
    this.#commitBatchCount = row.envelopes;
    // Also of the flushes taken over: a clock that was set back must not put a later call before them.
    this.#lastWrittenAtMs = row.at_ms ?? -Infinity;
    this.#shares.count(row.size);
  }

  /** Runs `work` whole or not at all. */
  #transact<Result>(work: () => Result): Result {
    this.#database.exec('begin immediate');
    try {
      const result = work();
      this.#database.exec('commit');
      return result;
    } catch (error) {
      // A disk that is full has rolled back already.
      if (this.#database.isTransaction) this.#database.exec('rollback');
      throw error;
    }
  }

  #shrink(): void {
    const pages = this.#database.prepare('pragma page_count').get()?.['page_count'] as number;
    if (pages > EMPTY_PAGES_MAX) this.#database.exec('vacuum; pragma wal_checkpoint(truncate)');
  }
}

/** The file's own id first. */
export const readIdentities = (database: DatabaseSync): string[] =>
  database
    .prepare('select id from identities order by rowid')
    .all()
    .map((row) => row['id'] as string);
