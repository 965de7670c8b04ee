/**
 * Bytes of streams that have come and are not read yet, of one process.
 *
 * A paused socket brings more: uWebSockets.js goes on reading for as long as it fills its buffer of 512 KB, so a sender that is
 * faster than the copy of its bytes fills the memory in one turn of the event loop. Nine senders of plain blank lines on
 * the same machine took 1 GB. Only an end of the connection stops that reading.
 *
 * Used by `stream-exchange.ts` and `stream-bytes.ts`.
 */
const MEBIBYTE = 1_048_576;

/** What the pieces of one stream take of it. */
export interface HeldByStream {
  /** @returns false if the connection is to be cut; then nothing was taken. */
  readonly take: (sizeBytes: number) => boolean;
  readonly release: (sizeBytes: number) => void;
}

export class HeldBytes {
  readonly #totalSizeBytesMax: number;
  readonly #ownSizeBytesMin: number;
  #totalSizeBytes = 0;

  /**
   * @param totalSizeBytesMax - of all streams.
   * @param ownSizeBytesMin - a stream that holds no more goes on: the kernel keeps up to 6 MB of a connection, which come at once.
   */
  constructor(totalSizeBytesMax = 64 * MEBIBYTE, ownSizeBytesMin = 8 * MEBIBYTE) {
    this.#totalSizeBytesMax = totalSizeBytesMax;
    this.#ownSizeBytesMin = ownSizeBytesMin;
  }

  get totalSizeBytes(): number {
    return this.#totalSizeBytes;
  }

  /** Of a stream that begins. */
  open(): HeldByStream {
    let ownSizeBytes = 0;
    return {
      take: (sizeBytes) => {
        if (
          ownSizeBytes + sizeBytes > this.#ownSizeBytesMin &&
          this.#totalSizeBytes + sizeBytes > this.#totalSizeBytesMax
        )
          return false;
        ownSizeBytes += sizeBytes;
        this.#totalSizeBytes += sizeBytes;
        return true;
      },
      release: (sizeBytes) => {
        ownSizeBytes -= sizeBytes;
        this.#totalSizeBytes -= sizeBytes;
      },
    };
  }
}
