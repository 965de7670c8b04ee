/**
 * Names of deleted and suppressed people, for late calls.
 *
 * A late call waited in an intake's disk buffer while the broker was away, or in the dead-letter table. If it was
 * acknowledged before a person was deleted, and comes after the deletion, it would make the person anew. The times of
 * receipt are compared, for the order of the broker's log does not decide here. `apply/late-calls.ts` has the rules.
 *
 * A name is remembered with its former owners and the time until which each had it. Under the number of a deleted person
 * are the names that they had, for a call means a person by one name and gives them another. Rows of earlier versions
 * are without owners: such an owner counts as one who lacked both an id and an email, unless a mark shows one.
 */
import type { Operation } from '../operations/operation.ts';
import type {
  DeletedIdentifier,
  DeletedKind,
  DeletedNames,
  IdentifierKey,
  PersonKey,
} from './loaded-state.ts';

/** Of these kinds, earlier versions kept a mark for a name whose owner had one. */
const MARKED_KINDS = ['id', 'email'] as const;

/** A call made the owner and is late itself; or the name was given up before its owner was deleted. */
const NOBODY = 'nobody';
const FREE = 'free';
const BLOCKED = ' blocked';

/** A stored name, or the number of a person. */
export interface FormerKey {
  readonly environmentId: number;
  readonly kind: IdentifierKey['kind'] | 'svc_id';
  readonly value: string;
}

/** Whom a name meant when a late call was received; it was theirs until a time. */
export interface FormerOwner {
  /**
   * `deleted`: the name was theirs. `blocked`: it was suppressed. `unmade`: no person had it, or a call that is late too
   * made them. `newer`: the person who has it was made since. `unknown`: of an earlier version.
   */
  readonly state: 'deleted' | 'blocked' | 'unmade' | 'newer' | 'unknown';
  /** Zero unless `deleted` or `blocked`. */
  readonly personId: number;
  readonly untilMs: number;
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

export class Deletions {
  readonly #remembered = new Map<string, DeletedIdentifier>();
  readonly #added = new Map<string, DeletedIdentifier>();

  constructor(stored: readonly DeletedIdentifier[]) {
    for (const each of stored) keepIn(this.#remembered, each);
  }

  get isEmpty(): boolean {
    return this.#remembered.size === 0;
  }

  /** The name was the person's until a time; a later word about the same person and name replaces it. */
  addName(key: FormerKey, personId: number, untilMs: number): void {
    this.#add(key, untilMs, { [personId]: untilMs });
  }

  /** The person had these names when they were deleted. */
  addPerson(person: PersonKey, names: DeletedNames, deletedAtMs: number): void {
    this.#add(numberKeyOf(person), deletedAtMs, { [person.personId]: deletedAtMs }, names);
  }

  /** A name that was blocked was so until a time. */
  addBlocked(key: FormerKey, personId: number, untilMs: number): void {
    this.#add(key, untilMs, { [`${personId}${BLOCKED}`]: untilMs });
  }

  /** The name had no person when it was deleted. */
  addUnmade(key: FormerKey, untilMs: number): void {
    const known = this.#remembered.get(textOf(key))?.owners?.[NOBODY] ?? 0;
    this.#add(key, untilMs, { [NOBODY]: Math.max(known, untilMs) });
  }

  /** A late call gave the name to a present person: from then on it means them. */
  endUnmade(key: FormerKey, { untilMs }: FormerOwner, atMs: number): void {
    this.#add(key, untilMs, { [NOBODY]: atMs, [FREE]: untilMs });
  }

  /** A late call took the name away from a person who was deleted later. */
  endName(key: FormerKey, { personId, untilMs }: FormerOwner, atMs: number): void {
    this.#add(key, untilMs, { [personId]: atMs, [FREE]: untilMs });
  }

  /** The deleted person had one more name. */
  addFurtherName(key: FormerKey, personId: number, untilMs: number): void {
    const { environmentId } = key;
    const number = this.#remembered.get(textOf(numberKeyOf({ environmentId, personId })));
    this.#add(key, number?.deletedAtMs ?? untilMs, {
      ...number?.owners,
      [personId]: untilMs,
    });
  }

  /** Each added one once. */
  added(): DeletedIdentifier[] {
    return [...this.#added.values()];
  }

  /** The names of a deleted person; undefined if they are not remembered. */
  namesOf(person: PersonKey): DeletedNames | undefined {
    return this.#remembered.get(textOf(numberKeyOf(person)))?.names ?? undefined;
  }

  /** When the person was deleted; undefined if that is not remembered. */
  deletedAtMs(person: PersonKey): number | undefined {
    return this.#remembered.get(textOf(numberKeyOf(person)))?.owners?.[person.personId];
  }

  /** When the person was deleted, or the end of their suppression; undefined if that is not remembered. */
  goneAtMs(person: PersonKey): number | undefined {
    return this.#remembered.get(textOf(numberKeyOf(person)))?.deletedAtMs;
  }

  /** Whom the name meant when the call was received; undefined if it means now whom it meant then. */
  ownerAt(key: FormerKey, { receivedAtMs }: Operation): FormerOwner | undefined {
    const { environmentId } = key;
    const row = this.#remembered.get(textOf(key));
    if (!row || row.deletedAtMs <= receivedAtMs) return undefined;
    let owner: string | undefined;
    let untilMs = Infinity;
    let lastMs = 0;
    for (const [each, endedAtMs] of Object.entries(row.owners ?? {})) {
      lastMs = Math.max(lastMs, endedAtMs);
      if (endedAtMs <= receivedAtMs || endedAtMs >= untilMs) continue;
      // They gave it up, and are not deleted.
      if (/^\d+$/.test(each) && !this.namesOf({ environmentId, personId: Number(each) })) continue;
      owner = each;
      untilMs = endedAtMs;
    }
    // An earlier version deleted the name since.
    if (lastMs < row.deletedAtMs && owner === undefined)
      return { state: 'unknown', personId: 0, untilMs: row.deletedAtMs };
    if (owner === undefined || owner === FREE) return undefined;
    if (owner === NOBODY) return { state: 'unmade', personId: 0, untilMs };
    const state = owner.endsWith(BLOCKED) ? 'blocked' : 'deleted';
    return { state, personId: Number.parseInt(owner, 10), untilMs };
  }

  /** Kinds of names that an unknown owner had. */
  marksOf({ environmentId, kind, value }: IdentifierKey): readonly ('id' | 'email')[] {
    const row = this.#remembered.get(textOf({ environmentId, kind, value }));
    return MARKED_KINDS.filter((held) => {
      const mark = this.#remembered.get(
        textOf({ environmentId, kind: `${kind} with ${held}`, value }),
      );
      return mark !== undefined && mark.deletedAtMs === row?.deletedAtMs;
    });
  }

  #add(
    { environmentId, kind, value }: FormerKey,
    deletedAtMs: number,
    owners: Readonly<Record<string, number>>,
    names: DeletedNames | null = null,
  ): void {
    const added = { environmentId, kind, value, deletedAtMs, owners, names };
    keepIn(this.#remembered, added);
    keepIn(this.#added, added);
  }
}

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
    owners: known.owners || row.owners ? { ...known.owners, ...row.owners } : null,
    names: known.names || row.names ? { ...known.names, ...row.names } : null,
  });
}

const numberKeyOf = ({ environmentId, personId }: PersonKey) =>
  ({ environmentId, kind: 'svc_id', value: String(personId) }) as const;

const textOf = ({
  environmentId,
  kind,
  value,
}: {
  readonly environmentId: number;
  readonly kind: DeletedKind;
  readonly value: string;
}): string => `${environmentId}\u0000${kind}\u0000${value}`;
