/**
 * Shares of workspaces in the local disk buffer.
 *
 * The last share is kept for workspaces below theirs: in many hours of an outage one workspace could otherwise take
 * all, and the calls of the others would be refused.
 *
 * A flush has calls of many workspaces. Its bytes on disk are theirs in the proportion of their requests. They stand
 * beside the flush, so that the next process knows them too. Flushes of an earlier version have no owner (workspace 0).
 *
 * Before and after: `disk-buffer.ts`.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { mayTake } from '@sluice/domain/values/fair-share';

/** The bound of a disk buffer, and its shares. */
export interface DiskBufferBound {
  /** Of commit batches as JSON; the file is a little larger. */
  readonly sizeBytesMax: number;
  /** The part of it that each workspace may always have. */
  readonly sharePercent: number;
  /** No other workspace could want any. */
  readonly isAlone: () => boolean;
}

/** Earlier versions leave rows of flushes that they have deleted. */
export const SHARES_SCHEMA = `
  create table if not exists flush_workspaces (
    position integer not null,
    environment_id integer not null,
    size_bytes integer not null,
    primary key (position, environment_id)
  ) strict, without rowid;
  delete from flush_workspaces where position not in (select position from flushes);`;

const NOBODY = 0;

export class DiskBufferShares {
  readonly #bound: DiskBufferBound;
  readonly #insert: StatementSync;
  readonly #list: StatementSync;
  readonly #delete: StatementSync;
  readonly #sum: StatementSync;
  /** By workspace; a workspace with 0 is absent. */
  #held = new Map<number, number>();
  /** Bytes on disk for each byte of a request, in the last flush. */
  #sizeRatio = 1;

  constructor(database: DatabaseSync, bound: DiskBufferBound) {
    this.#bound = bound;
    this.#insert = database.prepare('insert or replace into flush_workspaces values (?, ?, ?)');
    this.#list = database.prepare(
      'select environment_id, size_bytes from flush_workspaces where position = ?',
    );
    this.#delete = database.prepare('delete from flush_workspaces where position = ?');
    this.#sum = database.prepare(
      'select environment_id, sum(size_bytes) as size_bytes from flush_workspaces group by environment_id',
    );
  }

  heldBy(environmentId: number): number {
    return this.#held.get(environmentId) ?? 0;
  }

  /**
   * True if the requests of a workspace that wait for a flush would find capacity.
   *
   * @param ownSizeBytes - of its requests.
   * @param waitingSizeBytes - of all requests.
   * @param keptSizeBytes - of the flushes in the disk buffer.
   */
  hasCapacityFor(
    environmentId: number,
    ownSizeBytes: number,
    waitingSizeBytes: number,
    keptSizeBytes: number,
  ): boolean {
    const { sizeBytesMax: capacity, sharePercent, isAlone } = this.#bound;
    const size = ownSizeBytes * this.#sizeRatio;
    return mayTake(
      { capacity, sharePercent },
      {
        size,
        ownSize: this.heldBy(environmentId),
        totalSize: keptSizeBytes + waitingSizeBytes * this.#sizeRatio - size,
        isAlone: isAlone(),
        // Kept flushes leave in their order, also after a refusal of another workspace.
        leastRefusedSize: Infinity,
      },
    );
  }

  /**
   * Records the shares of a written flush, in its transaction.
   *
   * @param requestSizes - of its requests, by workspace.
   * @returns the shares, for {@link added} once it is committed.
   */
  add(
    position: number,
    sizeBytes: number,
    requestSizes: ReadonlyMap<number, number>,
  ): ReadonlyMap<number, number> {
    const requestSizeBytes = [...requestSizes.values()].reduce((sum, size) => sum + size, 0);
    const owners = requestSizeBytes === 0 ? new Map([[NOBODY, 1]]) : requestSizes;
    const whole = Math.max(1, requestSizeBytes);
    const parts = new Map<number, number>();
    let before = 0;
    let assigned = 0;
    for (const [environmentId, size] of owners) {
      before += size;
      // Of the sum, so that all of it is somebody's.
      const part = Math.round((sizeBytes * before) / whole) - assigned;
      assigned += part;
      if (part === 0) continue;
      this.#insert.run(position, environmentId, part);
      parts.set(environmentId, part);
    }
    if (requestSizeBytes > 0) this.#sizeRatio = sizeBytes / requestSizeBytes;
    return parts;
  }

  /** The flush of {@link add} is on disk. */
  added(parts: ReadonlyMap<number, number>): void {
    for (const [environmentId, part] of parts) this.#change(environmentId, part);
  }

  /** A flush is deleted. In the transaction of that. */
  remove(position: number, sizeBytes: number): void {
    let restSizeBytes = sizeBytes;
    for (const row of this.#list.all(position)) {
      const part = row['size_bytes'] as number;
      this.#change(row['environment_id'] as number, -part);
      restSizeBytes -= part;
    }
    this.#delete.run(position);
    this.#change(NOBODY, -restSizeBytes);
  }

  /** A flush came from another file, where it had another position. In the transaction of that; `count` afterwards. */
  copy(from: DatabaseSync, position: number, ownPosition: number): void {
    const rows = from
      .prepare('select environment_id, size_bytes from flush_workspaces where position = ?')
      .all(position);
    for (const row of rows)
      this.#insert.run(ownPosition, row['environment_id'] as number, row['size_bytes'] as number);
  }

  /** Counts the stored flushes anew. */
  count(keptSizeBytes: number): void {
    this.#held = new Map();
    let restSizeBytes = keptSizeBytes;
    for (const row of this.#sum.all()) {
      const part = row['size_bytes'] as number;
      this.#change(row['environment_id'] as number, part);
      restSizeBytes -= part;
    }
    this.#change(NOBODY, restSizeBytes);
  }

  #change(environmentId: number, sizeBytes: number): void {
    const heldSizeBytes = this.heldBy(environmentId) + sizeBytes;
    if (heldSizeBytes > 0) this.#held.set(environmentId, heldSizeBytes);
    else this.#held.delete(environmentId);
  }
}
