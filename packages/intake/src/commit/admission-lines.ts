/**
 * Calls that wait to be admitted (`admission.ts`): a line for each workspace, in the order in which they came. The
 * workspaces take turns.
 *
 * A group has a buffer for each shard, 4 KB for operations of 200 bytes, so a waiting group takes up to twenty times
 * the size of its requests. The pending bytes (`INTAKE_PENDING_SIZE_BYTES_MAX`) have the requests; the rest is counted
 * here.
 *
 * Between `batcher.ts`, which fills the lines, and its flushes.
 */
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import type { CommitGroup } from '../groups/commit-group.ts';

/** So that a large call waits for few others. */
const GROUP_SIZE_BYTES_MAX = 524_288;

export interface Taken {
  readonly operationCount: number;
  readonly sizeBytes: number;
}

export class AdmissionLines {
  /** A `Map` keeps the order of insertion; a workspace is inserted again behind the others. No line is empty. */
  readonly #lines = new Map<number, CommitGroup[]>();
  readonly #pending: Pick<SharedCapacity, 'hold' | 'release'>;
  /** By group: bytes that it holds beside its requests' bytes, as they were counted last. */
  readonly #excessSizes = new Map<CommitGroup, number>();
  #operationCount = 0;

  /** @param pending - has the bytes of the requests. */
  constructor(pending: Pick<SharedCapacity, 'hold' | 'release'>) {
    this.#pending = pending;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** Of all lines. */
  get operationCount(): number {
    return this.#operationCount;
  }

  /** Operations that are admitted before the workspace's next call, as lines take turns: as many of each line. */
  countBefore(environmentId: number): number {
    const own = this.#lines.get(environmentId) ?? [];
    return own.reduce((sum, group) => sum + group.operationCount, 0) * this.#lines.size;
  }

  /** True if calls of the workspace wait: its next call comes behind them. */
  has(environmentId: number): boolean {
    return this.#lines.has(environmentId);
  }

  /**
   * The group that takes a call of so many operations: the last one of the workspace's line, or a new one if that has
   * `groupCountMax` operations. The call's operations are counted when the next one joins.
   */
  join(
    environmentId: number,
    operationCount: number,
    groupCountMax: number,
    openGroup: () => CommitGroup,
  ): CommitGroup {
    this.#operationCount += operationCount;
    const line = this.#lines.get(environmentId);
    const last = line?.at(-1);
    if (last !== undefined) this.#countExcess(environmentId, last);
    if (
      last !== undefined &&
      last.operationCount < groupCountMax &&
      last.sizeBytes < GROUP_SIZE_BYTES_MAX
    )
      return last;
    const group = openGroup();
    if (line) line.push(group);
    else this.#lines.set(environmentId, [group]);
    return group;
  }

  /** Takes groups as long as `mayTake` allows; it gets the groups that are taken already. */
  take(mayTake: (next: CommitGroup, taken: Taken) => boolean): CommitGroup[] {
    const groups: CommitGroup[] = [];
    const taken = { operationCount: 0, sizeBytes: 0 };
    for (;;) {
      const [next] = this.#lines;
      const group = next?.[1][0];
      if (next === undefined || group === undefined || !mayTake(group, taken)) break;
      const [environmentId, line] = next;
      line.shift();
      this.#pending.release(environmentId, this.#excessSizes.get(group) ?? 0);
      this.#excessSizes.delete(group);
      this.#lines.delete(environmentId);
      if (line.length > 0) this.#lines.set(environmentId, line);
      taken.operationCount += group.operationCount;
      taken.sizeBytes += group.sizeBytes;
      groups.push(group);
    }
    this.#operationCount -= taken.operationCount;
    return groups;
  }

  #countExcess(environmentId: number, group: CommitGroup): void {
    const excessSize = Math.max(0, group.heldSizeBytes - group.sizeBytes);
    this.#pending.hold(environmentId, excessSize - (this.#excessSizes.get(group) ?? 0));
    this.#excessSizes.set(group, excessSize);
  }
}
