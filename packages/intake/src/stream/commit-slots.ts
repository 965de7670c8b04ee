/**
 * How many operations of streams are committed at the same time, of all streams of a process.
 *
 * ```
 *   |<────────── 1,000: workspaces take turns ──────────>|<─ 250: a workspace that has none in flight ─>|
 *   |<── 250 while single calls come ──>|
 * ```
 *
 * A flush carries what waits for it, and a single call waits for the flush before its own and for its own. A flush takes
 * some 6 µs an operation (Redis with `appendfsync always`), so with four full groups in it, of forty streams, the p99 of a
 * single call was 47 ms where it is 10 ms without (`npm run bench -- hostile`). One stream has one group in flight, so it
 * loses nothing; the small groups of many slow streams go together. While single calls come, groups are smaller too
 * (`stream-group.ts`), and as many operations go at a time as one of those has.
 *
 * A full group of one workspace fills all slots. The small group of another one does not wait for it, nor for the full groups
 * that stand before it: some slots are kept for workspaces that have no group in flight.
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

export class CommitSlots {
  readonly #turns: Pick<Turns, 'areCallsComing'>;
  readonly #waiting = new FairQueue<WaitingGroup>();
  readonly #common: Slots = { takenCount: 0 };
  readonly #kept: Slots = { takenCount: 0 };
  /** Groups in flight, by workspace; none has 0. */
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
      const groupCount = this.#groupCounts.get(owner) ?? 1;
      if (groupCount > 1) this.#groupCounts.set(owner, groupCount - 1);
      else this.#groupCounts.delete(owner);
      this.#beginNext();
    };
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

  /** As long as the next group fits: none overtakes a large one here. */
  #beginInTurn(): void {
    const operationCountMax = groupOperationsMax(this.#turns.areCallsComing);
    for (;;) {
      const [owner, group] = this.#waiting.heads().next().value ?? [];
      if (owner === undefined || group === undefined) return;
      const takenCount = this.#common.takenCount + group.operationCount;
      if (this.#common.takenCount > 0 && takenCount > operationCountMax) return;
      this.#waiting.take();
      this.#begin(owner, group, this.#common);
    }
  }

  #begin(owner: number, group: WaitingGroup, slots: Slots): void {
    slots.takenCount += group.operationCount;
    this.#groupCounts.set(owner, (this.#groupCounts.get(owner) ?? 0) + 1);
    group.begin(slots);
  }
}
