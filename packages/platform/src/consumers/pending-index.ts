/**
 * Index of pending commit batches of all shards, by their keys. It keeps the order in which intakes added them. A
 * worker asks it before it applies a batch, so that no call overtakes an earlier call about the same person in another
 * shard.
 *
 * The broker keeps the log of added batches (`pending-log.ts`); this is one process's copy of its part up to the batch in
 * progress. A copy can name a batch that another worker has applied. So the answer is "perhaps": the worker asks Postgres,
 * whose claims are exact, and updates the index.
 *
 * It trades memory for round trips: four bytes a key and an entry of a map, for the batches between the slowest shard and
 * the batch in progress. The first question fills the map. While only events wait there is no question.
 * Before: `queue-processors.ts`. After: `worker/src/events/process-commit-batch.ts`.
 */
import type { LoggedBatch, PendingLog } from '../queue/pending-log.ts';

export interface PendingBatch extends LoggedBatch {
  /** Its place among the batches that this process has read. */
  readonly place: number;
  /** Milliseconds, by the process' clock. */
  readonly readAtMs: number;
  /** The same, by {@link PendingIndexOptions.answeredMs} of its shard. */
  readonly readAtAnsweredMs: number;
  /** Further entries of it in the log: it was added again while it was queued. */
  readonly otherLogIds: string[];
}

export interface PendingIndexOptions {
  /** Milliseconds, of a clock that is never set. */
  readonly now: () => number;
  /** Milliseconds in which the broker has answered about the queue of a shard. */
  readonly answeredMs: (shard: number) => number;
}

export interface ForgottenBatches {
  readonly batches: readonly PendingBatch[];
  end(): void;
}

const READ_COUNT = 500;

export class PendingIndex {
  readonly #log: PendingLog;
  readonly #options: PendingIndexOptions;
  /** By id, in the order of the log. */
  readonly #batches = new Map<string, PendingBatch>();
  /** Batches whose order matters, in the order of the log. */
  readonly #ordered = new Set<PendingBatch>();
  /** By hash as a signed integer, which V8 keeps without an object. */
  readonly #byKey = new Map<number, PendingBatch | PendingBatch[]>();
  /** Those whose keys are not in `#byKey` yet. */
  readonly #unindexed = new Set<PendingBatch>();
  /** Logged, and in no queue until they are logged again. */
  readonly #leftOut = new Set<PendingBatch>();
  #lastLogId: string | undefined;
  /** The flush of which there may be more parts behind the last entry that was read. */
  #cutFlushId: string | undefined;
  #readCount = 0;
  /** Of batches that are forgotten here. */
  readonly #refusedLogIds: string[] = [];
  #reading: Promise<boolean> | undefined;
  readonly #waiters = new Set<() => void>();
  readonly #forgottenLists = new Set<PendingBatch[]>();

  constructor(log: PendingLog, options: PendingIndexOptions) {
    this.#log = log;
    this.#options = options;
  }

  /** How many batches it holds. */
  get size(): number {
    return this.#batches.size;
  }

  /**
   * Reads the log up to a batch and the other parts of its flush.
   *
   * @returns the batch; `undefined` if the log has no batch of that id, as of an intake that keeps no log.
   * @throws Error of the broker.
   */
  async find(id: string): Promise<PendingBatch | undefined> {
    while (!this.#hasWholeFlushOf(id)) {
      // A read that another shard began may have begun before the batch was added.
      if (this.#reading) await this.#reading;
      else if (!(await this.#readMore())) break;
    }
    return this.#batches.get(id);
  }

  /** Reads the log to its end. @returns the place of the last batch that was ever read; -1 before the first. */
  async lastPlace(): Promise<number> {
    // A read that another one began may have begun before the last batch was added.
    if (this.#reading) await this.#reading;
    while (await this.#readMore());
    return this.#readCount - 1;
  }

  /** Batches up to a place, that one included, that name one of the keys and may not be applied yet. */
  naming(keys: Iterable<number>, placeMax: number): Set<PendingBatch> {
    const found = new Set<PendingBatch>();
    for (const key of keys)
      for (const batch of this.#named(key))
        if (batch.place <= placeMax && !this.#leftOut.has(batch)) found.add(batch);
    return found;
  }

  #hasWholeFlushOf(id: string): boolean {
    const batch = this.#batches.get(id);
    if (batch === undefined) return false;
    return batch.flushId === undefined || batch.flushId !== this.#cutFlushId;
  }

  /**
   * Other batches that name one of the keys, and were added before one of `batches` or are parts of its flush. Each key is
   * looked up once: a look-up for each batch was a twentieth of the worker's time.
   *
   * @param keys - hashes; one may occur twice.
   * @param except - hashes that do not count, as signed integers.
   */
  earlier(
    batches: readonly PendingBatch[],
    keys: Iterable<number>,
    except: ReadonlySet<number> = NO_KEYS,
  ): Set<PendingBatch> {
    const found = new Set<PendingBatch>();
    let lastPlace = -1;
    const flushIds = new Set<string>();
    for (const { place, flushId } of batches) {
      if (place > lastPlace) lastPlace = place;
      if (flushId !== undefined) flushIds.add(flushId);
    }
    // Under load a key is in several batches, and a batch has hundreds of keys: each batch is looked at once.
    const considered = new Set<PendingBatch>(batches);
    const consider = (other: PendingBatch): void => {
      if (considered.has(other)) return;
      considered.add(other);
      const { place, flushId } = other;
      if (this.#leftOut.has(other)) return;
      if (place < lastPlace || (flushId !== undefined && flushIds.has(flushId))) found.add(other);
    };
    this.#indexKeys();
    for (const key of keys) {
      const named = this.#byKey.get(key | 0);
      if (named === undefined || except.has(key | 0)) continue;
      if (Array.isArray(named)) named.forEach(consider);
      else consider(named);
    }
    return found;
  }

  /** True if another batch was added before, or with the same flush, and may not be applied yet. */
  hasEarlier(batch: PendingBatch): boolean {
    return hasEarlier(this.#batches.values(), batch);
  }

  /** The same of batches that hold anything of which the order matters. */
  hasEarlierOrdered(batch: PendingBatch): boolean {
    return hasEarlier(this.#ordered, batch);
  }

  /** False once it is known to be applied. */
  isPending(batch: PendingBatch): boolean {
    return this.#batches.get(batch.id) === batch;
  }

  /**
   * No batch waits for these until they are logged again: they are in no queue. They keep their places. An intake that adds
   * them late adds them and the ones behind them once more, and the first places of those may stand.
   */
  leaveOut(batches: readonly PendingBatch[]): void {
    for (const batch of batches) if (this.isPending(batch)) this.#leftOut.add(batch);
  }

  /** Forgets here batches that another process applied. That process removes them from the broker's log. */
  forget(batches: readonly PendingBatch[]): void {
    for (const batch of batches) if (this.isPending(batch)) this.#forget(batch);
  }

  /**
   * Lists the batches that are forgotten from now on, until `end`. A look-up in Postgres that began before such a batch was
   * committed has not seen its effect, so the batch still counts as pending for that look-up.
   */
  watchForgotten(): ForgottenBatches {
    const batches: PendingBatch[] = [];
    this.#forgottenLists.add(batches);
    return { batches, end: () => void this.#forgottenLists.delete(batches) };
  }

  /** Resolves when a batch is forgotten, and after `durationMs` at the latest. */
  changed(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(end);
        resolve();
      };
      const timer = setTimeout(end, durationMs);
      this.#waiters.add(end);
    });
  }

  /** The oldest batches, if they were read before a time of the process' clock. */
  readBefore(atMs: number, count: number): PendingBatch[] {
    const found: PendingBatch[] = [];
    for (const batch of this.#batches.values()) {
      if (batch.readAtMs >= atMs || found.length === count) break;
      found.push(batch);
    }
    return found;
  }

  /** The batches are applied: forgets them here and in the broker's log. */
  async remove(batches: readonly PendingBatch[]): Promise<void> {
    // One that was forgotten meanwhile, because another shard of this process found it applied, is still in the log.
    this.forget(batches);
    const logIds = batches.flatMap(({ logId, otherLogIds }) => [logId, ...otherLogIds]);
    if (logIds.length > 0) await this.#log.remove(logIds);
  }

  /**
   * As `remove`, for batches whose jobs end next: the broker is not waited for, so that it writes its disk once for both. Removals
   * that the broker refuses go with the next ones. If the process ends before, readers find an entry without a job, as of a worker that
   * died.
   */
  removeApplied(batches: readonly PendingBatch[]): void {
    this.forget(batches);
    const logIds = this.#refusedLogIds.splice(0);
    for (const { logId, otherLogIds } of batches) logIds.push(logId, ...otherLogIds);
    if (logIds.length === 0) return;
    this.#log.remove(logIds).catch(() => void this.#refusedLogIds.push(...logIds));
  }

  /** Begins to read the log unless a read is under way. A worker that takes a job will ask for its batch. */
  readAhead(): void {
    // The next `find` meets the same error.
    if (!this.#reading) this.#readMore().catch(() => undefined);
  }

  /** @returns false at the end of the log. */
  #readMore(): Promise<boolean> {
    if (this.#reading) return this.#reading;
    const read = async (): Promise<boolean> => {
      const { entries, firstLogId } = await this.#log.read(this.#lastLogId, READ_COUNT);
      for (const entry of entries) this.#add(entry);
      // The parts of a flush were added together and follow each other: only the bound of a read can cut them.
      this.#cutFlushId = entries.length < READ_COUNT ? undefined : entries.at(-1)?.flushId;
      for (const batch of this.#batches.values()) {
        if (firstLogId !== undefined && !isBefore(batch.logId, firstLogId)) break;
        this.#forget(batch);
      }
      return entries.length > 0;
    };
    this.#reading = read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  #add(entry: LoggedBatch): void {
    this.#lastLogId = entry.logId;
    // A batch of unknown outcome that was added again has the place of its first copy.
    const known = this.#batches.get(entry.id);
    if (known) {
      known.otherLogIds.push(entry.logId);
      this.#leftOut.delete(known);
      return;
    }
    const batch: PendingBatch = {
      ...entry,
      place: this.#readCount++,
      readAtMs: this.#options.now(),
      readAtAnsweredMs: this.#options.answeredMs(entry.shard),
      otherLogIds: [],
    };
    this.#batches.set(batch.id, batch);
    if (!batch.isOrderFree) this.#ordered.add(batch);
    this.#unindexed.add(batch);
  }

  #indexKeys(): void {
    if (this.#unindexed.size === 0) return;
    for (const batch of this.#unindexed) this.#addKeysOf(batch);
    this.#unindexed.clear();
  }

  #named(key: number): readonly PendingBatch[] {
    this.#indexKeys();
    const named = this.#byKey.get(key | 0);
    if (named === undefined) return NONE;
    return Array.isArray(named) ? named : [named];
  }

  #addKeysOf(batch: PendingBatch): void {
    for (const hash of batch.keys) {
      const key = hash | 0;
      const others = this.#byKey.get(key);
      if (others === undefined) this.#byKey.set(key, batch);
      else if (Array.isArray(others)) others.push(batch);
      else this.#byKey.set(key, [others, batch]);
    }
  }

  #forget(batch: PendingBatch): void {
    this.#batches.delete(batch.id);
    this.#ordered.delete(batch);
    this.#leftOut.delete(batch);
    if (!this.#unindexed.delete(batch)) this.#removeKeysOf(batch);
    for (const list of this.#forgottenLists) list.push(batch);
    for (const end of this.#waiters) end();
  }

  #removeKeysOf(batch: PendingBatch): void {
    for (const hash of batch.keys) {
      const key = hash | 0;
      const others = this.#byKey.get(key);
      if (!Array.isArray(others)) this.#byKey.delete(key);
      else if (others.length > 1) others.splice(others.indexOf(batch), 1);
      else this.#byKey.delete(key);
    }
  }
}

const NONE: readonly PendingBatch[] = [];
const NO_KEYS: ReadonlySet<number> = new Set();

/** @param batches - in the order of the log. */
function hasEarlier(batches: Iterable<PendingBatch>, batch: PendingBatch): boolean {
  for (const other of batches) {
    const isOfFlush = other.flushId !== undefined && other.flushId === batch.flushId;
    if (other.place > batch.place && !isOfFlush) return false;
    if (other !== batch) return true;
  }
  return false;
}

/** Log ids are `<number>-<number>`, as in a stream of Redis. */
function isBefore(one: string, other: string): boolean {
  const [high = '', low = ''] = one.split('-');
  const [otherHigh = '', otherLow = ''] = other.split('-');
  const difference = Number(high) - Number(otherHigh);
  return difference === 0 ? Number(low) < Number(otherLow) : difference < 0;
}
