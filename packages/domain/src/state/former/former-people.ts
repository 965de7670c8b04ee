/**
 * Deleted people who are there again for one late call.
 *
 * They have the names that they had. A name that the call gives them is remembered with their deletion. All else that the
 * call does to them is left out by the directory and the working set.
 */
import type { Operation } from '../../operations/operation.ts';
import type { DeletedNames, IdentifierKey, PersonRow } from '../loaded-state.ts';
import type { LoadedPerson, PersonState } from '../person-directory.ts';
import type { FormerOwner } from '../replayed-calls.ts';
import type { WorkingSet } from '../working-set.ts';

interface Former {
  readonly person: LoadedPerson;
  /** As they are now. */
  readonly fate: PersonState['fate'];
  /** When they were deleted. */
  readonly untilMs: number;
  readonly names: DeletedNames;
  /** Of an earlier version's deletion: it is remembered if the call gives them a name. */
  readonly ownKey?: IdentifierKey;
}

export class FormerPeople {
  readonly #set: WorkingSet;
  readonly #operation: Operation;
  readonly #former = new Map<PersonState, Former>();

  constructor(set: WorkingSet, operation: Operation) {
    this.#set = set;
    this.#operation = operation;
  }

  has(person: PersonState): boolean {
    return this.#former.has(person);
  }

  /** True for a person whose names are blocked now. */
  isBlocked(person: PersonState): boolean {
    return this.#former.get(person)?.fate === 'suppressed';
  }

  /** The former owner of a name; undefined if they are there, or not remembered. */
  enter(environmentId: number, { state, personId, untilMs }: FormerOwner): PersonState | undefined {
    const { deletions, directory } = this.#set;
    const names = deletions.namesOf({ environmentId, personId });
    const fate = state === 'blocked' ? 'suppressed' : 'present';
    if (!names && fate === 'present') return undefined;
    const row = this.#rowOf(environmentId, personId, names ?? {});
    const deletedAtMs = deletions.deletedAtMs({ environmentId, personId }) ?? untilMs;
    return this.#bringBack(directory.gone(row), fate, deletedAtMs);
  }

  /** An owner whose other names are unknown: all calls that may mean them are about them. */
  enterUnknown(key: IdentifierKey, untilMs: number): PersonState | undefined {
    const { deletions, directory, effects } = this.#set;
    const { environmentId, kind, value } = key;
    const held = Object.fromEntries(deletions.marksOf(key).map((each) => [each, '']));
    const names = { ...held, ...(kind !== 'anonymous_id' && { [kind]: value }) };
    const row = this.#rowOf(environmentId, effects.newPersonId(), names);
    return this.#bringBack(directory.gone(row), 'present', untilMs, key);
  }

  /** A person whom the call made is gone with the name that they have. */
  enterMade(person: PersonState, untilMs: number): void {
    this.#former.set(person, {
      person: person as LoadedPerson,
      fate: 'removed',
      untilMs,
      names: {},
    });
    person.isFormer = true;
    person.goneAtMs = untilMs;
  }

  /** Remembers names that the call gave them or took away. @param given - names that they have now and had not before. */
  remember(given: readonly IdentifierKey[]): void {
    const { deletions, directory } = this.#set;
    for (const { person, untilMs, names, ownKey } of this.#former.values()) {
      const { id, email, phone, createdAtMs } = person.row;
      const isSame = names.id === id && names.email === email && names.phone === phone;
      const isGiven = given.some((key) => directory.ownerOf(key) === person);
      if (isSame && !(ownKey && isGiven)) continue;
      if (ownKey) deletions.addName(ownKey, person.personId, { receivedAtMs: untilMs });
      deletions.addPerson(person, { id, email, phone, createdAtMs }, untilMs);
    }
    for (const key of given) {
      const owner = directory.ownerOf(key);
      const former = owner && this.#former.get(owner);
      if (former) deletions.addFurtherName(key, former.person.personId, former.untilMs);
    }
  }

  leave(): void {
    for (const { person, fate } of this.#former.values()) {
      person.fate = fate;
      person.isFormer = false;
      person.goneAtMs = null;
    }
  }

  #bringBack(
    person: LoadedPerson | undefined,
    fate: 'present' | 'suppressed',
    untilMs: number,
    ownKey?: IdentifierKey,
  ): PersonState | undefined {
    if (!person || this.#former.has(person)) return person;
    if (person.fate !== 'removed' && person.fate !== 'suppressed') return undefined;
    const { id, email, phone } = person.row;
    const names = { id, email, phone };
    this.#former.set(person, {
      person,
      fate: person.fate,
      untilMs,
      names,
      ...(ownKey && { ownKey }),
    });
    // The end of a suppression counts: calls during it were ignored.
    const goneAtMs = this.#set.deletions.goneAtMs(person) ?? untilMs;
    person.goneAtMs = person.fate === 'suppressed' ? null : goneAtMs;
    person.fate = fate;
    person.isFormer = true;
    return person;
  }

  #rowOf(environmentId: number, personId: number, names: DeletedNames): PersonRow {
    const { receivedAtMs } = this.#operation;
    return {
      environmentId,
      personId,
      id: null,
      email: null,
      phone: null,
      createdAtMs: receivedAtMs,
      ...names,
      attributes: {},
      unsubscribed: null,
      attributesAtMs: null,
      attributePlaces: null,
      updatedAtMs: receivedAtMs,
    };
  }
}
