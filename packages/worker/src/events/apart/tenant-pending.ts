/**
 * Pending batches as one workspace sees them: each is its part of the workspace.
 *
 * The log and the queue have whole batches. A part is pending while its batch is in the log and this process does not
 * know that the part is applied. So the rules about order among shards hold for parts as they are (`../make-way.ts`),
 * and a workspace that waits holds its own operations only.
 *
 * Memory: for each pending batch of which parts are known, the numbers of the workspaces that are applied. It goes with
 * the batch. Used by `apply-apart.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import { beginParts, listAppliedCommitBatches } from '@sluice/database/events/commit-batch-parts';
import { partIdOf, wholeIdOf, type CommitBatch } from '@sluice/domain/operations/envelope';
import type { PendingBatches, PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import { batchKeysOf } from '@sluice/platform/queue/batch-keys';
import { partOf } from './tenant-parts.ts';

/** One a process. */
export class TenantPending {
  readonly #database: Database;
  readonly #pending: PendingBatches;
  /** Called if a batch waits of which a part is applied: a workspace waits somewhere. */
  readonly #onPartlyApplied: () => void;
  readonly #applied = new WeakMap<PendingBatch, Set<number>>();
  readonly #parts = new WeakMap<PendingBatch, Map<number, PendingBatch>>();
  readonly #wholes = new WeakMap<PendingBatch, PendingBatch>();
  /** Each with its workspace: another workspace's part of the same batch may be pending. */
  readonly #forgottenLists = new Map<PendingBatch[], number>();
  readonly #waiters = new Set<() => void>();

  constructor(database: Database, pending: PendingBatches, onPartlyApplied: () => void) {
    this.#database = database;
    this.#pending = pending;
    this.#onPartlyApplied = onPartlyApplied;
  }

  /** The parts of one workspace. */
  of(environmentId: number): PendingView {
    const pending = this.#pending;
    const partOfWhole = (whole: PendingBatch): PendingBatch => this.#partOf(whole, environmentId);
    const isPending = (part: PendingBatch): boolean => this.#isPending(part, environmentId);
    const forget = (parts: readonly PendingBatch[]): void => this.#forget(parts, environmentId);
    return {
      find: async (id) => {
        const whole = await pending.find(wholeIdOf(id));
        return whole && partOfWhole(whole);
      },
      hasEarlier: (part) => pending.hasEarlier(this.#wholeOf(part)),
      hasEarlierOrdered: (part) => pending.hasEarlierOrdered(this.#wholeOf(part)),
      earlier: (parts, keys, except) => {
        const wholes = parts.map((part) => this.#wholeOf(part));
        const found = [...pending.earlier(wholes, keys, except)].map(partOfWhole);
        const left = found.filter(isPending);
        if (left.length < found.length) this.#onPartlyApplied();
        return new Set(left);
      },
      isPending,
      isUnqueued: (part) => pending.isUnqueued(this.#wholeOf(part)),
      isOverdue: (part, durationMs) => pending.isOverdue(part, durationMs),
      leaveOut: (parts) => pending.leaveOut(parts.map((part) => this.#wholeOf(part))),
      forget,
      watchForgotten: () => {
        const ofWholes = pending.watchForgotten();
        const ofParts: PendingBatch[] = [];
        this.#forgottenLists.set(ofParts, environmentId);
        return {
          get batches() {
            return [...ofParts, ...ofWholes.batches.map(partOfWhole)];
          },
          end: () => {
            this.#forgottenLists.delete(ofParts);
            ofWholes.end();
          },
        };
      },
      changed: (durationMs) => this.#changed(durationMs),
      read: (parts) => this.#read(parts, environmentId),
      readToApply: (parts) => this.#readToApply(parts, environmentId),
      removeApplied: forget,
      remove: async (parts) => forget(parts),
    };
  }

  /** Learns the keys of a part from its content. */
  async learn(part: CommitBatch, environmentId: number): Promise<void> {
    const whole = await this.#pending.find(wholeIdOf(part.id));
    if (whole) this.#learn(whole, part, environmentId);
  }

  #learn(whole: PendingBatch, part: CommitBatch, environmentId: number): void {
    const made = { ...whole, id: part.id, ...batchKeysOf(part), otherLogIds: [] };
    this.#keep(whole, made, environmentId);
  }

  #keep(whole: PendingBatch, part: PendingBatch, environmentId: number): PendingBatch {
    const parts = this.#parts.get(whole) ?? new Map<number, PendingBatch>();
    this.#parts.set(whole, parts.set(environmentId, part));
    this.#wholes.set(part, whole);
    return part;
  }

  /** With the keys of the whole batch, until its content is known. */
  #partOf(whole: PendingBatch, environmentId: number): PendingBatch {
    const known = this.#parts.get(whole)?.get(environmentId);
    if (known) return known;
    const part = { ...whole, id: partIdOf(whole.id, environmentId), otherLogIds: [] };
    return this.#keep(whole, part, environmentId);
  }

  #wholeOf(part: PendingBatch): PendingBatch {
    return this.#wholes.get(part) ?? part;
  }

  #isPending(part: PendingBatch, environmentId: number): boolean {
    const whole = this.#wholeOf(part);
    return this.#pending.isPending(whole) && !this.#applied.get(whole)?.has(environmentId);
  }

  #forget(parts: readonly PendingBatch[], environmentId: number): void {
    for (const part of parts) {
      const whole = this.#wholeOf(part);
      if (!this.#isPending(part, environmentId)) continue;
      this.#applied.set(whole, (this.#applied.get(whole) ?? new Set()).add(environmentId));
      this.#parts.get(whole)?.delete(environmentId);
      for (const [list, owner] of this.#forgottenLists)
        if (owner === environmentId) list.push(part);
      for (const end of [...this.#waiters]) end();
    }
  }

  #changed(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#waiters.delete(end);
        resolve();
      };
      this.#waiters.add(end);
      void this.#pending.changed(durationMs).then(end);
    });
  }

  async #read(
    parts: readonly PendingBatch[],
    environmentId: number,
  ): Promise<(CommitBatch | undefined)[]> {
    const wholes = parts.map((part) => this.#wholeOf(part));
    const contents = await this.#pending.read(wholes);
    return contents.map((content, place) => {
      const whole = wholes[place];
      if (!content || !whole) return undefined;
      const part = partOf(content, environmentId);
      this.#learn(whole, part, environmentId);
      return part;
    });
  }

  /** From then on the batches are applied in parts only. A batch that was applied as a whole is left out. */
  async #readToApply(
    parts: readonly PendingBatch[],
    environmentId: number,
  ): Promise<(CommitBatch | undefined)[]> {
    const read = await this.#read(parts, environmentId);
    const ids = read.flatMap((part) => (part ? [wholeIdOf(part.id)] : []));
    await beginParts(this.#database, ids);
    const applied = await listAppliedCommitBatches(this.#database, ids);
    return read.map((part) => (part && !applied.has(wholeIdOf(part.id)) ? part : undefined));
  }
}
