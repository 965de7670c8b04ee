/**
 * Objects of the simulated payment provider, in memory.
 *
 * They are written through to an SQLite file if one is given, so that a restart forgets no customer. Objects are the
 * payment provider's own wire objects.
 *
 * One process, one thread: a request's effect is one turn of the loop, so it happens or it does not.
 */
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '@sluice/domain/values/errors';
import { keepFilePrivate } from '@sluice/platform/process/private-file';

const COLLECTIONS = [
  'customer',
  'customer_balance_transaction',
  'tax_id',
  'payment_method',
  'price',
  'coupon',
  'invoice',
  'payment_intent',
  'subscription',
  'charge',
  'refund',
  'dispute',
  'event',
  'answer',
] as const;
export type Collection = (typeof COLLECTIONS)[number];

export type ProviderObject = Record<string, unknown> & { id: string };

/** An object as the wire shows it: without the simulator's own fields. */
export const wireOf = (object: ProviderObject): ProviderObject =>
  Object.fromEntries(
    Object.entries(object).filter(([key]) => !key.startsWith('simulated_')),
  ) as ProviderObject;

export class SimulatorState {
  readonly #collections = new Map<Collection, Map<string, ProviderObject>>(
    COLLECTIONS.map((name) => [name, new Map()]),
  );
  readonly #file: DatabaseSync | undefined;
  readonly #realNow: () => number;
  /** Called after each event that is saved. */
  onEventSaved: () => void = () => {};
  /** Its address: the start of the addresses of its own pages. */
  origin = '';
  #clockOffsetMs = 0;
  #lastId = 0;

  constructor(options: { readonly file?: string | undefined; readonly now: () => number }) {
    this.#realNow = options.now;
    if (options.file === undefined) return;
    this.#file = openFile(options.file);
    for (const row of this.#file.prepare('select collection, json from objects').all()) {
      const { collection, json } = row as { collection: Collection; json: string };
      const value = JSON.parse(json) as ProviderObject;
      this.#of(collection).set(value.id, value);
      this.#lastId = Math.max(this.#lastId, Number(/_(\d+)$/.exec(value.id)?.[1] ?? 0));
    }
  }

  /** Unix milliseconds by the payment provider's clock, which tests move. */
  now(): number {
    return this.#realNow() + this.#clockOffsetMs;
  }

  nowSeconds(): number {
    return Math.floor(this.now() / 1_000);
  }

  advanceClock(durationMs: number): void {
    this.#clockOffsetMs += durationMs;
  }

  /** Never given twice, also not after a restart with a kept state. */
  newId(prefix: string): string {
    this.#lastId += 1;
    return `${prefix}_${String(this.#lastId).padStart(14, '0')}`;
  }

  get(collection: Collection, id: unknown): ProviderObject | undefined {
    return typeof id === 'string' ? this.#of(collection).get(id) : undefined;
  }

  has(collection: Collection): boolean {
    return this.#of(collection).size > 0;
  }

  /** Oldest first. */
  list(collection: Collection): ProviderObject[] {
    return [...this.#of(collection).values()];
  }

  /** Keeps an object, new or changed. */
  save<Kept extends ProviderObject>(collection: Collection, object: Kept): Kept {
    this.#of(collection).set(object.id, object);
    this.#file
      ?.prepare('insert or replace into objects (collection, id, json) values (?, ?, ?)')
      .run(collection, object.id, JSON.stringify(object));
    if (collection === 'event') this.onEventSaved();
    return object;
  }

  delete(collection: Collection, id: string): void {
    this.#of(collection).delete(id);
    this.#file?.prepare('delete from objects where collection = ? and id = ?').run(collection, id);
  }

  close(): void {
    this.#file?.close();
  }

  #of(collection: Collection): Map<string, ProviderObject> {
    return this.#collections.get(collection) as Map<string, ProviderObject>;
  }
}

/** @throws AppError CONFIG_INVALID */
function openFile(path: string): DatabaseSync {
  try {
    keepFilePrivate(path);
    const file = new DatabaseSync(path);
    file.exec('pragma journal_mode = wal; pragma synchronous = normal;');
    file.exec(
      'create table if not exists objects (collection text, id text, json text, primary key (collection, id)) without rowid',
    );
    return file;
  } catch (cause) {
    throw new AppError(
      'CONFIG_INVALID',
      `${path} (SIMULATOR_FILE) cannot be used: ${(cause as Error).message}`,
      { cause },
    );
  }
}
