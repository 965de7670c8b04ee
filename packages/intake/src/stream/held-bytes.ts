/**
 * Bytes of streams that have come and are not taken yet.
 *
 * They decide which streams of a process are read, and which one is cut.
 *
 * ```
 *   0 ────────────── 8 MB ───────────────── 16 MB ───────────────────── 48 MB
 *   |  a stream of     |                      |                           |
 *   |  small chunks is |  a stream that holds |  none is read, or one     |  the stream that holds
 *   |  read ahead      |  nothing is read     |  that waits for 3 s       |  most is cut
 * ```
 * Used by `stream-exchange.ts` and `stream-bytes.ts`.
 */
import { PieceBlocks } from './piece-blocks.ts';

const MEBIBYTE = 1_048_576;
/** Streams that are hardly taken keep the others waiting for so long. */
const PATIENCE_MS = 3_000;
/** A second, of all streams: they are hardly taken if less is released. */
const PROGRESS_SIZE_BYTES = 2 * MEBIBYTE;
const LOOK_INTERVAL_MS = 1_000;

interface HeldBytesBounds {
  /** Bytes of all streams. Beyond it the stream that holds most is cut. */
  readonly cutAboveSizeBytes: number;
  /** Bytes of all streams. Below it each empty stream is read. */
  readonly readBelowSizeBytes: number;
  /** Bytes of all streams. Below it a stream of small chunks is read although it holds some. */
  readonly readAheadBelowSizeBytes: number;
}

const BOUNDS: HeldBytesBounds = {
  cutAboveSizeBytes: 48 * MEBIBYTE,
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
interface Reading {
  /** The connection may be read from now on. */
  readonly read: () => void;
  /** The connection must not be read until `read`. Called between two calls of `read`, or before the first. */
  readonly holdBack: () => void;
  /** Ends the connection. The bytes of the stream are released before that returns. */
  readonly cut: () => void;
}

interface Holder {
  readonly stream: Reading;
  sizeBytes: number;
  waitsSinceMs: number;
}

/**
 * A paused socket brings more: uWebSockets.js goes on reading for as long as it fills its buffer of 512 KB. So all that the
 * kernel keeps of a connection comes at once. A sender on the same machine that is faster than the copy of its bytes would
 * fill the memory in one turn of the event loop. Only an end of the connection stops that reading. A pause keeps the bytes of
 * another connection, so one stream at a time comes above 16 MB.
 */
export class HeldBytes {
  readonly #bounds: HeldBytesBounds;
  readonly #monotonicNow: () => number;
  readonly #blocks: PieceBlocks;
  readonly #holding = new Set<Holder>();
  readonly #reading = new Set<Holder>();
  /** In the order of their calls. */
  readonly #waiting = new Set<Holder>();
  #totalSizeBytes = 0;
  #looking: NodeJS.Timeout | undefined;
  /** Since the last look. */
  #releasedSizeBytes = 0;

  /** @param monotonicNow - milliseconds that never go back. */
  constructor(monotonicNow: () => number, bounds = BOUNDS) {
    this.#bounds = bounds;
    this.#monotonicNow = monotonicNow;
    this.#blocks = new PieceBlocks(bounds.cutAboveSizeBytes);
  }

  get totalSizeBytes(): number {
    return this.#totalSizeBytes;
  }

  /** Of a stream that begins, and is read. */
  open(stream: Reading): HeldByStream {
    const holder: Holder = { stream, sizeBytes: 0, waitsSinceMs: 0 };
    this.#reading.add(holder);
    return {
      blocks: this.#blocks,
      take: (sizeBytes) => this.#take(holder, sizeBytes),
      release: (sizeBytes) => this.#release(holder, sizeBytes),
      ask: () => {
        holder.waitsSinceMs = this.#monotonicNow();
        this.#waiting.add(holder);
        this.#letIn();
      },
      mayReadAhead: () => this.#totalSizeBytes < this.#bounds.readAheadBelowSizeBytes,
      close: () => {
        this.#waiting.delete(holder);
        this.#reading.delete(holder);
      },
    };
  }

  #take(holder: Holder, sizeBytes: number): boolean {
    while (this.#totalSizeBytes + sizeBytes > this.#bounds.cutAboveSizeBytes) {
      const most = this.#largest(holder);
      if (most === holder) return false;
      this.#holding.delete(most);
      most.stream.cut();
    }
    if (holder.sizeBytes === 0) this.#holding.add(holder);
    holder.sizeBytes += sizeBytes;
    this.#totalSizeBytes += sizeBytes;
    if (this.#totalSizeBytes >= this.#bounds.readBelowSizeBytes) this.#holdBackOthers(holder);
    return true;
  }

  #largest(holder: Holder): Holder {
    let most = holder;
    for (const other of this.#holding) if (other.sizeBytes > most.sizeBytes) most = other;
    return most;
  }

  #holdBackOthers(holder: Holder): void {
    for (const other of this.#reading)
      if (other !== holder) {
        this.#reading.delete(other);
        other.stream.holdBack();
      }
  }

  #release(holder: Holder, sizeBytes: number): void {
    holder.sizeBytes -= sizeBytes;
    this.#totalSizeBytes -= sizeBytes;
    this.#releasedSizeBytes += sizeBytes;
    if (holder.sizeBytes === 0) this.#holding.delete(holder);
    if (this.#waiting.size > 0) this.#letIn();
  }

  #letIn(): void {
    for (const holder of this.#waiting) {
      if (this.#totalSizeBytes >= this.#bounds.readBelowSizeBytes) break;
      this.#read(holder);
    }
    if (this.#waiting.size > 0) this.#lookLater();
  }

  #read(holder: Holder): void {
    this.#waiting.delete(holder);
    this.#reading.add(holder);
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
    const [first] = this.#waiting;
    const isSlow = this.#releasedSizeBytes < (PROGRESS_SIZE_BYTES * LOOK_INTERVAL_MS) / 1_000;
    if (first !== undefined && isSlow && this.#monotonicNow() - first.waitsSinceMs >= PATIENCE_MS)
      this.#read(first);
    if (this.#waiting.size > 0) this.#lookLater();
  }
}
