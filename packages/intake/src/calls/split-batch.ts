/**
 * Starts and ends of a large batch's items in its bytes.
 *
 * Each item can then be read by itself: `JSON.parse` of a whole batch of 4 MB takes up to 0.4 s, in which no other call
 * is answered.
 *
 * It looks at brackets and texts alone, 2 ms a megabyte (Node 22), as many bytes at a time as the caller wants. Any
 * bytes between two commas of the list are an item. So a fault in one costs that item alone, as in
 * `domain/src/parsing/lenient-json.ts`.
 *
 * After: `batch-items.ts`.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const LETTER_U = 0x75;

/** The level of the items' list, inside of the root's object. */
const LIST_LEVEL = 2;
/** More than any batch may have: beyond it items are counted, and not kept. */
const KEPT_COUNT_MAX = 10_000;
const BATCH_KEY = '"batch"';
/** As long as it can be. */
const BATCH_KEY_ESCAPED = String.raw`"\u0062\u0061\u0074\u0063\u0068"`;
/** Of a value that is no object. */
const BEGINS_VALUE = Buffer.from('["-0123456789tfn');
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** One item; `end` is behind its last byte. */
export interface ItemPlace {
  readonly start: number;
  readonly end: number;
  /** At least so large as compact JSON: without white space, and each escape as one byte. */
  readonly sizeBytesMin: number;
}

export class BatchSplitter {
  /** Start, end and least size of the first `KEPT_COUNT_MAX` items. As objects, 10,000 of them kept the collector busy. */
  readonly #places: number[] = [];
  itemCount = 0;
  /** A `\u` is in some text. */
  hasEscapes = false;
  /** The root is no object. */
  isNoObject = false;
  /** Place at which a bracket closes that is not open, or of bytes behind the root. */
  brokenAt: number | undefined;
  readonly #bytes: Uint8Array;
  #at: number;
  #level = 0;
  #isInText = false;
  #textStart = 0;
  /** The next text of the root's object is a key. */
  #isKeyNext = false;
  #isBatchKey = false;
  #isInList = false;
  #itemStart = 0;
  /** Bytes of the item that compact JSON may not have. */
  #slackSizeBytes = 0;
  #spaceSizeBytes = 0;
  /** Start and end of the parts outside the list, by turns. */
  readonly #outside: number[];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#at = BYTE_ORDER_MARK.equals(bytes.subarray(0, 3)) ? 3 : 0;
    this.#outside = [this.#at];
  }

  /** Looks at so many bytes more. @returns true when there are no more. */
  advance(sizeBytes: number): boolean {
    const bytes = this.#bytes;
    const until = Math.min(bytes.length, this.#at + sizeBytes);
    let at = this.#at;
    let isInText = this.#isInText;
    for (; at < until; at++) {
      const byte = bytes[at] as number;
      if (isInText) {
        if (byte === QUOTE) {
          isInText = false;
          if (this.#level === 1) this.#endText(at);
        } else if (byte === BACKSLASH) {
          at++;
          const isUnit = bytes[at] === LETTER_U;
          if (isUnit) this.hasEscapes = true;
          this.#slackSizeBytes += isUnit ? 5 : 1;
        }
      } else if (byte === QUOTE) {
        isInText = true;
        this.#textStart = at;
        if (this.#level === 0 && !this.#passOutside(byte, at)) break;
      } else if (byte <= 0x20) {
        const first = at;
        while (at + 1 < until && (bytes[at + 1] as number) <= 0x20) at++;
        this.#spaceSizeBytes += at + 1 - first;
      } else if (!this.#pass(byte, at)) {
        break;
      }
    }
    this.#at = at;
    this.#isInText = isInText;
    return at >= bytes.length || this.#isOver;
  }

  /** True if the root's object is closed, without bytes behind it. */
  get isWhole(): boolean {
    return !this.#isOver && this.#level === 0 && this.#outside.length % 2 === 0;
  }

  /**
   * Size of {@link envelope}. To be asked first: a megabyte may have a hundred thousand lists, each of which cuts it once
   * more.
   */
  get envelopeSizeBytes(): number {
    let sizeBytes = 0;
    for (let index = 0; index < this.#outside.length; index += 2)
      sizeBytes += (this.#outside[index + 1] as number) - (this.#outside[index] as number);
    return sizeBytes;
  }

  /** Undefined for one that was not kept. */
  placeOf(index: number): ItemPlace | undefined {
    const at = 3 * index;
    const [start, end, sizeBytesMin] = [
      this.#places[at],
      this.#places[at + 1],
      this.#places[at + 2],
    ];
    if (start === undefined || end === undefined || sizeBytesMin === undefined) return undefined;
    return { start, end, sizeBytesMin };
  }

  /** The body with an empty list in place of its items. Only if it is whole. */
  envelope(): Buffer {
    const parts: Uint8Array[] = [];
    for (let index = 0; index < this.#outside.length; index += 2)
      parts.push(this.#bytes.subarray(this.#outside[index], this.#outside[index + 1]));
    return Buffer.concat(parts);
  }

  get #isOver(): boolean {
    return this.isNoObject || this.brokenAt !== undefined;
  }

  /**
   * Passes a byte that is in no text, and no white space.
   *
   * @returns false if the rest is not looked at.
   */
  #pass(byte: number, at: number): boolean {
    switch (byte) {
      case OPENING_BRACE:
      case OPENING_BRACKET:
        if (this.#level === 0 && !this.#begin(byte, at)) return false;
        if (this.#level === 1 && byte === OPENING_BRACKET && this.#isBatchKey) this.#beginList(at);
        this.#level++;
        return true;
      case CLOSING_BRACE:
      case CLOSING_BRACKET:
        return this.#close(byte, at);
      case COMMA:
        if (this.#level === LIST_LEVEL && this.#isInList) this.#endItem(at);
        else if (this.#level === 1) {
          this.#isKeyNext = true;
          this.#isBatchKey = false;
        }
        return true;
      default:
        return this.#level > 0 || this.#passOutside(byte, at);
    }
  }

  /** In front of the root, or behind it. */
  #passOutside(byte: number, at: number): false {
    if (this.#outside.length === 1 && BEGINS_VALUE.includes(byte)) this.isNoObject = true;
    else this.brokenAt = at;
    return false;
  }

  #begin(byte: number, at: number): boolean {
    if (this.#outside.length !== 1 || byte !== OPENING_BRACE) return this.#passOutside(byte, at);
    this.#isKeyNext = true;
    return true;
  }

  #endText(at: number): void {
    if (!this.#isKeyNext) return;
    this.#isKeyNext = false;
    this.#isBatchKey = false;
    const sizeBytes = at + 1 - this.#textStart;
    if (sizeBytes < BATCH_KEY.length || sizeBytes > BATCH_KEY_ESCAPED.length) return;
    const key = Buffer.from(this.#bytes.subarray(this.#textStart, at + 1)).toString();
    this.#isBatchKey = key === BATCH_KEY || (key.includes('\\') && keyOf(key) === 'batch');
  }

  #beginList(at: number): void {
    // Of two lists the last counts, as with `JSON.parse`.
    this.#places.length = 0;
    this.itemCount = 0;
    this.#isInList = true;
    this.#outside.push(at + 1);
    this.#beginItem(at + 1);
  }

  #beginItem(at: number): void {
    this.#itemStart = at;
    this.#slackSizeBytes = 0;
    this.#spaceSizeBytes = 0;
  }

  #endItem(end: number): void {
    const start = this.#itemStart;
    const sizeBytesMin = end - start - this.#slackSizeBytes - this.#spaceSizeBytes;
    if (this.itemCount++ < KEPT_COUNT_MAX) this.#places.push(start, end, sizeBytesMin);
    this.#beginItem(end + 1);
  }

  #close(byte: number, at: number): boolean {
    const isOfList = this.#level === LIST_LEVEL && this.#isInList;
    const isWrong =
      this.#level === 0 ||
      (isOfList && byte !== CLOSING_BRACKET) ||
      (this.#level === 1 && byte !== CLOSING_BRACE);
    if (isWrong) {
      this.brokenAt = at;
      return false;
    }
    if (isOfList) {
      const isEmpty = this.itemCount === 0 && at - this.#itemStart === this.#spaceSizeBytes;
      if (!isEmpty) this.#endItem(at);
      this.#isInList = false;
      this.#outside.push(at);
    }
    this.#level--;
    if (this.#level === 0) this.#outside.push(at + 1);
    return true;
  }
}

function keyOf(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}
