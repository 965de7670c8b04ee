/**
 * A queue of many owners: they take turns, and the items of one owner leave in the order in which they came. An owner
 * with a thousand items delays the next item of another by one.
 */
export class FairQueue<Item> {
  /** A `Map` keeps the order of insertion; an owner is inserted again behind the others. Each set has an item. */
  readonly #byOwner = new Map<number, Set<Item>>();

  get isEmpty(): boolean {
    return this.#byOwner.size === 0;
  }

  add(owner: number, item: Item): void {
    const items = this.#byOwner.get(owner);
    if (items) items.add(item);
    else this.#byOwner.set(owner, new Set([item]));
  }

  /** The next item of each owner, in the order of their turns. The item that was given may be deleted meanwhile. */
  *heads(): Generator<readonly [owner: number, item: Item], undefined, undefined> {
    for (const [owner, items] of this.#byOwner)
      for (const item of items) {
        yield [owner, item];
        break;
      }
    return undefined;
  }

  /**
   * @param mayLeave - asked for the next item of each owner, in the order of their turns. Absent: each may.
   * @returns `undefined` if no item waits that may leave.
   */
  take(mayLeave?: (owner: number, item: Item) => boolean): Item | undefined {
    for (const [owner, items] of this.#byOwner)
      for (const item of items) {
        if (mayLeave?.(owner, item) === false) break;
        this.#byOwner.delete(owner);
        items.delete(item);
        if (items.size > 0) this.#byOwner.set(owner, items);
        return item;
      }
    return undefined;
  }

  /** @returns true if the item was waiting. */
  delete(owner: number, item: Item): boolean {
    const items = this.#byOwner.get(owner);
    if (!items?.delete(item)) return false;
    if (items.size === 0) this.#byOwner.delete(owner);
    return true;
  }
}
