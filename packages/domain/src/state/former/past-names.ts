/**
 * Names with the owners of an earlier time, for one late call.
 *
 * It is the time at which the call was received.
 *
 * ```
 * the owner was deleted since ────────────▶ theirs, and of the present owner again afterwards
 * the owner gave it up, and is there ─────▶ theirs, and of the present owner again afterwards
 * it was blocked and is free again ───────▶ blocked
 * it had no person, and was deleted since ▶ free: a person whom the call makes under it is gone with it
 * the present owner was made since ───────▶ free for a deleted person whom the call means, else as it is
 * ```
 */
import type { Operation } from '../../operations/operation.ts';
import { identifierText } from '../../operations/state-keys.ts';
import type { IdentifierKey } from '../loaded-state.ts';
import { followMerges, type PersonState } from '../person-directory.ts';
import type { FormerOwner } from '../replayed-calls.ts';
import type { WorkingSet } from '../working-set.ts';
import type { FormerPeople } from './former-people.ts';

interface Loan {
  readonly key: IdentifierKey;
  readonly owner: FormerOwner;
  readonly lent: PersonState | undefined;
  /** Whose it is now, also if they are gone. */
  readonly before: PersonState | undefined;
}

export class PastNames {
  readonly #set: WorkingSet;
  readonly #operation: Operation;
  readonly #people: FormerPeople;
  readonly #loans = new Map<string, Loan>();
  /** Names that no person had then, and that somebody has now. */
  readonly #taken = new Map<string, { readonly key: IdentifierKey; readonly owner: FormerOwner }>();
  readonly #knownVisitors = new Set<string>();
  readonly #created = new Set<PersonState>();
  readonly #changed = new Map<string, IdentifierKey>();

  constructor(set: WorkingSet, operation: Operation, people: FormerPeople) {
    this.#set = set;
    this.#operation = operation;
    this.#people = people;
  }

  lend(key: IdentifierKey, owner: FormerOwner | undefined): void {
    const { directory } = this.#set;
    const { environmentId, kind, value } = key;
    if (kind === 'anonymous_id' && directory.isKnownVisitor(environmentId, value))
      this.#knownVisitors.add(textOf(key));
    if (!owner) return;
    if (owner.state === 'unknown' || owner.state === 'forgotten')
      return this.#lendTo(key, owner, this.#people.enterUnknown(key, owner.untilMs));
    if (owner.state === 'present') {
      const person = directory.find(environmentId, owner.personId);
      const now = directory.ownerOf(key);
      // It is theirs again.
      if (person && (!now || followMerges(now) !== person)) this.#lendTo(key, owner, person);
      return;
    }
    if (owner.state !== 'unmade') {
      const person = this.#people.enter(environmentId, owner);
      if (person) this.#lendTo(key, owner, person);
      return;
    }
    // A present person is given no name that has somebody now.
    const isFree =
      kind === 'anonymous_id' ||
      this.#operation.type === 'person.merge' ||
      directory.resolveStored(environmentId, kind, value).outcome === 'unknown';
    if (isFree) this.#lendTo(key, owner, undefined);
    else this.#taken.set(textOf(key), { key, owner });
  }

  /** True for a name that a present person had then and gave up since. */
  isGivenUp(key: IdentifierKey): boolean {
    return this.#loans.get(textOf(key))?.owner.state === 'present';
  }

  /** True for a name that no person had then. */
  isFree(key: IdentifierKey): boolean {
    const text = textOf(key);
    return this.#taken.has(text) || this.#loans.get(text)?.owner.state === 'unmade';
  }

  /** True for a name that no person had then, and that somebody has now. */
  isTaken(key: IdentifierKey): boolean {
    const text = textOf(key);
    const loan = this.#loans.get(text);
    return this.#taken.has(text) || (loan?.owner.state === 'unmade' && !isFreeOf(loan.before));
  }

  /**
   * Lends the names that somebody has now, and had not then. @param newer - names of people who were made since: the
   * call is about a deleted person.
   */
  lendTaken(newer: readonly IdentifierKey[] | undefined): void {
    for (const { key, owner } of this.#taken.values()) {
      const person = newer ? undefined : this.#people.enterUnknown(key, owner.untilMs);
      this.#lendTo(key, owner, person);
    }
    for (const key of newer ?? []) {
      if (!this.#loans.has(textOf(key)))
        this.#lendTo(key, { state: 'newer', personId: 0, untilMs: 0 }, undefined);
    }
    this.#set.directory.watchOwners({
      created: (person) => this.#created.add(person),
      assigned: (key, owner) => this.#assigned(key, owner),
    });
  }

  /** The names go back to whose they are now; names of the deleted people are remembered. */
  takeBack(): void {
    const { directory } = this.#set;
    directory.watchOwners(undefined);
    directory.takeNumbersBack();
    const given = [...this.#changed.values()].filter((key) => this.#isGiven(key));
    this.#people.remember(given);
    for (const loan of this.#loans.values()) this.#takeBackOne(loan);
    this.#people.leave();
    // Later calls of a visitor wait for another person.
    for (const key of given) {
      const isWaiting = this.#knownVisitors.has(textOf(key));
      if (isWaiting && isFreeOf(directory.ownerOf(key))) directory.lend(key, undefined);
    }
  }

  #lendTo(key: IdentifierKey, owner: FormerOwner, lent: PersonState | undefined): void {
    const before = this.#set.directory.lend(key, lent);
    this.#loans.set(textOf(key), { key, owner, lent, before });
  }

  #assigned(key: IdentifierKey, owner: PersonState | undefined): void {
    const text = textOf(key);
    this.#changed.set(text, key);
    const loan = this.#loans.get(text);
    if (!owner || loan?.owner.state !== 'unmade') return;
    if (this.#created.has(owner) && !owner.isFormer)
      this.#people.enterMade(owner, loan.owner.untilMs);
  }

  /** True for a name that the call gave to a deleted person. */
  #isGiven(key: IdentifierKey): boolean {
    const owner = this.#set.directory.ownerOf(key);
    if (!owner || !this.#people.has(owner)) return false;
    return this.#loans.get(textOf(key))?.lent !== owner;
  }

  #takeBackOne({ key, owner, lent, before }: Loan): void {
    const { deletions, directory } = this.#set;
    const { receivedAtMs } = this.#operation;
    const now = directory.ownerOf(key);
    const { environmentId, kind, value } = key;
    if (owner.state === 'present' && lent?.fate === 'suppressed' && isFreeOf(before)) {
      // All names of the person are blocked, this one too.
      directory.assign(environmentId, kind, value, lent);
    } else if (now === lent) {
      directory.lend(key, before);
    } else if (lent) {
      // The call took the name away from the deleted person.
      if (owner.state === 'deleted') deletions.endEarlier(key, owner, receivedAtMs);
      directory.lend(key, before);
    } else if (!isFreeOf(before)) {
      directory.lend(key, before);
    } else if (now && !this.#people.has(now)) {
      deletions.endEarlier(key, owner, receivedAtMs);
    }
  }
}

/** True without an owner, and for one who is gone now. */
function isFreeOf(owner: PersonState | undefined): boolean {
  const now = owner && followMerges(owner);
  return now === undefined || now.fate === 'removed';
}

const textOf = ({ environmentId, kind, value }: IdentifierKey): string =>
  identifierText(environmentId, kind, value);
