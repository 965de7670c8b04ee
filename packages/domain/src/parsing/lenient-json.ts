/**
 * Reads text that is nearly JSON, with its faults and their places. It runs only after `JSON.parse` has refused the
 * whole, or if a key may come twice (`intake/src/calls/repeated-key.ts`). Some senders write forms that JSON does not
 * have: Python's `json.dumps` writes `NaN` and `Infinity`, others cut a character in two or leave a comma behind. In a
 * batch the other items belong to other people, so a fault costs its own item at most.
 * - `NaN`, `Infinity` and `-Infinity` outside of texts are null.
 * - in a text, bytes that are no UTF-8 are marked by the caller (`WRONG_BYTE`) and treated as half of a surrogate pair
 *   is.
 * - Any other fault within an item ends at the comma behind the item, and the item has no value.
 *
 * It takes two to four times as long as `JSON.parse`: 20 ms for a megabyte (Node 22).
 */
import { setKey, type Json, type JsonObject } from '../values/json.ts';

/** Replaces bytes in a text that are no UTF-8: half of a surrogate pair, which no UTF-8 decodes to. */
export const WRONG_BYTE = '\udcff';

export interface JsonFault {
  /** `unreadable`: the item is no JSON and has no value. `repeated-key`: of two values the last counts, as with `JSON.parse`. */
  readonly kind: 'not-finite' | 'not-utf8' | 'repeated-key' | 'unreadable';
  /** Keys and indexes from the item, or from the body if it has no items; empty for the item itself. */
  readonly path: readonly (string | number)[];
  /** The value sent there, or the position in the body at which the item cannot be read. */
  readonly found: string;
}

/** The member of a body whose entries are items, each with faults of its own. */
export type ItemsKey = 'batch' | 'messages';

/** By the item's 0-based index; null for faults outside of the items. */
export type JsonFaults = ReadonlyMap<number | null, readonly JsonFault[]>;

/** Levels that are followed. A call may have fewer (`limits.ts`), and each is a call on the stack. */
const DEPTH_MAX = 500;
/** Of an item in its body: the root's object and its list are around it. */
const ITEM_DEPTH = 3;
/** A body with more items that are no JSON is no batch. */
const UNREADABLE_COUNT_MAX = 10_000;
/** Of one item: as many issues as one may have. */
const FAULT_COUNT_MAX = 20;

/**
 * Reads the text.
 *
 * @param itemsKey - undefined: the body has no items.
 * @returns undefined if the faulty part cannot be identified.
 */
export function readLenientJson(
  text: string,
  itemsKey: ItemsKey | undefined,
): { value: Json; faults: JsonFaults } | undefined {
  const reader = new LenientReader(text, itemsKey);
  try {
    const value = reader.readRoot();
    return { value, faults: reader.faults };
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

/**
 * Reads one item of a batch that has been cut out of its body.
 *
 * @param startsAt - its place in the body, for the report of a fault.
 */
export function readLenientItem(
  text: string,
  startsAt: number,
): { value: Json; faults: readonly JsonFault[] } {
  const reader = new LenientReader(text, undefined);
  try {
    const value = reader.readRoot(ITEM_DEPTH);
    return { value, faults: reader.faults.get(null) ?? [] };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const found = `position ${startsAt + reader.at}`;
    return { value: null, faults: [{ kind: 'unreadable', path: [], found }] };
  }
}

/**
 * The keys of a text of JSON that come twice in an object, by item. Keys at a deeper level than the reader's limit are
 * left out.
 */
export function findRepeatedKeys(text: string, itemsKey: ItemsKey | undefined): JsonFaults {
  const { faults } = readLenientJson(text, itemsKey) ?? { faults: new Map() };
  const found = new Map<number | null, readonly JsonFault[]>();
  for (const [item, ofItem] of faults as JsonFaults) {
    const repeated = ofItem.filter(({ kind }) => kind === 'repeated-key');
    if (repeated.length > 0) found.set(item, repeated);
  }
  return found;
}

class Unreadable extends Error {}
/** One for all: a batch may have thousands of faults, and each stack would cost 10 µs. */
const UNREADABLE = new Unreadable();

const SPACE = /[ \n\r\t]*/y;

/** A number of JSON, and values that some senders write in its place. */
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const NOT_FINITE = /NaN|-?Infinity/y;
/** No escape, no control character. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const SAYS_ITSELF = /^[^\u0000-\u001f\\]*$/;
const WORDS: readonly (readonly [string, Json])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

class LenientReader {
  readonly faults = new Map<number | null, JsonFault[]>();
  readonly #text: string;
  readonly #itemsKey: ItemsKey | undefined;
  #at = 0;
  #item: number | null = null;
  #unreadableCount = 0;
  /** Keys and indexes from the item to the reader's position. */
  readonly #path: (string | number)[] = [];

  constructor(text: string, itemsKey: ItemsKey | undefined) {
    this.#text = text;
    this.#itemsKey = itemsKey;
  }

  /** How far it has come. */
  get at(): number {
    return this.#at;
  }

  readRoot(depth = 1): Json {
    this.#passSpace();
    const value = this.#readValue(depth);
    this.#passSpace();
    if (this.#at !== this.#text.length) throw UNREADABLE;
    return value;
  }

  #readValue(depth: number): Json {
    switch (this.#text[this.#at]) {
      case '"':
        return this.#readText();
      case '{':
        return this.#readObject(depth);
      case '[':
        return this.#isItems(depth) ? this.#readItems() : this.#readList(depth);
      default:
        return this.#readWord();
    }
  }

  #readObject(depth: number): JsonObject {
    if (depth > DEPTH_MAX) throw UNREADABLE;
    const value: JsonObject = {};
    if (this.#opens('}')) return value;
    do {
      this.#passSpace();
      if (this.#text[this.#at] !== '"') throw UNREADABLE;
      const key = this.#readText();
      this.#passSpace();
      this.#expect(':');
      this.#passSpace();
      this.#path.push(key);
      if (Object.hasOwn(value, key)) this.#note('repeated-key', key);
      setKey(value, key, this.#readValue(depth + 1));
      this.#path.pop();
    } while (this.#continues('}'));
    return value;
  }

  #readList(depth: number): Json[] {
    if (depth > DEPTH_MAX) throw UNREADABLE;
    const value: Json[] = [];
    if (this.#opens(']')) return value;
    do {
      this.#passSpace();
      this.#path.push(value.length);
      value.push(this.#readValue(depth + 1));
      this.#path.pop();
    } while (this.#continues(']'));
    return value;
  }

  #isItems(depth: number): boolean {
    return this.#itemsKey !== undefined && depth === 2 && this.#path[0] === this.#itemsKey;
  }

  /** Reads each item on its own, so that a fault ends with its item. */
  #readItems(): Json[] {
    const items: Json[] = [];
    const outside = this.#path.splice(0);
    // A batch that comes twice: the last one counts, as with `JSON.parse`.
    for (const item of [...this.faults.keys()]) if (item !== null) this.faults.delete(item);
    if (!this.#opens(']')) {
      do {
        this.#passSpace();
        this.#item = items.length;
        items.push(this.#readItem());
        this.#item = null;
      } while (this.#continues(']'));
    }
    this.#path.push(...outside);
    return items;
  }

  #readItem(): Json {
    const start = this.#at;
    try {
      const value = this.#readValue(ITEM_DEPTH);
      this.#passSpace();
      if (this.#text[this.#at] === ',' || this.#text[this.#at] === ']') return value;
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
    }
    if (++this.#unreadableCount > UNREADABLE_COUNT_MAX) throw UNREADABLE;
    const found = `position ${this.#at}`;
    this.#path.length = 0;
    this.#at = start;
    this.#passItem();
    this.faults.set(this.#item, [{ kind: 'unreadable', path: [], found }]);
    return null;
  }

  /** To the comma or the bracket behind the item. */
  #passItem(): void {
    for (let depth = 0; ; this.#at++) {
      switch (this.#text[this.#at]) {
        case undefined:
          throw UNREADABLE;
        case '"':
          this.#at = this.#endOfText() - 1;
          break;
        case '{':
        case '[':
          depth++;
          break;
        case ',':
          if (depth === 0) return;
          break;
        case '}':
        case ']':
          if (depth === 0) return;
          depth--;
      }
    }
  }

  #readText(): string {
    const start = this.#at;
    const end = this.#endOfText();
    let text: string;
    const quoted = this.#text.slice(start, end);
    if (SAYS_ITSELF.test(quoted)) {
      text = quoted.slice(1, -1);
    } else {
      try {
        text = JSON.parse(quoted) as string;
      } catch {
        throw UNREADABLE;
      }
    }
    this.#at = end;
    if (text.includes(WRONG_BYTE)) this.#note('not-utf8', text);
    return text;
  }

  /** Behind the quote that ends the text which begins here. */
  #endOfText(): number {
    let end = this.#at;
    while (true) {
      end = this.#text.indexOf('"', end + 1);
      if (end < 0) throw UNREADABLE;
      let first = end;
      while (this.#text[first - 1] === '\\') first--;
      if ((end - first) % 2 === 0) return end + 1;
    }
  }

  #readWord(): Json {
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    const number = this.#match(NUMBER);
    if (number !== undefined) return Number(number);
    const found = this.#match(NOT_FINITE);
    if (found === undefined) throw UNREADABLE;
    this.#note('not-finite', found);
    return null;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #note(kind: JsonFault['kind'], found: string): void {
    const faults = this.faults.get(this.#item);
    const path = [...this.#path];
    if (faults === undefined) this.faults.set(this.#item, [{ kind, path, found }]);
    else if (faults.length < FAULT_COUNT_MAX) faults.push({ kind, path, found });
  }

  /** Passes the bracket here. @returns true if the one that closes it comes next, which is passed too. */
  #opens(closing: string): boolean {
    this.#at++;
    this.#passSpace();
    if (this.#text[this.#at] !== closing) return false;
    this.#at++;
    return true;
  }

  /** @returns true behind a comma, false behind the closing bracket. */
  #continues(closing: string): boolean {
    this.#passSpace();
    if (this.#text[this.#at] === ',') {
      this.#at++;
      return true;
    }
    this.#expect(closing);
    return false;
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) throw UNREADABLE;
    this.#at++;
  }

  #passSpace(): void {
    if (this.#text.charCodeAt(this.#at) > 0x20) return;
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }
}
