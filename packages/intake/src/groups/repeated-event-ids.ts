/**
 * Notices event ids that come again under another name.
 *
 * Events that name their person alone need no order among themselves, so batches of two people do not wait for each other. If
 * both have one event id, the first one must count. The second then also names the person of the first, and waits for it.
 *
 * A table of the latest ids, by their hashes. Two ids with one hash cost a wait and are no fault. Ids of another intake
 * are not known here, nor are ids of long ago: events of long ago are applied.
 *
 * Used by `groups/commit-group.ts`.
 */
import type { Operation } from '@sluice/domain/operations/operation';

/** Far more events than wait for workers that keep up; 1 MB. */
const ID_COUNT_MAX = 131_072;

export class RepeatedEventIds {
  readonly #ids = new Uint32Array(ID_COUNT_MAX);
  readonly #keys = new Uint32Array(ID_COUNT_MAX);

  /**
   * Notes an event.
   *
   * @param idHash - of its id; 0 for an id that cannot come again.
   * @param keyHash - of the key that decides its shard.
   * @returns the hash of the first event with the id, if it has another key.
   */
  note(idHash: number, keyHash: number): number | undefined {
    if (idHash === 0) return undefined;
    const place = idHash % ID_COUNT_MAX;
    if (this.#ids[place] === idHash) {
      const first = this.#keys[place] as number;
      return first === keyHash ? undefined : first;
    }
    this.#ids[place] = idHash;
    this.#keys[place] = keyHash;
    return undefined;
  }
}

/** The hash of the operation's event id; 0 for other operations. */
export const eventIdHashIn = (operation: Operation): number =>
  operation.type === 'event.track' ? eventIdHashOf(operation.environmentId, operation.eventId) : 0;

/** Four units a step, as in `assembly/write-operation.ts`; never 0. */
function eventIdHashOf(environmentId: number, eventId: string): number {
  let hash = environmentId ^ eventId.length;
  for (let index = 0; index < eventId.length; index += 4) {
    let word = 0;
    for (let at = Math.min(index + 3, eventId.length - 1); at >= index; at--)
      word = (word << 8) ^ eventId.charCodeAt(at);
    hash = Math.imul(hash ^ word, 0x85ebca6b);
    hash ^= hash >>> 15;
  }
  return hash >>> 0 || 1;
}
