/**
 * Bytes in pieces of any size → whole lines, one after another.
 *
 * It uses constant memory: less than one line is kept between two pieces, and a line past the bound is skipped to its
 * end.
 *
 * Before: `stream-bytes.ts`. After: `take-stream.ts`.
 */

const NEWLINE = 0x0a;
const NO_BYTES = new Uint8Array();

/** Without meaning around a call. */
export const isWhiteSpace = (byte: number): boolean =>
  byte === 0x20 || byte === 0x0d || byte === 0x09;

/** `bytes` are valid until the next `add`; empty if the line is too large. */
export interface Line {
  /** From 1, blank lines too, so that it is the line of the sender's file. */
  readonly number: number;
  readonly bytes: Uint8Array;
  readonly isTooLarge: boolean;
}

export class LineSplitter {
  readonly #sizeBytesMax: number;
  #piece: Uint8Array = new Uint8Array();
  #position = 0;
  /**
   * The start of a line whose end is not there yet, and free memory behind it. One piece of memory: a sender may bring a
   * line byte by byte, and kept one by one 64 KB of them are 9 MB.
   */
  #started: Uint8Array = NO_BYTES;
  #startedSizeBytes = 0;
  #isSkipping = false;
  #lineNumber: number;

  constructor(sizeBytesMax: number, firstLine: number) {
    this.#sizeBytesMax = sizeBytesMax;
    this.#lineNumber = firstLine;
  }

  /** Bytes of the line that the next piece goes on with. */
  get startedSizeBytes(): number {
    return this.#startedSizeBytes;
  }

  /** The next piece. Every line of the one before has been taken; it may be overwritten after the last `next`. */
  add(piece: Uint8Array): void {
    this.#piece = piece;
    this.#position = 0;
  }

  /**
   * Passes over lines that have white space alone, as many as come next, at most `countMax`. A megabyte of them is a
   * kilobyte of gzip, and read one by one they took three times as long as a megabyte of calls.
   *
   * @returns how many.
   */
  passBlank(countMax: number): number {
    if (this.#startedSizeBytes > 0 || this.#isSkipping) return 0;
    let count = this.#passEmpty(countMax);
    while (count < countMax && this.#passWhiteSpace())
      count += 1 + this.#passEmpty(countMax - count - 1);
    this.#lineNumber += count;
    return count;
  }

  /** The next whole line; undefined if more bytes are needed. */
  next(): Line | undefined {
    const end = this.#piece.indexOf(NEWLINE, this.#position);
    if (end < 0) {
      this.#keep(this.#piece.subarray(this.#position));
      this.#position = this.#piece.length;
      return undefined;
    }
    const rest = this.#piece.subarray(this.#position, end);
    this.#position = end + 1;
    return this.#finish(rest);
  }

  /** The last line, where the sender has ended without a newline. */
  last(): Line | undefined {
    if (this.#startedSizeBytes === 0 && !this.#isSkipping) return undefined;
    return this.#finish(new Uint8Array());
  }

  #passEmpty(countMax: number): number {
    const start = this.#position;
    const end = Math.min(this.#piece.length, start + countMax);
    let position = start;
    while (position < end && this.#piece[position] === NEWLINE) position++;
    this.#position = position;
    return position - start;
  }

  /** True if the next line is whole and has white space alone. */
  #passWhiteSpace(): boolean {
    const { length } = this.#piece;
    let position = this.#position;
    while (position < length && isWhiteSpace(this.#piece[position] as number)) position++;
    const sizeBytes = position - this.#position;
    if (position === length || this.#piece[position] !== NEWLINE || sizeBytes > this.#sizeBytesMax)
      return false;
    this.#position = position + 1;
    return true;
  }

  #keep(bytes: Uint8Array): void {
    if (this.#isSkipping || bytes.length === 0) return;
    this.#startedSizeBytes += bytes.length;
    if (this.#startedSizeBytes > this.#sizeBytesMax) {
      this.#isSkipping = true;
      this.#started = NO_BYTES;
    } else {
      const position = this.#startedSizeBytes - bytes.length;
      this.#reserve(this.#startedSizeBytes);
      this.#started.set(bytes, position);
    }
  }

  #reserve(sizeBytes: number): void {
    if (sizeBytes <= this.#started.length) return;
    const larger = new Uint8Array(
      Math.min(this.#sizeBytesMax, Math.max(sizeBytes, 2 * this.#started.length)),
    );
    larger.set(this.#started);
    this.#started = larger;
  }

  #finish(rest: Uint8Array): Line {
    const isTooLarge =
      this.#isSkipping || this.#startedSizeBytes + rest.length > this.#sizeBytesMax;
    const started = this.#started.subarray(0, this.#startedSizeBytes);
    let bytes = rest;
    if (isTooLarge) bytes = NO_BYTES;
    else if (started.length > 0) bytes = Buffer.concat([started, rest]);
    this.#started = NO_BYTES;
    this.#startedSizeBytes = 0;
    this.#isSkipping = false;
    return { number: this.#lineNumber++, bytes, isTooLarge };
  }
}
