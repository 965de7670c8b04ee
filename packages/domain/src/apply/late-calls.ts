/**
 * Late calls: acknowledged before a deletion, a merge or the loss of a name, and applied after it.
 *
 * A late call is applied to people as they were when it was received: deleted people are there with the names that they
 * had (`state/former/former-people.ts`), and each name is whose it was (`past-names.ts`). The ordinary rules then find the person of
 * the call and the receiver of a name. Afterwards the deleted people are gone again:
 *
 * ```
 * the call means a deleted person ─▶ no effect on people, recorded; objects that it names are made
 * it gives them a further name ────▶ remembered with the deletion; blocked, if they are suppressed
 * ```
 */
import { namedIdentifiers } from '../operations/named-identifiers.ts';
import type { Operation, PersonIdentifier, PersonRelationship } from '../operations/operation.ts';
import { storedValue } from '../operations/state-keys.ts';
import { findStateNeeds } from '../state/find-state-needs.ts';
import type { IdentifierKey } from '../state/loaded-state.ts';
import { loaded } from '../state/person-directory.ts';
import type { FormerOwner } from '../state/replayed-calls.ts';
import type { WorkingSet } from '../state/working-set.ts';
import { svcId } from '../values/svc-id.ts';
import { recordNotFound, recordSuppressed } from './find-person.ts';
import { FormerPeople } from '../state/former/former-people.ts';
import { PastNames } from '../state/former/past-names.ts';

/** Applies the call to people as they were when it was received. */
export function applyLate(
  set: WorkingSet,
  operation: Operation,
  apply: (operation: Operation) => void,
): void {
  // Freeing counts for the present owner of the name.
  if (operation.type === 'person.unsuppress' || set.deletions.isEmpty) return apply(operation);
  const call = new LateCall(set, operation);
  const rest = call.begin();
  if (rest) apply(rest);
  call.end();
}

class LateCall {
  readonly #set: WorkingSet;
  readonly #operation: Operation;
  readonly #people: FormerPeople;
  readonly #names: PastNames;

  constructor(set: WorkingSet, operation: Operation) {
    this.#set = set;
    this.#operation = operation;
    this.#people = new FormerPeople(set, operation);
    this.#names = new PastNames(set, operation, this.#people);
  }

  /** The call without its deleted people; undefined if it takes a name away from somebody. */
  begin(): Operation | undefined {
    const { deletions } = this.#set;
    const operation = this.#operation;
    const { identifiers, people } = findStateNeeds([operation]);
    for (const { environmentId, personId } of people) {
      const value = String(personId);
      const owner = deletions.ownerAt({ environmentId, kind: 'svc_id', value }, operation);
      if (owner && this.#counts(owner)) this.#enterNumber(environmentId, personId, owner);
    }
    for (const key of identifiers) {
      const owner = this.#ownerOf(key);
      if (owner && !this.#counts(owner)) continue;
      this.#names.lend(key, owner);
    }
    this.#names.lendTaken(
      this.#meansDeleted() ? identifiers.filter((key) => this.#isNewer(key)) : undefined,
    );
    if (operation.type === 'person.identify')
      return { ...operation, person: this.#asOfHeir(operation.person) };
    if (operation.type === 'object.identify')
      return { ...operation, relationships: this.#present(operation.relationships) };
    if (operation.type === 'object.relationships')
      return { ...operation, entries: this.#present(operation.entries) };
    return this.#takesNameAway() || this.#renamesEarlier() ? undefined : operation;
  }

  end(): void {
    for (const person of namedBy(this.#operation)) this.#record(person);
    this.#names.takeBack();
  }

  /** Blocking the name of a person who is gone counts for its present owner. */
  #counts({ state }: FormerOwner): boolean {
    return this.#operation.type !== 'person.suppress' || state === 'present';
  }

  /** The person of a number: deleted, or merged into another one. */
  #enterNumber(environmentId: number, personId: number, owner: FormerOwner): void {
    const { directory } = this.#set;
    const person =
      owner.state === 'present'
        ? directory.find(environmentId, owner.personId)
        : this.#people.enter(environmentId, owner);
    if (person && owner.personId !== personId) directory.lendNumber(personId, person);
  }

  /**
   * Whom the name meant. Before a deleted person was made, a call about the name meant no person. A name that a call only
   * brings stays theirs, for they were perhaps made under it.
   */
  #ownerOf(key: IdentifierKey): FormerOwner | undefined {
    const { deletions } = this.#set;
    const owner = deletions.ownerAt(key, this.#operation);
    if (owner?.state === 'forgotten' && this.#counts(owner)) this.#recordForgotten(key);
    if (owner?.state !== 'deleted' || this.#isOfVisitor(key) || this.#isBrought(key)) return owner;
    // Since when a merged person was there is not remembered.
    if (owner.isHeir) return owner;
    const { environmentId } = key;
    const { personId, untilMs } = owner;
    const { createdAtMs = 0 } = deletions.namesOf({ environmentId, personId }) ?? {};
    if (createdAtMs <= this.#operation.receivedAtMs) return owner;
    return { state: 'unmade', personId: 0, untilMs };
  }

  #recordForgotten({ kind, value }: IdentifierKey): void {
    this.#set.addIssue(this.#operation, {
      code: 'person_not_found',
      field: kind,
      message: `The ${kind} "${value}" had so many owners since the call was received that the owner of that time is not known; the call changed no person. Send the call again if it still applies.`,
      sample: value,
    });
  }

  #isBrought({ kind, value }: IdentifierKey): boolean {
    return namedBy(this.#operation).every((named) => {
      const key = this.#keyOf(named);
      return key?.kind !== kind || key.value !== value;
    });
  }

  /** True for a call about a visitor alone: whom the visitor turned out to be receives it. */
  #isOfVisitor({ kind, value }: IdentifierKey): boolean {
    const operation = this.#operation;
    const [person, other] = namedBy(operation);
    if (kind !== 'anonymous_id' || person?.kind !== kind || person.value !== value) return false;
    const named = operation.type === 'person.identify' ? namedIdentifiers(operation) : [person];
    return other === undefined && named.length === 1;
  }

  /**
   * True if the call is about a deleted person by the ordinary rules, without regard to people who were made since: the
   * names that it gives were free.
   */
  #meansDeleted(): boolean {
    const operation = this.#operation;
    const [person] = namedBy(operation);
    if (!person) return false;
    if (operation.type === 'person.merge')
      return this.#isDeleted(operation.primary) || this.#isDeleted(operation.secondary);
    if (this.#isDeleted(person)) return true;
    const { kind } = person;
    const isIdentify = operation.type === 'person.identify' || operation.type === 'form.submit';
    if (!isIdentify || kind === 'svc_id' || !this.#isFreeOrNewer(person)) return false;
    const attributes = operation.type === 'form.submit' ? operation.fields : operation.attributes;
    for (const named of namedIdentifiers({ person, attributes }).slice(1)) {
      const owner = this.#set.directory.resolve(operation.environmentId, named);
      if (owner.outcome !== 'found' || this.#isFreeOrNewer(named)) continue;
      if (kind === 'anonymous_id' || loaded(owner.person).row[kind] === null)
        return owner.person.isFormer;
    }
    return false;
  }

  #isFreeOrNewer(person: PersonIdentifier): boolean {
    const key = this.#keyOf(person);
    if (!key) return false;
    const { outcome } = this.#set.directory.resolve(key.environmentId, person);
    return outcome === 'unknown' || this.#names.isTaken(key) || this.#isNewer(key);
  }

  /** True for a name of a person who was made after the call was received. */
  #isNewer({ environmentId, kind, value }: IdentifierKey): boolean {
    const owner = this.#set.directory.resolveStored(environmentId, kind, value);
    if (owner.outcome !== 'found') return false;
    const { isFormer, row } = owner.person;
    return !isFormer && row !== undefined && row.createdAtMs > this.#operation.receivedAtMs;
  }

  /** True, and recorded, for an alias that gives a present person a name that somebody has now, and had not then. */
  #takesNameAway(): boolean {
    const operation = this.#operation;
    if (operation.type !== 'person.merge') return false;
    const { environmentId, primary, secondary } = operation;
    const key = this.#keyOf(primary);
    if (!key || key.kind === 'anonymous_id' || !this.#names.isTaken(key)) return false;
    const found = this.#set.directory.resolve(environmentId, secondary);
    if (found.outcome !== 'found' || found.person.isFormer) return false;
    recordNotFound(this.#set, operation, primary);
    return true;
  }

  /**
   * True, and recorded, for an alias of a name that its owner gave up since. The name that they have in its place came
   * later than the alias.
   */
  #renamesEarlier(): boolean {
    const operation = this.#operation;
    if (operation.type !== 'person.merge' || !operation.isAlias) return false;
    const { environmentId, primary, secondary } = operation;
    const key = this.#keyOf(secondary);
    if (!key || !this.#names.isGivenUp(key) || !this.#isFreeOrNewer(primary)) return false;
    const found = this.#set.directory.resolve(environmentId, secondary);
    if (found.outcome !== 'found' || primary.kind === 'svc_id' || primary.kind === 'anonymous_id')
      return false;
    if (primary.kind !== secondary.kind && found.person.row?.[primary.kind] === null) return false;
    recordNotFound(this.#set, operation, secondary);
    return true;
  }

  /** A call by the number of a merged person replaces no name of the person they became. */
  #asOfHeir(person: PersonIdentifier): PersonIdentifier {
    if (person.kind !== 'svc_id') return person;
    const { environmentId } = this.#operation;
    const found = this.#set.directory.resolve(environmentId, person);
    if (found.outcome !== 'found' || svcId(found.person.personId) === person.value) return person;
    const { isFormer, row } = found.person;
    if (isFormer || !row) return person;
    const kind = (['id', 'email', 'phone'] as const).find((each) => row[each] !== null);
    return kind ? { kind, value: row[kind] as string } : person;
  }

  #present(entries: readonly PersonRelationship[]): readonly PersonRelationship[] {
    return entries.filter(({ person }) => {
      if (this.#record(person)) return false;
      const key = this.#keyOf(person);
      if (!key || key.kind === 'anonymous_id' || !this.#names.isFree(key)) return true;
      recordNotFound(this.#set, this.#operation, person);
      return false;
    });
  }

  #isDeleted(person: PersonIdentifier): boolean {
    const found = this.#set.directory.resolve(this.#operation.environmentId, person);
    return found.outcome === 'found' && found.person.isFormer;
  }

  /** True, and recorded, if the person is gone. */
  #record(person: PersonIdentifier): boolean {
    const found = this.#set.directory.resolve(this.#operation.environmentId, person);
    if (found.outcome !== 'found' || !found.person.isFormer) return false;
    if (this.#people.isBlocked(found.person)) recordSuppressed(this.#set, this.#operation, person);
    else recordNotFound(this.#set, this.#operation, person);
    return true;
  }

  #keyOf({ kind, value }: PersonIdentifier): IdentifierKey | undefined {
    const { environmentId } = this.#operation;
    return kind === 'svc_id' ? undefined : { environmentId, kind, value: storedValue(kind, value) };
  }
}

/** The people whom the call itself names. */
function namedBy(operation: Operation): readonly PersonIdentifier[] {
  switch (operation.type) {
    case 'person.merge':
      return [operation.primary, operation.secondary];
    case 'event.track':
      return operation.person ? [operation.person] : [];
    case 'person.identify':
    case 'person.relationships':
    case 'device.add':
    case 'device.delete':
    case 'form.submit':
      return [operation.person];
    default:
      return [];
  }
}
