/**
 * Rows of one table while a commit batch is applied: as loaded, as changed, and the rows to write from the two. A row
 * that changes any number of times is written once.
 */
import type { PersonKey, RowChanges } from './loaded-state.ts';

interface Entry<Row> {
  readonly loaded: Row | undefined;
  current: Row | undefined;
}

export class TrackedRows<Row extends object> {
  readonly #keyOf: (row: Row) => string;
  readonly #entries = new Map<string, Entry<Row>>();

  /** `keyOf` must not change while a row is here. */
  constructor(keyOf: (row: Row) => string, loaded: readonly Row[]) {
    this.#keyOf = keyOf;
    for (const row of loaded) this.#entries.set(keyOf(row), { loaded: row, current: row });
  }

  get(key: string): Row | undefined {
    return this.#entries.get(key)?.current;
  }

  /** Adds the row, or puts it in the place of the one with its key. */
  set(row: Row): void {
    const key = this.#keyOf(row);
    const entry = this.#entries.get(key);
    if (entry) entry.current = row;
    else this.#entries.set(key, { loaded: undefined, current: row });
  }

  delete(row: Row): void {
    const entry = this.#entries.get(this.#keyOf(row));
    if (entry) entry.current = undefined;
  }

  /** Deletes a row of a table that was not loaded, whether it is there or not. */
  deleteUnseen(row: Row): void {
    const key = this.#keyOf(row);
    const loaded = this.#entries.get(key)?.loaded ?? row;
    this.#entries.set(key, { loaded, current: undefined });
  }

  /** The rows as they are by now. */
  *rows(): Generator<Row> {
    for (const { current } of this.#entries.values()) if (current) yield current;
  }

  /**
   * The rows to write.
   *
   * @param isDropped - another statement removes these.
   * @param isMoved - to another partition: the loaded row is deleted, and the current one inserted.
   */
  changes(
    isDropped: (row: Row) => boolean,
    isMoved: (loaded: Row, current: Row) => boolean = () => false,
  ): RowChanges<Row, Row> {
    const inserted: Row[] = [];
    const updated: Row[] = [];
    const deleted: Row[] = [];
    for (const { loaded, current } of this.#entries.values()) {
      if (loaded === current) continue;
      if (current && isDropped(current)) continue;
      if (loaded && current && !isMoved(loaded, current)) {
        updated.push(current);
        continue;
      }
      if (current) inserted.push(current);
      if (loaded && !isDropped(loaded)) deleted.push(loaded);
    }
    return { inserted, updated, deleted };
  }
}

/** Rows of people, found by person without a look at all rows: a commit batch may merge a thousand people. */
export class RowsOfPeople<Row extends PersonKey> extends TrackedRows<Row> {
  readonly #keyOf: (row: Row) => string;
  /** By person, rows that are gone included. Built at the first question, since only merges ask. */
  #keys: Map<number, Set<string>> | undefined;

  constructor(keyOf: (row: Row) => string, loaded: readonly Row[]) {
    super(keyOf, loaded);
    this.#keyOf = keyOf;
  }

  override set(row: Row): void {
    super.set(row);
    if (this.#keys) this.#note(this.#keys, row);
  }

  /** The person's rows as they are by now. */
  of({ personId }: Pick<PersonKey, 'personId'>): Row[] {
    if (!this.#keys) {
      this.#keys = new Map();
      for (const row of this.rows()) this.#note(this.#keys, row);
    }
    return [...(this.#keys.get(personId) ?? [])].flatMap((key) => this.get(key) ?? []);
  }

  #note(keys: Map<number, Set<string>>, row: Row): void {
    const known = keys.get(row.personId);
    if (known) known.add(this.#keyOf(row));
    else keys.set(row.personId, new Set([this.#keyOf(row)]));
  }
}
