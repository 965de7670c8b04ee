/**
 * Binary heap: the lowest key comes out first, and of equal keys the first one in. Pushing and popping cost the
 * logarithm of the number of entries.
 *
 * Used by `fair-permits.ts`.
 */

interface Entry<Item> {
  readonly item: Item;
  readonly key: number;
  readonly ordinal: number;
}

export class MinHeap<Item> {
  /** The children of the entry at n are at 2n + 1 and 2n + 2, and not before it. */
  readonly #entries: Entry<Item>[] = [];
  #lastOrdinal = 0;

  get size(): number {
    return this.#entries.length;
  }

  push(item: Item, key: number): void {
    const entries = this.#entries;
    const entry = { item, key, ordinal: ++this.#lastOrdinal };
    let place = entries.length;
    while (place > 0) {
      const parentPlace = (place - 1) >> 1;
      const parent = entries[parentPlace] as Entry<Item>;
      if (!isBefore(entry, parent)) break;
      entries[place] = parent;
      place = parentPlace;
    }
    entries[place] = entry;
  }

  pop(): Item | undefined {
    const entries = this.#entries;
    const first = entries[0];
    const last = entries.pop();
    if (!first || !last) return undefined;
    const { length } = entries;
    if (length === 0) return first.item;
    let place = 0;
    for (;;) {
      let childPlace = 2 * place + 1;
      if (childPlace >= length) break;
      const right = entries[childPlace + 1];
      if (right && isBefore(right, entries[childPlace] as Entry<Item>)) childPlace++;
      const child = entries[childPlace] as Entry<Item>;
      if (!isBefore(child, last)) break;
      entries[place] = child;
      place = childPlace;
    }
    entries[place] = last;
    return first.item;
  }
}

function isBefore<Item>(a: Entry<Item>, b: Entry<Item>): boolean {
  return a.key < b.key || (a.key === b.key && a.ordinal < b.ordinal);
}
