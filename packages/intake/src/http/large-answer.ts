/**
 * A large answer, written at the speed of its reader.
 *
 * `end` of uWebSockets.js copies all that the socket does not take at once, so a sender of small batches that reads no
 * answer had half a megabyte of memory for each. Here one piece is copied at a time, and the rest counts in the unread
 * answers of its workspace (`ServerState.unread`). uWebSockets.js cuts a reader that takes no byte for 10 s; a reader that takes a
 * byte now and then is cut when the answer is overdue.
 *
 * Used by `exchange.ts`.
 */
import type { ResponseWriter } from './write-head.ts';

/** A smaller answer is in the kernel's buffers at once, or nearly. */
export const LARGE_ANSWER_SIZE_BYTES_MIN = 65_536;
const PIECE_SIZE_BYTES = 65_536;
const READ_MS_MIN = 30_000;
/** Of the slowest connection that reads an answer to its end. */
const SIZE_BYTES_A_SECOND_MIN = 8_192;

/** Time in which a reader takes so many bytes. */
export const readMsMaxOf = (sizeBytes: number): number =>
  READ_MS_MIN + (1_000 * sizeBytes) / SIZE_BYTES_A_SECOND_MIN;

interface LargeAnswerPort {
  /** Called once, when the answer is written or its reader is gone. */
  readonly release: () => void;
  /** Ends the connection: the answer is overdue. */
  readonly cut: () => void;
}

export class LargeAnswer {
  readonly #res: ResponseWriter;
  readonly #body: Buffer;
  readonly #port: LargeAnswerPort;
  #writtenSizeBytes = 0;
  #overdue: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(res: ResponseWriter, body: Buffer, port: LargeAnswerPort) {
    this.#res = res;
    this.#body = body;
    this.#port = port;
  }

  /** Called in a cork, once the head is written, with `Connection: close` if the connection ends with the answer. */
  write(): void {
    if (this.#writePieces()) return;
    this.#overdue = setTimeout(this.#port.cut, readMsMaxOf(this.#body.length)).unref();
    this.#res.onWritable(() => {
      this.#res.cork(() => this.#writePieces());
      return true;
    });
  }

  /** Its reader is gone, or the answer is over. */
  drop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#overdue);
    this.#port.release();
  }

  /** True if the answer is written whole. */
  #writePieces(): boolean {
    while (!this.#isOver && this.#writtenSizeBytes < this.#body.length) {
      const end = this.#writtenSizeBytes + PIECE_SIZE_BYTES;
      const piece = this.#body.subarray(this.#writtenSizeBytes, end);
      this.#writtenSizeBytes += piece.length;
      if (!this.#res.write(piece)) return false;
    }
    if (!this.#isOver) {
      this.drop();
      // Not as an end that closes: uWebSockets.js would write `Connection: close` between the chunks.
      this.#res.end('', false);
    }
    return true;
  }
}
