/**
 * One pass over the queue of a shard whose head waits.
 *
 * It knows how far it has come, and which workspaces wait: those have a part before that place that is not applied. Each
 * batch that it has passed has parts of these workspaces only, so no batch need be looked at again. A queue that others
 * have changed before that place makes it begin again. Used by `apply-apart.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { FurtherBatches } from '@sluice/platform/consumers/queue-behind';

/** Batches and operations at a time, as a transaction of a shard may hold (`consumers/queue-behind.ts`). */
const WINDOW_COUNT_MAX = 128;
const WINDOW_OPERATIONS_MAX = 1_000;
/** Batches behind the head that wait. The queue takes longer for each of them to remove a later one. */
const PASSED_COUNT_MAX = 20_000;

export class Pass {
  /** Workspaces with an unapplied part at or before the place of the pass, each with the first one. */
  readonly waiting: Map<number, CommitBatch>;
  readonly #head: CommitBatch;
  readonly #backCount: number;
  #isHeadPassed: boolean;
  /** Of the passed batches behind the head, in the queue: their number, and the id of the last one. */
  #passedCount: number;
  #lastPassedId: string | undefined;

  private constructor(head: CommitBatch, backCount: number, before?: Pass) {
    this.#head = head;
    this.#backCount = backCount;
    this.waiting = before?.waiting ?? new Map<number, CommitBatch>();
    this.#isHeadPassed = before !== undefined;
    this.#passedCount = before ? before.#passedCount - 1 : 0;
    this.#lastPassedId = before ? before.#lastPassedId : undefined;
  }

  /**
   * The pass to go on with.
   *
   * @param backCount - of `AwayTenants`: after a change, a workspace of `waiting` may have come back.
   */
  static next(current: Pass | undefined, head: CommitBatch, backCount: number): Pass {
    if (!current || current.#backCount !== backCount) return new Pass(head, backCount);
    if (current.#head.id === head.id) return current;
    // The head has left the queue. The next one was passed too, if any behind the head was.
    const isPassed =
      current.#passedCount > 1 || (current.#passedCount === 1 && current.#lastPassedId === head.id);
    return isPassed ? new Pass(head, backCount, current) : new Pass(head, backCount);
  }

  /** The next batches, in order. Empty at the end of the queue, and behind `PASSED_COUNT_MAX` batches that wait. */
  async readWindow(further: FurtherBatches): Promise<readonly CommitBatch[]> {
    if (!this.#isHeadPassed)
      return withinBounds([this.#head, ...(await this.#listBehind(further, 0))]);
    if (this.#passedCount === 0) return withinBounds(await this.#listBehind(further, 0));
    if (this.#passedCount >= PASSED_COUNT_MAX) return [];
    // The last passed one must still have its place.
    const [last, ...next] = await further.listFurther(WINDOW_COUNT_MAX + 1, this.#passedCount - 1);
    if (last?.id === this.#lastPassedId) return withinBounds(next);
    this.#beginAgain();
    return [this.#head];
  }

  /** @param left - the ones of the window that stay in the queue, in order. */
  moveBehind(left: readonly CommitBatch[]): void {
    const behind = left.filter(({ id }) => id !== this.#head.id);
    this.#isHeadPassed = true;
    this.#passedCount += behind.length;
    this.#lastPassedId = behind.at(-1)?.id ?? this.#lastPassedId;
  }

  /** @param parts - of a workspace of the window, in order, the first one unapplied. */
  wait(environmentId: number, [first]: readonly CommitBatch[]): void {
    if (first) this.waiting.set(environmentId, first);
  }

  async #listBehind(further: FurtherBatches, skipped: number): Promise<readonly CommitBatch[]> {
    const listed = await further.listFurther(WINDOW_COUNT_MAX, skipped);
    // A head that waits again has been taken from this worker, whose claims will be found.
    return listed.some(({ id }) => id === this.#head.id) ? [] : listed;
  }

  #beginAgain(): void {
    this.waiting.clear();
    this.#isHeadPassed = false;
    this.#passedCount = 0;
    this.#lastPassedId = undefined;
  }
}

function withinBounds(batches: readonly CommitBatch[]): readonly CommitBatch[] {
  let capacity = WINDOW_OPERATIONS_MAX;
  const end = batches.findIndex(({ operations }, place) => {
    capacity -= operations.length;
    return capacity < 0 && place > 0;
  });
  return end === -1 ? batches : batches.slice(0, end);
}
