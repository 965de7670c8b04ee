/**
 * Replaces wrong bytes of UTF-8 by question marks. The length stays, so that a place in it stays a place in the file.
 * One pass: a line of only wrong bytes takes no longer than another.
 */

/** A byte that no character has in its place. */
export interface MarkedByte {
  /** From the start of the bytes. */
  readonly index: number;
  readonly value: number;
}

/** Wrong bytes of a file, in order: its reader drops them as it passes them. */
export class MarkedBytes {
  #bytes: { readonly at: number; readonly value: number }[] = [];
  /** To take each out of the list would move all others: a megabyte may have half a million. */
  #droppedCount = 0;

  get first(): { readonly at: number; readonly value: number } | undefined {
    return this.#bytes[this.#droppedCount];
  }

  push(at: number, value: number): void {
    this.#bytes.push({ at, value });
  }

  dropBefore(at: number): void {
    while (this.first !== undefined && this.first.at < at) this.#droppedCount++;
    if (this.#droppedCount < DROPPED_COUNT_MAX) return;
    this.#bytes = this.#bytes.slice(this.#droppedCount);
    this.#droppedCount = 0;
  }
}

/** Dropped bytes that are kept in memory. */
const DROPPED_COUNT_MAX = 65_536;

const MARK = 0x3f;

/**
 * By the first byte: the number of bytes of its character, and the bounds of the second one (RFC 3629 §4). 0 if no
 * character begins so.
 */
function characterAt(first: number): { size: number; least: number; most: number } {
  if (first < 0x80) return { size: 1, least: 0, most: 0 };
  if (first < 0xc2 || first > 0xf4) return { size: 0, least: 0, most: 0 };
  const size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return {
    size,
    least: first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80,
    most: first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf,
  };
}

/** @returns a copy, and the first wrong byte of each run of them. */
export function markWrongBytes(bytes: Buffer): { utf8: Buffer; marked: readonly MarkedByte[] } {
  const utf8 = Buffer.from(bytes);
  const marked: MarkedByte[] = [];
  let markedThrough = -2;
  for (let index = 0; index < bytes.length;) {
    const { size, least, most } = characterAt(bytes[index] as number);
    let isRight = size > 0 && index + size <= bytes.length;
    for (let at = 1; isRight && at < size; at++) {
      const byte = bytes[index + at] as number;
      isRight = at === 1 ? byte >= least && byte <= most : byte >= 0x80 && byte <= 0xbf;
    }
    if (isRight) {
      index += size;
      continue;
    }
    if (markedThrough !== index - 1) marked.push({ index, value: bytes[index] as number });
    markedThrough = index;
    utf8[index] = MARK;
    index++;
  }
  return { utf8, marked };
}
