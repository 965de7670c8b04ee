/**
 * Bytes of streams that have come and are not taken yet. They decide which streams are read, and which one is cut.
 *
 * ```
 *   0 ────────────── 8 MB ─────────────── 16 MB ────────────── 32 MB ─────────────── 48 MB
 *   |  a stream of     |                    |  a workspace       |                     |  the largest stream
 *   |  small chunks is |  an empty stream   |  below its share   |  one that waits     |  of the largest
 *   |  read ahead      |  is read           |  is read           |  for 3 s is read    |  workspace is cut
 * ```
 * One read brings megabytes. So many workspaces below their shares stop at 32 MB, far below the cut.
 * Used by `stream-exchange.ts` and `stream-bytes.ts`.
 */
import { shareOf } from '@sluice/domain/values/fair-share';
import { FairQueue } from '../http/fair-queue.ts';
import { PieceBlocks } from '../body/piece-blocks.ts';

const MEBIBYTE = 1_048_576;
/** Streams that are hardly taken keep the others waiting for so long. */
const PATIENCE_MS = 3_000;
/** A second, of all streams: they are hardly taken if less is released. */
const PROGRESS_SIZE_BYTES = 2 * MEBIBYTE;
const LOOK_INTERVAL_MS = 1_000;
/** Of the bytes below which each empty stream is read. */
const SHARE_PERCENT = 25;

interface HeldBytesBounds {
  /** Bytes of all streams. Beyond it a stream is cut. */
  readonly cutAboveSizeBytes: number;
  /** Bytes of all streams. Below it each empty stream of a workspace below its share is read. */
  readonly readShareBelowSizeBytes: number;
  /** Bytes of all streams. Below it each empty stream is read. */
  readonly readBelowSizeBytes: number;
  /** Bytes of all streams. Below it a stream of small chunks is read although it holds some. */
  readonly readAheadBelowSizeBytes: number;
}

const BOUNDS: HeldBytesBounds = {
  cutAboveSizeBytes: 48 * MEBIBYTE,
  readShareBelowSizeBytes: 32 * MEBIBYTE,
  readBelowSizeBytes: 16 * MEBIBYTE,
  readAheadBelowSizeBytes: 8 * MEBIBYTE,
};

/** Share of one stream's pieces. */
export interface HeldByStream {
  readonly blocks: PieceBlocks;
  /** @returns false if the connection is to be cut; then the bytes were not taken. */
  readonly take: (sizeBytes: number) => boolean;
  readonly release: (sizeBytes: number) => void;
  /** Calls the stream's `read` when it may be read: at once, or when others have released enough. */
  readonly ask: () => void;
  readonly mayReadAhead: () => boolean;
  /** The connection has ended. The caller releases its bytes. */
  readonly close: () => void;
}

/** A stream, as its share of the memory sees it. */
export interface Reading {
  /** The connection may be read from now on. */
  readonly read: () => void;
  /** The connection must not be read until `read`. Called between two calls of `read`, or before the first. */
  readonly holdBack: () => void;
  /** Ends the connection. The bytes of the stream are released before that returns. */
  readonly cut: () => void;
}

/** A workspace with open streams. */
interface Owner {
  readonly id: number;
  sizeBytes: number;
  readonly open: Set<Holder>;
  readonly holding: Set<Holder>;
  readonly reading: Set<Holder>;
}

interface Holder {
  readonly owner: Owner;
  readonly stream: Reading;
  sizeBytes: number;
  waitsSinceMs: number;
}

/**
 * A paused socket brings more: uWebSockets.js goes on reading for as long as it fills its buffer of 512 KB. So all that the
 * kernel keeps of a connection comes at once. A sender on the same machine that is faster than the copy of its bytes would
 * fill the memory in one turn of the event loop. Only an end of the connection stops that reading. A pause keeps the bytes of
 * another connection, so one stream at a time comes above 16 MB, beside the streams of workspaces below their share,
 * and one alone above 32 MB.
 */
export class HeldBytes {
  readonly #bounds: HeldBytesBounds;
  readonly #monotonicNow: () => number;
  readonly #blocks: PieceBlocks;
  readonly #shareSizeBytes: number;
  readonly #owners = new Map<number, Owner>();
  /** By workspace; each in the order of its calls. */
  readonly #waiting = new FairQueue<Holder>();
  #totalSizeBytes = 0;
  #looking: NodeJS.Timeout | undefined;
  /** Since the last look. */
  #releasedSizeBytes = 0;

  /** @param monotonicNow - milliseconds that never go back. */
  constructor(monotonicNow: () => number, bounds = BOUNDS) {
    this.#bounds = bounds;
    const capacity = bounds.readBelowSizeBytes;
    this.#shareSizeBytes = shareOf({ capacity, sharePercent: SHARE_PERCENT });
    this.#monotonicNow = monotonicNow;
    this.#blocks = new PieceBlocks(bounds.cutAboveSizeBytes);
  }

  get totalSizeBytes(): number {
    return this.#totalSizeBytes;
  }

  /**
   * Of a stream that begins, and is read.
   *
   * @param ownerId - its workspace; 0 without valid credentials.
   */
  open(ownerId: number, stream: Reading): HeldByStream {
    const owner = this.#ownerOf(ownerId);
    const holder: Holder = { owner, stream, sizeBytes: 0, waitsSinceMs: 0 };
    owner.open.add(holder);
    owner.reading.add(holder);
    return {
      blocks: this.#blocks,
      take: (sizeBytes) => this.#take(holder, sizeBytes),
      release: (sizeBytes) => this.#release(holder, sizeBytes),
      ask: () => {
        holder.waitsSinceMs = this.#monotonicNow();
        this.#waiting.add(owner.id, holder);
        this.#letIn();
      },
      mayReadAhead: () => this.#totalSizeBytes < this.#bounds.readAheadBelowSizeBytes,
      close: () => this.#close(holder),
    };
  }

  #ownerOf(id: number): Owner {
    let owner = this.#owners.get(id);
    if (owner === undefined) {
      owner = { id, sizeBytes: 0, open: new Set(), holding: new Set(), reading: new Set() };
      this.#owners.set(id, owner);
    }
    return owner;
  }

  #close(holder: Holder): void {
    const { owner } = holder;
    this.#waiting.delete(owner.id, holder);
    owner.reading.delete(holder);
    if (owner.open.delete(holder) && owner.open.size === 0) this.#owners.delete(owner.id);
  }

  #take(holder: Holder, sizeBytes: number): boolean {
    while (this.#totalSizeBytes + sizeBytes > this.#bounds.cutAboveSizeBytes) {
      const most = this.#largest(holder);
      if (most === holder) return false;
      most.owner.holding.delete(most);
      most.stream.cut();
    }
    const { owner } = holder;
    if (holder.sizeBytes === 0) owner.holding.add(holder);
    holder.sizeBytes += sizeBytes;
    owner.sizeBytes += sizeBytes;
    this.#totalSizeBytes += sizeBytes;
    if (this.#totalSizeBytes >= this.#bounds.readBelowSizeBytes) this.#holdBackOthers(holder);
    return true;
  }

  #largest(holder: Holder): Holder {
    let { owner } = holder;
    for (const other of this.#owners.values()) if (other.sizeBytes > owner.sizeBytes) owner = other;
    let most = owner === holder.owner ? holder : undefined;
    for (const other of owner.holding)
      if (most === undefined || other.sizeBytes > most.sizeBytes) most = other;
    return most ?? holder;
  }

  #holdBackOthers(holder: Holder): void {
    for (const owner of this.#owners.values()) {
      if (this.#mayReadShare(owner)) continue;
      for (const other of owner.reading)
        if (other !== holder) {
          owner.reading.delete(other);
          other.stream.holdBack();
        }
    }
  }

  #mayReadShare({ sizeBytes }: Owner): boolean {
    const isBelowBound = this.#totalSizeBytes < this.#bounds.readShareBelowSizeBytes;
    return isBelowBound && sizeBytes < this.#shareSizeBytes;
  }

  #release(holder: Holder, sizeBytes: number): void {
    const { owner } = holder;
    holder.sizeBytes -= sizeBytes;
    owner.sizeBytes -= sizeBytes;
    this.#totalSizeBytes -= sizeBytes;
    this.#releasedSizeBytes += sizeBytes;
    if (holder.sizeBytes === 0) owner.holding.delete(holder);
    if (!this.#waiting.isEmpty) this.#letIn();
  }

  #letIn(): void {
    const mayBeRead = (_: number, { owner }: Holder): boolean =>
      this.#totalSizeBytes < this.#bounds.readBelowSizeBytes || this.#mayReadShare(owner);
    for (let holder = this.#waiting.take(mayBeRead); holder !== undefined;) {
      this.#read(holder);
      holder = this.#waiting.take(mayBeRead);
    }
    if (!this.#waiting.isEmpty) this.#lookLater();
  }

  #read(holder: Holder): void {
    const { owner } = holder;
    owner.reading.add(holder);
    // In the order of reads: streams that are held back wait again in that order, so each gets its turn.
    if (owner.open.has(holder)) {
      this.#owners.delete(owner.id);
      this.#owners.set(owner.id, owner);
    }
    holder.stream.read();
  }

  #lookLater(): void {
    if (this.#looking !== undefined) return;
    this.#releasedSizeBytes = 0;
    this.#looking = setTimeout(() => this.#look(), LOOK_INTERVAL_MS).unref();
  }

  /** Lets one in that has waited for long, if the held bytes are hardly taken. */
  #look(): void {
    this.#looking = undefined;
    const isSlow = this.#releasedSizeBytes < (PROGRESS_SIZE_BYTES * LOOK_INTERVAL_MS) / 1_000;
    const beforeMs = this.#monotonicNow() - PATIENCE_MS;
    const first = isSlow
      ? this.#waiting.take((_, { waitsSinceMs }) => waitsSinceMs <= beforeMs)
      : undefined;
    if (first !== undefined) this.#read(first);
    if (!this.#waiting.isEmpty) this.#lookLater();
  }
}
