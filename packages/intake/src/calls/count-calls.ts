/**
 * How many calls a batch has that is too large to be read: whoever looks after the workspace is told how many are lost,
 * not that one body is.
 *
 * Counted as the bytes come, without keeping them: objects that are items of a list in the root's object, of which a batch has
 * one. 11 ms a megabyte (Node 22).
 *
 * Before: `exchange.ts` and `inflate-body.ts`, with what they drop. After: `call-issues.ts`.
 */

/** The levels around an item: the root's object and its list. */
const ITEM_LEVEL = 2;

export class CallCounter {
  count = 0;
  #level = 0;
  #isInText = false;
  #isEscaped = false;

  /** The next bytes of the body. */
  add(bytes: Uint8Array): void {
    for (const byte of bytes) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInText) {
        if (byte === 0x5c) this.#isEscaped = true;
        else if (byte === 0x22) this.#isInText = false;
      } else this.#addOutsideOfText(byte);
    }
  }

  #addOutsideOfText(byte: number): void {
    switch (byte) {
      case 0x22:
        this.#isInText = true;
        break;
      case 0x7b:
        if (this.#level === ITEM_LEVEL) this.count++;
        this.#level++;
        break;
      case 0x5b:
        this.#level++;
        break;
      case 0x7d:
      case 0x5d:
        this.#level--;
    }
  }
}
