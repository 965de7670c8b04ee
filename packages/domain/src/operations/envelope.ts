/** Commit batch: operations that a worker applies in one transaction. Intake commits them together. */
import type { QueuedOperation } from './packed-event.ts';

/** The content of one group commit: 1 to 1,000 operations of any workspaces, all of one shard, in order. */
export interface CommitBatch {
  /** ULID made by intake; claimed in the transaction that writes its effects. */
  readonly id: string;
  readonly operations: readonly QueuedOperation[];
  /** The flush of which it is a part, if one call of that flush spans its parts; a ULID. */
  readonly flushId?: string;
  /** With `flushId`: the place of each operation in the flush (`flush-places.ts`). */
  readonly places?: string;
  /** It waited in the disk buffer of an intake or in the dead-letter table. */
  readonly isReplayed?: true;
  /**
   * W3C trace context, if a call in it is traced. Commit batches of versions before 0025 do not have it, and their
   * workers ignore it.
   */
  readonly traceparent?: string;
}

/** Id of the part of a commit batch that is of one workspace, if the batch is applied workspace by workspace. */
export const partIdOf = (id: string, environmentId: number): string => `${id}/${environmentId}`;

/** Id that marks the end of a commit batch that is applied workspace by workspace. */
export const endIdOf = (id: string): string => `${id}/`;

/** Id of the commit batch of a part; of a whole one its own. */
export function wholeIdOf(id: string): string {
  const end = id.indexOf('/');
  return end === -1 ? id : id.slice(0, end);
}
