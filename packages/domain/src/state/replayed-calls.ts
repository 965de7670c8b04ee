/**
 * Calls from an intake's disk buffer, late because the broker was away.
 *
 * A call that was acknowledged before a person was deleted, and comes after the deletion, would make the person anew.
 * It is left out, as it would have gone with the person. The times of receipt are compared, for the order of the
 * broker's log does not decide here.
 */
import type { Operation, PersonIdentifier } from '../operations/operation.ts';
import { namedIdentifiers } from '../operations/named-identifiers.ts';
import { identifierText, storedValue } from '../operations/state-keys.ts';
import type { DeletedIdentifier } from './loaded-state.ts';

export class Deletions {
  readonly #deletedAtMs = new Map<string, number>();

  constructor(deleted: readonly DeletedIdentifier[]) {
    for (const each of deleted) this.add(each);
  }

  add({ environmentId, kind, value, deletedAtMs }: DeletedIdentifier): void {
    const text = identifierText(environmentId, kind, value);
    this.#deletedAtMs.set(text, Math.max(deletedAtMs, this.#deletedAtMs.get(text) ?? 0));
  }

  /** The identifier of a person who was deleted after the call was taken; undefined if no such person exists. */
  find(operation: Operation): PersonIdentifier | undefined {
    return whomOf(operation).find(({ kind, value }) => {
      if (kind === 'svc_id') return false;
      const text = identifierText(operation.environmentId, kind, storedValue(kind, value));
      return (this.#deletedAtMs.get(text) ?? 0) > operation.receivedAtMs;
    });
  }
}

/** The people whom the operation itself is about. */
function whomOf(operation: Operation): readonly PersonIdentifier[] {
  switch (operation.type) {
    case 'person.identify':
      return namedIdentifiers(operation);
    case 'person.merge':
      return [operation.primary, operation.secondary];
    case 'person.relationships':
    case 'device.add':
    case 'device.delete':
    case 'form.submit':
      return [operation.person];
    case 'event.track':
      return operation.person ? [operation.person] : [];
    case 'object.identify':
      return operation.relationships.map(({ person }) => person);
    case 'object.relationships':
      return operation.entries.map(({ person }) => person);
    default:
      return [];
  }
}
