/**
 * Identifiers → people, while a commit batch is applied and they change.
 *
 * ```
 *            create                 delete            unsuppress
 *   (free) ─────────▶ present ──────────────▶ removed ◀────────── suppressed
 *                        │ suppress                                   ▲
 *                        ├────────────────────────────────────────────┘
 *                        └─ merge ──▶ merged (into another, followed from then on)
 * ```
 *
 * Invariant: an identifier has one owner at most. An anonymous id may be known without an owner: its events wait for
 * one.
 */
import { AppError } from '../values/errors.ts';
import type { PersonIdentifier } from '../operations/operation.ts';
import { storedValue, type StoredIdentifierKind } from '../operations/state-keys.ts';
import type {
  IdentifierKey,
  IdentifierRow,
  PersonKey,
  PersonRow,
  RowChanges,
} from './loaded-state.ts';
import { personIdOf, svcId } from '../values/svc-id.ts';
import { IdentifierMap } from './tenant-map.ts';

export interface PersonState extends PersonKey {
  /** Undefined for people that only events name: they exist, and their row is not needed. */
  row: PersonRow | undefined;
  readonly loadedRow: PersonRow | undefined;
  /** The stored form of it. */
  readonly stored: 'nothing' | 'person' | 'suppression';
  fate: 'present' | 'removed' | 'suppressed' | 'merged';
  mergedInto: PersonState | undefined;
  /** They were deleted, and are as they were before for one late call (`apply/late-calls.ts`). */
  isFormer: boolean;
  /** Of a former person: earlier data of visitors are theirs. Null: all of the data. */
  goneAtMs: number | null;
}

/** A person whose row is at hand. */
export type LoadedPerson = PersonState & { row: PersonRow };

export type Resolution =
  | { readonly outcome: 'found'; readonly person: PersonState }
  | { readonly outcome: 'suppressed'; readonly person: PersonState }
  | { readonly outcome: 'unknown' };

const UNKNOWN: Resolution = { outcome: 'unknown' };

/** Hears of new people, and of each name that is given to somebody or taken away. */
export interface OwnerWatch {
  readonly created: (person: PersonState) => void;
  readonly assigned: (key: IdentifierKey, owner: PersonState | undefined) => void;
}

interface Entry {
  readonly key: IdentifierKey;
  readonly stored: IdentifierRow | undefined;
  owner: PersonState | undefined;
}

export class PersonDirectory {
  readonly #entries = new IdentifierMap<Entry>();
  /** Those whose row may have to be written. */
  readonly #touched = new Set<Entry>();
  readonly #people = new Map<number, PersonState>();
  /** Numbers of people who were merged, for one late call. */
  readonly #lentNumbers = new Map<number, PersonState>();
  #watch: OwnerWatch | undefined;

  constructor(identifiers: readonly IdentifierRow[], people: readonly PersonRow[]) {
    for (const row of people) this.#addPerson(row, row, 'person');
    for (const row of identifiers) {
      const owner =
        row.personId === null
          ? undefined
          : (this.#people.get(row.personId) ?? this.#addUnloaded(row, row.personId));
      this.#entries.set(row.environmentId, row.kind, row.value, { key: row, stored: row, owner });
    }
  }

  /**
   * The person that an identifier means at this point of the apply step. The svc_id of a merged person has no owner, as
   * it will once the merge is stored.
   */
  resolve(environmentId: number, identifier: PersonIdentifier): Resolution {
    if (identifier.kind !== 'svc_id')
      return this.resolveStored(environmentId, identifier.kind, identifier.value);
    const personId = personIdOf(identifier.value);
    const person =
      personId === undefined
        ? undefined
        : (this.#lentNumbers.get(personId) ?? this.#people.get(personId));
    return person?.environmentId === environmentId && person.fate !== 'merged'
      ? resolutionOf(person)
      : UNKNOWN;
  }

  resolveStored(environmentId: number, kind: StoredIdentifierKind, value: string): Resolution {
    const owner = this.#entries.get(environmentId, kind, storedValue(kind, value))?.owner;
    return owner ? resolutionOf(owner) : UNKNOWN;
  }

  /** The person that a number in another row means at this point of the apply step. */
  find(environmentId: number, personId: number): PersonState | undefined {
    const known = this.#people.get(personId);
    const person = known && followMerges(known);
    return person?.environmentId === environmentId && person.fate === 'present'
      ? person
      : undefined;
  }

  /** A new person without identifiers. */
  create(row: PersonRow): LoadedPerson {
    const person = this.#addPerson(row, undefined, 'nothing') as LoadedPerson;
    this.#watch?.created(person);
    return person;
  }

  /** The loaded identifiers of a person: all of them, if a person may be deleted. */
  *identifiersOf(person: PersonState): Generator<IdentifierKey> {
    for (const { key, owner } of this.#entries.values())
      if (owner && followMerges(owner) === person) yield key;
  }

  /** Gives the identifier to `owner`, away from an earlier owner. Undefined leaves it without one. */
  assign(
    environmentId: number,
    kind: StoredIdentifierKind,
    given: string,
    owner: PersonState | undefined,
  ): void {
    const entry = this.#entryOf(environmentId, kind, given);
    entry.owner = owner;
    this.#touched.add(entry);
    this.#watch?.assigned(entry.key, owner);
  }

  /** Changes of owners are heard from now on; undefined ends it. */
  watchOwners(watch: OwnerWatch | undefined): void {
    this.#watch = watch;
  }

  /** Gives a name to somebody without a change to write. @returns whose it was, also if they are gone. */
  lend(key: IdentifierKey, owner: PersonState | undefined): PersonState | undefined {
    const { environmentId, kind, value } = key;
    const entry = this.#entryOf(environmentId, kind, value);
    const before = entry.owner;
    entry.owner = owner;
    return before;
  }

  /** A merged person's number means the person they became, until `takeNumbersBack`. */
  lendNumber(personId: number, heir: PersonState): void {
    this.#lentNumbers.set(personId, heir);
  }

  takeNumbersBack(): void {
    this.#lentNumbers.clear();
  }

  /** Whose the name is, also if they are gone. */
  ownerOf({ environmentId, kind, value }: IdentifierKey): PersonState | undefined {
    return this.#entries.get(environmentId, kind, value)?.owner;
  }

  /** A person who is gone: as known, or else with the given row. Undefined if the number is of another workspace. */
  gone(row: PersonRow): LoadedPerson | undefined {
    const { environmentId, personId } = row;
    const known = this.#people.get(personId);
    if (known) {
      if (known.environmentId !== environmentId) return undefined;
      known.row ??= row;
      return known as LoadedPerson;
    }
    const person: LoadedPerson = {
      environmentId,
      personId,
      row,
      loadedRow: undefined,
      stored: 'nothing',
      fate: 'removed',
      mergedInto: undefined,
      isFormer: false,
      goneAtMs: null,
    };
    this.#people.set(personId, person);
    return person;
  }

  isFormer(personId: number): boolean {
    return this.#people.get(personId)?.isFormer === true;
  }

  /** True if anonymous events may be waiting in the database. */
  isStoredAnonymousId(environmentId: number, anonymousId: string): boolean {
    const entry = this.#entries.get(environmentId, 'anonymous_id', anonymousId);
    return entry?.stored !== undefined && entry.stored.personId === null;
  }

  /** True if calls were taken under an anonymous id without an owner. */
  isKnownVisitor(environmentId: number, anonymousId: string): boolean {
    const entry = this.#entries.get(environmentId, 'anonymous_id', anonymousId);
    return (
      entry !== undefined &&
      entry.owner === undefined &&
      (entry.stored?.personId === null || this.#touched.has(entry))
    );
  }

  /** True for people who are no longer there, for any reason. */
  isGone(personId: number): boolean {
    const person = this.#people.get(personId);
    return person !== undefined && person.fate !== 'present';
  }

  people(): Iterable<PersonState> {
    return this.#people.values();
  }

  identifierChanges(): RowChanges<IdentifierRow, IdentifierKey> {
    const inserted: IdentifierRow[] = [];
    const updated: IdentifierRow[] = [];
    const deleted: IdentifierKey[] = [];
    for (const { key, stored, owner: given } of this.#touched) {
      const owner = given && followMerges(given);
      const isKept = owner ? owner.fate !== 'removed' : key.kind === 'anonymous_id';
      if (!isKept) {
        if (stored) deleted.push(key);
        continue;
      }
      const { environmentId, kind, value } = key;
      const row = {
        environmentId,
        kind,
        value,
        personId: owner?.personId ?? null,
        suppressed: owner?.fate === 'suppressed',
      };
      if (!stored) inserted.push(row);
      else if (stored.personId !== row.personId || stored.suppressed !== row.suppressed)
        updated.push(row);
    }
    return { inserted, updated, deleted };
  }

  #entryOf(environmentId: number, kind: StoredIdentifierKind, given: string): Entry {
    const value = storedValue(kind, given);
    let entry = this.#entries.get(environmentId, kind, value);
    if (!entry) {
      entry = { key: { environmentId, kind, value }, stored: undefined, owner: undefined };
      this.#entries.set(environmentId, kind, value, entry);
    }
    return entry;
  }

  #addPerson(
    row: PersonRow,
    loadedRow: PersonRow | undefined,
    stored: PersonState['stored'],
  ): PersonState {
    const { environmentId, personId } = row;
    const person: PersonState = {
      environmentId,
      personId,
      row,
      loadedRow,
      stored,
      fate: 'present',
      mergedInto: undefined,
      isFormer: false,
      goneAtMs: null,
    };
    this.#people.set(personId, person);
    // The identifiers of a stored person are stored too, whether or not an operation names them.
    if (loadedRow) {
      for (const kind of ['id', 'email', 'phone'] as const) {
        const given = row[kind];
        if (given === null) continue;
        const value = storedValue(kind, given);
        const key = { environmentId, kind, value };
        this.#entries.set(environmentId, kind, value, {
          key,
          stored: { ...key, personId, suppressed: false },
          owner: person,
        });
      }
    }
    return person;
  }

  #addUnloaded(identifier: IdentifierRow, personId: number): PersonState {
    const person: PersonState = {
      environmentId: identifier.environmentId,
      personId,
      row: undefined,
      loadedRow: undefined,
      stored: identifier.suppressed ? 'suppression' : 'person',
      fate: identifier.suppressed ? 'suppressed' : 'present',
      mergedInto: undefined,
      isFormer: false,
      goneAtMs: null,
    };
    this.#people.set(personId, person);
    return person;
  }
}

/** The person that someone was merged into, and so on; themselves if they were not merged. */
export function followMerges(person: PersonState): PersonState {
  let followed = person;
  while (followed.mergedInto) followed = followed.mergedInto;
  return followed;
}

/** Insists on the row; its absence means that `find-state-needs.ts` forgot to ask for it. */
export function loaded(person: PersonState): LoadedPerson {
  if (!person.row)
    throw new AppError('BUG', `person ${svcId(person.personId)} was needed and not loaded`);
  return person as LoadedPerson;
}

/** How a message names a person. */
export function describePerson(person: PersonState): string {
  if (person.isFormer) return 'a person who was deleted later';
  const names = [
    person.row?.id != null ? `id "${person.row.id}"` : '',
    person.row?.email != null ? `email "${person.row.email}"` : '',
  ].filter((name) => name !== '');
  return names.length === 0
    ? `person ${svcId(person.personId)}`
    : `person ${svcId(person.personId)} (${names.join(', ')})`;
}

function resolutionOf(owner: PersonState): Resolution {
  const person = followMerges(owner);
  if (person.fate === 'present') return { outcome: 'found', person };
  return person.fate === 'suppressed' ? { outcome: 'suppressed', person } : UNKNOWN;
}
