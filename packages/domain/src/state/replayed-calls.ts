/**
 * Former owners of names, for late calls.
 *
 * A late call waited in an intake's disk buffer while the broker was away, or in the dead-letter table. If it was
 * acknowledged before a person was deleted, and comes after the deletion, it would make the person anew. The times of
 * receipt are compared, for the order of the broker's log does not decide here. `apply/late-calls.ts` has the rules.
 *
 * A name is remembered with its former owners and the time until which each had it (`names/name-ends.ts`), whether they
 * were deleted or gave it up. Under the number of a deleted person are the names that they had, for a call means a person
 * by one name and gives them another. Under the number of a merged person is the person they became. Rows of earlier
 * versions are without owners: such an owner counts as one who lacked both an id and an email, unless a mark shows one.
 */
import type { Operation } from '../operations/operation.ts';
import type { OrderPlace } from '../operations/order-place.ts';
import type { DeletedIdentifier, DeletedNames, IdentifierKey, PersonKey } from './loaded-state.ts';
import {
  blockedEnd,
  forgottenUntil,
  freeEnd,
  heirEnd,
  heirIn,
  nobodyEnd,
  personEnd,
  readEnds,
  type EndTime,
  type OwnerEnds,
} from './names/name-ends.ts';

/** Of these kinds, earlier versions kept a mark for a name whose owner had one. */
const MARKED_KINDS = ['id', 'email'] as const;

/** A stored name, or the number of a person. */
export interface FormerKey {
  readonly environmentId: number;
  readonly kind: IdentifierKey['kind'] | 'svc_id';
  readonly value: string;
}

/** Whom a name meant when a late call was received; it was theirs until a time. */
export interface FormerOwner {
  /**
   * `deleted`: the name was theirs. `present`: it was theirs, and they are there, perhaps as part of another person.
   * `blocked`: it was suppressed. `unmade`: no person had it, or a call that is late too made them. `newer`: the person
   * who has it was made since. `unknown`: of an earlier version. `forgotten`: it had too many owners since.
   */
  readonly state: 'deleted' | 'present' | 'blocked' | 'unmade' | 'newer' | 'unknown' | 'forgotten';
  /** Zero unless `deleted`, `present` or `blocked`. */
  readonly personId: number;
  readonly untilMs: number;
  /** As stored; absent if no end is stored. */
  readonly end?: string;
  readonly place?: OrderPlace | undefined;
  /** The owner became part of the person. */
  readonly isHeir?: boolean;
}

/** Everything that may be remembered about identifiers. */
export const deletedKeysOf = (
  keys: readonly IdentifierKey[],
  people: readonly PersonKey[],
): Pick<DeletedIdentifier, 'environmentId' | 'kind' | 'value'>[] => [
  ...keys.flatMap(({ environmentId, kind, value }) =>
    [kind, ...MARKED_KINDS.map((held) => `${kind} with ${held}` as const)].map((each) => ({
      environmentId,
      kind: each,
      value,
    })),
  ),
  ...people.map(numberKeyOf),
];

/**
 * The former owners who may be there still, beside the people whom calls name. A late call can be about one of them.
 */
export function ownersWhoMayBeThere(rows: readonly DeletedIdentifier[]): PersonKey[] {
  const gone = new Set(rows.filter(({ names }) => names !== null).map(textOf));
  const people = new Map<string, PersonKey>();
  for (const { environmentId, owners } of rows)
    for (const { personId } of readEnds(owners)) {
      const person = { environmentId, personId };
      const text = textOf(numberKeyOf(person));
      if (personId > 0 && !gone.has(text)) people.set(text, person);
    }
  return [...people.values()];
}

export class Deletions {
  readonly #remembered = new Map<string, DeletedIdentifier>();
  /** In the order of the calls. Only late calls look at them, so they are joined with the others at the first look. */
  readonly #added: DeletedIdentifier[] = [];
  #joinedCount = 0;

  constructor(stored: readonly DeletedIdentifier[]) {
    for (const each of stored) keepIn(this.#remembered, each);
  }

  get isEmpty(): boolean {
    return this.#remembered.size === 0 && this.#added.length === 0;
  }

  /** The name was the person's until a time. */
  addName(key: FormerKey, personId: number, time: EndTime): void {
    const { receivedAtMs } = time;
    this.#add(key, receivedAtMs, endOf(personEnd(personId, time), receivedAtMs));
  }

  /** The person had these names when they were deleted. */
  addPerson(person: PersonKey, names: DeletedNames, deletedAtMs: number): void {
    const owners = endOf(String(person.personId), deletedAtMs);
    this.#add(numberKeyOf(person), deletedAtMs, owners, names);
  }

  /** The person became part of another one. */
  addMerged(person: PersonKey, heirId: number, mergedAtMs: number): void {
    this.#add(numberKeyOf(person), mergedAtMs, endOf(heirEnd(heirId), mergedAtMs));
  }

  /** A name that was blocked was so until a time. */
  addBlocked(key: FormerKey, personId: number, time: EndTime): void {
    const { receivedAtMs } = time;
    this.#add(key, receivedAtMs, endOf(blockedEnd(personId, time), receivedAtMs));
  }

  /** The name had no person when it was deleted. */
  addUnmade(key: FormerKey, time: EndTime): void {
    const { receivedAtMs } = time;
    this.#add(key, receivedAtMs, endOf(nobodyEnd(time), receivedAtMs));
  }

  /**
   * A late call ended the ownership earlier: it gave the name to a present person, or took it away from a person who was
   * deleted later. From then on the name means its present owner.
   */
  endEarlier(key: FormerKey, { end, untilMs, place }: FormerOwner, atMs: number): void {
    const owners = endOf(end ?? nobodyEnd({ receivedAtMs: atMs }), atMs);
    this.#add(key, untilMs, owners.set(freeEnd({ receivedAtMs: untilMs, place }), untilMs));
  }

  /** The deleted person had one more name. */
  addFurtherName(key: FormerKey, personId: number, untilMs: number): void {
    const { environmentId } = key;
    const number = this.#find(numberKeyOf({ environmentId, personId }));
    const owners = endOf(personEnd(personId, { receivedAtMs: untilMs }), untilMs);
    for (const { owner, untilMs: receivedAtMs } of readEnds(number?.owners ?? null))
      if (owner === 'blocked') owners.set(blockedEnd(personId, { receivedAtMs }), receivedAtMs);
    this.#add(key, number?.deletedAtMs ?? untilMs, owners);
  }

  /** Each added one once. */
  added(): DeletedIdentifier[] {
    const rows = new Map<string, DeletedIdentifier>();
    for (const each of this.#added) keepIn(rows, each);
    return [...rows.values()];
  }

  /** The names of a deleted person; undefined if they are not remembered. */
  namesOf(person: PersonKey): DeletedNames | undefined {
    return this.#find(numberKeyOf(person))?.names ?? undefined;
  }

  /** When the person was deleted; undefined if that is not remembered. */
  deletedAtMs(person: PersonKey): number | undefined {
    return this.#find(numberKeyOf(person))?.owners?.get(String(person.personId));
  }

  /** When the person was deleted, or the end of their suppression; undefined if that is not remembered. */
  goneAtMs(person: PersonKey): number | undefined {
    return this.#find(numberKeyOf(person))?.deletedAtMs;
  }

  /** Whom the name meant when the call was received; undefined if it means now whom it meant then. */
  ownerAt(key: FormerKey, { receivedAtMs }: Operation): FormerOwner | undefined {
    const row = this.#find(key);
    if (!row || row.deletedAtMs <= receivedAtMs) return undefined;
    const ends = readEnds(row.owners);
    const forgottenUntilMs = forgottenUntil(row.owners, ends);
    if (receivedAtMs < forgottenUntilMs)
      return { state: 'forgotten', personId: 0, untilMs: forgottenUntilMs };
    const next = ends.find(({ untilMs }) => untilMs > receivedAtMs);
    // An earlier version deleted the name since.
    if (!next) return { state: 'unknown', personId: 0, untilMs: row.deletedAtMs };
    const { owner, personId, untilMs, text: end, place } = next;
    if (owner === 'free') return undefined;
    if (owner === 'nobody') return { state: 'unmade', personId: 0, untilMs, end, place };
    if (owner === 'blocked') return { state: 'blocked', personId, untilMs, end, place };
    const person = this.#heirOf({ environmentId: key.environmentId, personId });
    const state = this.namesOf(person) ? 'deleted' : 'present';
    // A late call of before this one deleted them, though they gave the name up later.
    const isGone = state === 'deleted' && (this.deletedAtMs(person) ?? untilMs) <= receivedAtMs;
    if (isGone) return undefined;
    const isHeir = person.personId !== personId;
    return { state, personId: person.personId, untilMs, end, place, isHeir };
  }

  /** Kinds of names that an unknown owner had. */
  marksOf({ environmentId, kind, value }: IdentifierKey): readonly ('id' | 'email')[] {
    const row = this.#find({ environmentId, kind, value });
    return MARKED_KINDS.filter((held) => {
      const mark = this.#find({ environmentId, kind: `${kind} with ${held}`, value });
      return mark !== undefined && mark.deletedAtMs === row?.deletedAtMs;
    });
  }

  /** The person, or whom they became. */
  #heirOf(person: PersonKey): PersonKey {
    const row = this.#find(numberKeyOf(person));
    const personId = heirIn(row?.owners ?? null);
    return personId === undefined
      ? person
      : this.#heirOf({ environmentId: person.environmentId, personId });
  }

  #add(
    { environmentId, kind, value }: FormerKey,
    deletedAtMs: number,
    owners: OwnerEnds,
    names: DeletedNames | null = null,
  ): void {
    this.#added.push({ environmentId, kind, value, deletedAtMs, owners, names });
  }

  #find(key: NamedRow): DeletedIdentifier | undefined {
    for (; this.#joinedCount < this.#added.length; this.#joinedCount++)
      keepIn(this.#remembered, this.#added[this.#joinedCount] as DeletedIdentifier);
    return this.#remembered.get(textOf(key));
  }
}

const endOf = (text: string, untilMs: number): Map<string, number> =>
  new Map<string, number>().set(text, untilMs);

/** As the database joins two rows (`database/src/people/deleted-identifiers.ts`). */
function keepIn(rows: Map<string, DeletedIdentifier>, row: DeletedIdentifier): void {
  const text = textOf(row);
  const known = rows.get(text);
  if (!known) {
    rows.set(text, row);
    return;
  }
  rows.set(text, {
    ...row,
    deletedAtMs: Math.max(known.deletedAtMs, row.deletedAtMs),
    owners:
      known.owners || row.owners ? new Map([...(known.owners ?? []), ...(row.owners ?? [])]) : null,
    names: known.names || row.names ? { ...known.names, ...row.names } : null,
  });
}

const numberKeyOf = ({ environmentId, personId }: PersonKey) =>
  ({ environmentId, kind: 'svc_id', value: String(personId) }) as const;

type NamedRow = Pick<DeletedIdentifier, 'environmentId' | 'kind' | 'value'>;

const textOf = ({ environmentId, kind, value }: NamedRow): string =>
  `${environmentId}\u0000${kind}\u0000${value}`;
