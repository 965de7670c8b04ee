/**
 * Memory for the pieces of large bodies and streams, used again.
 *
 * New blocks would wait for the garbage collector. It lets 64 MB of them pile up and takes 9 ms to find them.
 *
 * Used by `http/exchange.ts` and `stream/held-bytes.ts`.
 */
import { LARGE_PIECE_SIZE_BYTES } from './body-pieces.ts';

/** So long after the last use, half of the free blocks go to the collector, and then half of the others. */
const TRIM_INTERVAL_MS = 250;

export class PieceBlocks {
  readonly #freeCountMax: number;
  #free: Uint8Array[] = [];
  #trimming: NodeJS.Timeout | undefined;

  /** @param freeSizeBytesMax - as much is kept for the next use. */
  constructor(freeSizeBytesMax: number) {
    this.#freeCountMax = Math.floor(freeSizeBytesMax / LARGE_PIECE_SIZE_BYTES);
  }

  /** @returns a block of `LARGE_PIECE_SIZE_BYTES` with any content. */
  take(): Uint8Array {
    return this.#free.pop() ?? new Uint8Array(LARGE_PIECE_SIZE_BYTES);
  }

  /** @param bytes - have been read. Pieces of another size are left to the collector. */
  release({ buffer }: Uint8Array): void {
    if (buffer.byteLength !== LARGE_PIECE_SIZE_BYTES) return;
    if (this.#free.length >= this.#freeCountMax) return;
    this.#free.push(new Uint8Array(buffer));
    if (this.#trimming === undefined)
      this.#trimming = setTimeout(() => this.#trim(), TRIM_INTERVAL_MS).unref();
    else this.#trimming.refresh();
  }

  #trim(): void {
    this.#free = this.#free.slice(0, this.#free.length >> 1);
    if (this.#free.length > 0) this.#trimming?.refresh();
    else this.#trimming = undefined;
  }
}
