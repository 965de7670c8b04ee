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
