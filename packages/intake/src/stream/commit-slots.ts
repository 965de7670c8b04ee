/**
 * Bound on stream operations that a process commits at the same time.
 *
 * ```
 *   |<────────── 1,000: workspaces take turns ──────────>|<─ 250: a workspace without a group in flight ─>|
 *   |<── 250 while single calls come ──>|
 * ```
 * A full group of one workspace fills all slots. The small group of another one does not wait for it, nor for the full
 * groups before it: some slots are kept for workspaces without a group in flight. One stream has one group in flight,
 * so it has no disadvantage; the small groups of many slow streams go together. The reason for the bound is at
 * `CommitSlots`.
 */
import { FairQueue } from '../http/fair-queue.ts';
import type { Turns } from '../http/turns.ts';
import { groupOperationsMax } from './stream-group.ts';

/** A quarter of them besides. */
const KEPT_OPERATION_COUNT_MAX = 250;

interface WaitingGroup {
  readonly operationCount: number;
  readonly begin: (slots: Slots) => void;
}

/** Operations of one kind of slot that are in flight. */
interface Slots {
  takenCount: number;
}

/**
 * The slots of one process.
 *
 * A flush carries the operations that wait for it, and a single call waits for the flush before its own and for its own. A
 * flush takes some 6 µs an operation (Redis with `appendfsync always`). With four full groups of forty streams in it, the
 * p99 of a single call was 47 ms, but 10 ms without them (`npm run bench -- hostile`). While single calls come, groups are
 * smaller too (`stream-group.ts`), and as many operations go at a time as one of those has.
 */
export class CommitSlots {
  readonly #turns: Pick<Turns, 'areCallsComing'>;
  readonly #waiting = new FairQueue<WaitingGroup>();
  readonly #common: Slots = { takenCount: 0 };
  readonly #kept: Slots = { takenCount: 0 };
  /** Groups in flight, by workspace; a workspace with 0 is absent. */
  readonly #groupCounts = new Map<number, number>();

  /** @param turns - know whether single calls come, which wait for the same flushes. */
  constructor(turns: Pick<Turns, 'areCallsComing'>) {
    this.#turns = turns;
  }

  /**
   * Resolves when a group of `owner` may be committed, with a function that must be called once when it is. A group of
   * any size is let in alone.
   */
  async take(owner: number, operationCount: number): Promise<() => void> {
    const slots = await new Promise<Slots>((begin) => {
      this.#waiting.add(owner, { operationCount, begin });
      this.#beginNext();
    });
    return () => {
      slots.takenCount -= operationCount;
      this.#countGroup(owner, -1);
      this.#beginNext();
    };
  }

  #countGroup(owner: number, change: 1 | -1): void {
    const groupCount = (this.#groupCounts.get(owner) ?? 0) + change;
    if (groupCount === 0) this.#groupCounts.delete(owner);
    else this.#groupCounts.set(owner, groupCount);
  }

  #beginNext(): void {
    this.#beginInTurn();
    for (const [owner, group] of this.#waiting.heads()) {
      const keptCount = this.#kept.takenCount + group.operationCount;
      if (this.#groupCounts.has(owner) || keptCount > KEPT_OPERATION_COUNT_MAX) continue;
      this.#waiting.delete(owner, group);
      this.#begin(owner, group, this.#kept);
    }
  }

  /** As long as the next group fits: a small one does not overtake a large one here. */
  #beginInTurn(): void {
    const operationCountMax = groupOperationsMax(this.#turns.areCallsComing);
    for (;;) {
      const next = this.#waiting.heads().next().value;
      if (!next) return;
      const [owner, group] = next;
      const takenCount = this.#common.takenCount + group.operationCount;
      if (this.#common.takenCount > 0 && takenCount > operationCountMax) return;
      this.#waiting.take();
      this.#begin(owner, group, this.#common);
    }
  }

  #begin(owner: number, group: WaitingGroup, slots: Slots): void {
    slots.takenCount += group.operationCount;
    this.#countGroup(owner, 1);
    group.begin(slots);
  }
}
