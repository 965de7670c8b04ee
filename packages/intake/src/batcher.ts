/**
 * Group commit (step 6): one flush in flight; whatever arrives meanwhile is the next flush. No timer.
 *
 * ```
 *   add ─▶ waiting: [call, call, …] ── flush ──▶ one envelope a shard, all sent at once ──▶ done, done, …
 * ```
 *
 * - What one call brought is committed together or not at all: where a call in the flush spans
 *   shards, the flush is one transaction of the broker.
 * - Calls are answered only after the broker's confirmation.
 * - A flush that could be made durable nowhere is told to its callers, and not tried again.
 *
 * Trades a flush's latency (one broker round trip at most) for large envelopes under load; a lone
 * call does not wait for company. One flush for all shards rather than one a shard: a Redis with
 * `appendfsync always` writes its file once for all that reached it together, and a job costs Redis
 * and us about 100 µs whatever is in it.
 *
 * Before: `accept.ts`. After: `commit-envelopes.ts`.
 */
import type { Operation } from '@sluice/domain/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/shard';
import type { ShardEnvelope } from '@sluice/platform/queue';

/** A worker's transaction and a broker's job stay small. */
const ENVELOPE_OPERATIONS_MAX = 1_000;
/** Of request bytes in one flush, unless a single call is larger. */
const FLUSH_SIZE_BYTES_MAX = 4 * 1_048_576;

/** `unavailable`: not confirmed; it may still have happened, so a retry must carry the same ids. */
export type CommitOutcome = 'committed' | 'unavailable';

export interface BatcherOptions {
  readonly shardCount: number;
  /**
   * A rejection means "not all confirmed". `isAtomic`: all envelopes or none. `arrivedAtMs`: when intake
   * took the oldest call of the flush, Unix milliseconds.
   */
  readonly commit: (
    envelopes: readonly ShardEnvelope[],
    isAtomic: boolean,
    arrivedAtMs: number,
  ) => Promise<void>;
  /** ULID. */
  readonly newId: () => string;
  /** Request bytes held in memory before `add` refuses. */
  readonly pendingSizeBytesMax: number;
  readonly onCommitFailure: (error: unknown, envelopes: readonly ShardEnvelope[]) => void;
  /** Asked once a flush; absent: nothing is traced. */
  readonly traceFlush?: (envelopes: readonly ShardEnvelope[]) => TracedFlush | undefined;
}

/** A flush that holds calls that are traced. */
export interface TracedFlush {
  /** The same ones, marked. */
  readonly envelopes: readonly ShardEnvelope[];
  end(outcome: CommitOutcome): void;
}

interface WaitingCall {
  readonly operations: readonly Operation[];
  readonly sizeBytes: number;
  readonly done: (outcome: CommitOutcome) => void;
}

interface Flush {
  readonly calls: readonly WaitingCall[];
  readonly envelopes: readonly ShardEnvelope[];
  readonly isAtomic: boolean;
  readonly arrivedAtMs: number;
}

export class Batcher {
  readonly #options: BatcherOptions;
  #waiting: WaitingCall[] = [];
  #pendingSizeBytes = 0;
  #unansweredCount = 0;
  #isFlushing = false;
  #drained: (() => void)[] = [];
  /** Counters for `/metrics`. */
  flushCount = 0;
  envelopeCount = 0;
  operationCount = 0;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  get pendingSizeBytes(): number {
    return this.#pendingSizeBytes;
  }

  /**
   * Takes one call's operations, at least one. `done` is called exactly once, later.
   *
   * @returns false when too much is waiting; then nothing was taken and `done` is never called.
   */
  add(
    operations: readonly Operation[],
    sizeBytes: number,
    done: (outcome: CommitOutcome) => void,
  ): boolean {
    if (this.#pendingSizeBytes + sizeBytes > this.#options.pendingSizeBytesMax) return false;
    this.#pendingSizeBytes += sizeBytes;
    this.#unansweredCount++;
    this.#waiting.push({ operations, sizeBytes, done });
    if (!this.#isFlushing) {
      this.#isFlushing = true;
      // After this turn of the event loop: all sockets that are readable now share the flush.
      setImmediate(() => void this.#flushAll());
    }
    return true;
  }

  /** Resolves when every caller has been answered. */
  drain(): Promise<void> {
    if (this.#unansweredCount === 0) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  async #flushAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const flush = this.#takeFlush();
      const outcome = await this.#commit(flush);
      for (const call of flush.calls) this.#pendingSizeBytes -= call.sizeBytes;
      // Answered after the next flush is on its way, so that the broker works meanwhile: answering
      // 64 callers takes as long as the broker takes for them.
      setImmediate(this.#answer, flush.calls, outcome);
    }
    this.#isFlushing = false;
  }

  readonly #answer = (calls: readonly WaitingCall[], outcome: CommitOutcome): void => {
    for (const call of calls) call.done(outcome);
    this.#unansweredCount -= calls.length;
    if (this.#unansweredCount === 0) for (const resolve of this.#drained.splice(0)) resolve();
  };

  #takeFlush(): Flush {
    const calls = this.#takeCalls();
    const byShard: (Operation[] | undefined)[] = Array.from({ length: this.#options.shardCount });
    let isAtomic = false;
    let arrivedAtMs = Infinity;
    for (const call of calls) {
      // A call's operations are in the order in which they came.
      const receivedAtMs = call.operations[0]?.receivedAtMs ?? Infinity;
      if (receivedAtMs < arrivedAtMs) arrivedAtMs = receivedAtMs;
      let firstShard = -1;
      for (const operation of call.operations) {
        const shard = this.#shardIndexOf(operation);
        if (firstShard < 0) firstShard = shard;
        else if (shard !== firstShard) isAtomic = true;
        (byShard[shard] ??= []).push(operation);
      }
      this.operationCount += call.operations.length;
    }
    const envelopes: ShardEnvelope[] = [];
    for (const [shard, operations] of byShard.entries()) {
      if (operations === undefined) continue;
      const parts = inEnvelopes(operations);
      // One call may be cut between two envelopes.
      if (parts.length > 1) isAtomic = true;
      for (const part of parts) {
        envelopes.push({ shard, envelope: { id: this.#options.newId(), operations: part } });
      }
    }
    this.flushCount++;
    this.envelopeCount += envelopes.length;
    return { calls, envelopes, isAtomic, arrivedAtMs };
  }

  /** From the front, as much as one flush may hold: at least one call. */
  #takeCalls(): WaitingCall[] {
    let sizeBytes = 0;
    let count = 0;
    for (const call of this.#waiting) {
      sizeBytes += call.sizeBytes;
      if (count > 0 && sizeBytes > FLUSH_SIZE_BYTES_MAX) break;
      count++;
    }
    if (count < this.#waiting.length) return this.#waiting.splice(0, count);
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }

  #shardIndexOf(operation: Operation): number {
    return shardOf(operation.environmentId, shardKeyOf(operation), this.#options.shardCount);
  }

  async #commit({ envelopes, isAtomic, arrivedAtMs }: Flush): Promise<CommitOutcome> {
    const { traceFlush } = this.#options;
    const traced = traceFlush === undefined ? undefined : traceFlush(envelopes);
    let outcome: CommitOutcome = 'committed';
    try {
      await this.#options.commit(traced?.envelopes ?? envelopes, isAtomic, arrivedAtMs);
    } catch (error) {
      this.#options.onCommitFailure(error, envelopes);
      outcome = 'unavailable';
    }
    traced?.end(outcome);
    return outcome;
  }
}

function inEnvelopes(operations: Operation[]): readonly Operation[][] {
  if (operations.length <= ENVELOPE_OPERATIONS_MAX) return [operations];
  const parts: Operation[][] = [];
  for (let from = 0; from < operations.length; from += ENVELOPE_OPERATIONS_MAX) {
    parts.push(operations.slice(from, from + ENVELOPE_OPERATIONS_MAX));
  }
  return parts;
}
