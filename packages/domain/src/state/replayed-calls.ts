/**
 * Names of deleted and suppressed people, for late calls.
 *
 * A late call waited in an intake's disk buffer while the broker was away, or in the dead-letter table. If it was
 * acknowledged before a person was deleted, and comes after the deletion, it would make the person anew. The times of
 * receipt are compared, for the order of the broker's log does not decide here. `apply/late-calls.ts` has the rules.
 *
 * A name is remembered with the kinds of identifiers that its owner had. Rows of earlier versions are without them, and
 * so are names that were blocked or had no owner: such an owner counts as one who lacked both, and a call is dropped.
 */
import type { Operation, PersonIdentifier } from '../operations/operation.ts';
import { storedValue } from '../operations/state-keys.ts';
import type { DeletedIdentifier, DeletedKind, IdentifierKey } from './loaded-state.ts';

/** A person without one of these kinds takes one from a call that brings it (`ingestion-conventions.md` §1.2). */
export const LACKED_KINDS = ['id', 'email'] as const;
export type LackedKind = (typeof LACKED_KINDS)[number];

/** Everything that may be remembered about identifiers. */
export const deletedKeysOf = (
  keys: readonly IdentifierKey[],
): Omit<DeletedIdentifier, 'deletedAtMs'>[] =>
  keys.flatMap(({ environmentId, kind, value }) =>
    [kind, ...LACKED_KINDS.map((held) => `${kind} with ${held}` as const)].map((each) => ({
      environmentId,
      kind: each,
      value,
    })),
  );

export class Deletions {
  /** The last deletion of each. */
  readonly #deleted = new Map<string, DeletedIdentifier>();
  readonly #added = new Set<string>();

  constructor(stored: readonly DeletedIdentifier[]) {
    for (const each of stored) this.#keep(each);
  }

  add(deleted: DeletedIdentifier): void {
    this.#added.add(this.#keep(deleted));
  }

  /** @param held - kinds of identifiers that the deleted person is known to have had. */
  addName(
    { environmentId, kind, value }: IdentifierKey,
    held: readonly LackedKind[],
    deletedAtMs: number,
  ): void {
    this.add({ environmentId, kind, value, deletedAtMs });
    for (const each of held)
      this.add({ environmentId, kind: `${kind} with ${each}`, value, deletedAtMs });
  }

  /** Each added one once. */
  added(): DeletedIdentifier[] {
    return [...this.#added].map((text) => this.#deleted.get(text) as DeletedIdentifier);
  }

  /** When the owner of the identifier was deleted; undefined if that was before the call, or if no owner was. */
  timeOf(
    { environmentId, receivedAtMs }: Operation,
    { kind, value }: PersonIdentifier,
  ): number | undefined {
    if (kind === 'svc_id') return undefined;
    const deletedAtMs = this.#timeOf(environmentId, kind, storedValue(kind, value));
    return deletedAtMs !== undefined && deletedAtMs > receivedAtMs ? deletedAtMs : undefined;
  }

  /** True for a deleted owner who is not known to have had an identifier of the kind at the last deletion. */
  isWithout(operation: Operation, named: PersonIdentifier, lacked: LackedKind): boolean {
    const deletedAtMs = this.timeOf(operation, named);
    const { kind, value } = named;
    if (kind === 'svc_id' || deletedAtMs === undefined) return false;
    const { environmentId } = operation;
    const heldAtMs = this.#timeOf(
      environmentId,
      `${kind} with ${lacked}`,
      storedValue(kind, value),
    );
    return heldAtMs !== deletedAtMs;
  }

  #timeOf(environmentId: number, kind: DeletedKind, value: string): number | undefined {
    return this.#deleted.get(textOf({ environmentId, kind, value }))?.deletedAtMs;
  }

  #keep(deleted: DeletedIdentifier): string {
    const text = textOf(deleted);
    const known = this.#deleted.get(text);
    if (!known || known.deletedAtMs < deleted.deletedAtMs) this.#deleted.set(text, deleted);
    return text;
  }
}

const textOf = ({ environmentId, kind, value }: Omit<DeletedIdentifier, 'deletedAtMs'>): string =>
  `${environmentId}\u0000${kind}\u0000${value}`;
