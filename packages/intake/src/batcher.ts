/**
 * Group commit (step 6): one flush in flight a shard; what arrives meanwhile is that shard's next
 * envelope. No timer.
 *
 * ```
 *            ┌ shard 0: [call, call, …] ─ flush ─▶ one envelope, one job ─▶ done, done, …
 *   add ─▶ ──┤ shard 1: [call, …]       ─ flush ─▶ …
 *            └ spanning: [batch, …]     ─ flush of everything that waits ─▶ one transaction
 * ```
 *
 * - What one call brought is committed together or not at all. A call of one shard is in one
 *   envelope; a call that spans shards waits until nothing is in flight and then goes with all that
 *   waits, in one transaction of the broker. Meanwhile no other flush starts, so it cannot starve.
 * - Calls are answered only after the broker's confirmation.
 * - An unconfirmed flush is sent again with the same envelope ids (its outcome is unknown, and the
 *   worker's claim makes a double harmless) until `commitDeadlineMs`; then its callers are told.
 *
 * Trades a flush's latency (one broker round trip at most) for 20 to 60 events a commit under load;
 * a lone call does not wait for company.
 *
 * Before: `accept.ts`. After: `platform/src/queue.ts`.
 */
import type { Operation } from '@sluice/domain/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/shard';
import type { ShardEnvelope } from '@sluice/platform/queue';

/**
 * Shards in flight at once. A job costs Redis and us about 100 µs whatever is in it, so few large
 * envelopes beat many small ones; a second flight hides the round trip of the first.
 */
const FLIGHTS_MAX = 2;
/** A worker's transaction and a broker's job stay small. */
const ENVELOPE_OPERATIONS_MAX = 1_000;
/** Of request bytes in one envelope, unless a single call is larger. */
const ENVELOPE_SIZE_BYTES_MAX = 1_048_576;
const RETRY_DELAY_MS = 100;

/** `unavailable`: not confirmed in time; it may still have happened, so a retry must carry the same ids. */
export type CommitOutcome = 'committed' | 'unavailable';

export interface BatcherOptions {
  readonly shardCount: number;
  /** All envelopes or none. A rejection means "not confirmed". */
  readonly commit: (envelopes: readonly ShardEnvelope[]) => Promise<void>;
  /** ULID. */
  readonly newId: () => string;
  readonly now: () => number;
  /** Request bytes held in memory before `add` refuses. */
  readonly pendingSizeBytesMax: number;
  readonly commitDeadlineMs: number;
  readonly onCommitFailure: (error: unknown) => void;
}

interface WaitingCall {
  readonly operations: readonly Operation[];
  readonly sizeBytes: number;
  readonly done: (outcome: CommitOutcome) => void;
}

interface Shard {
  waiting: WaitingCall[];
  isFlushing: boolean;
}

export class Batcher {
  readonly #options: BatcherOptions;
  readonly #shards: readonly Shard[];
  #spanning: WaitingCall[] = [];
  #flightCount = 0;
  #turn = 0;
  #isScheduled = false;
  #pendingSizeBytes = 0;
  #drained: (() => void)[] = [];
  /** Counters for `/metrics`. */
  flushCount = 0;
  envelopeCount = 0;
  operationCount = 0;

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#shards = Array.from({ length: options.shardCount }, () => ({
      waiting: [],
      isFlushing: false,
    }));
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
    const call = { operations, sizeBytes, done };
    const shard = this.#onlyShardOf(operations);
    (shard === undefined ? this.#spanning : shard.waiting).push(call);
    if (!this.#isScheduled && this.#flightCount < FLIGHTS_MAX) {
      this.#isScheduled = true;
      // After this turn of the event loop: all sockets that are readable now share the flush.
      setImmediate(this.#startFlushes);
    }
    return true;
  }

  /** Resolves when nothing is waiting or in flight and every caller has been answered. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      setImmediate(this.#startFlushes);
    });
  }

  readonly #startFlushes = (): void => {
    this.#isScheduled = false;
    if (this.#spanning.length > 0) {
      if (this.#flightCount === 0) void this.#flushEverything();
      return;
    }
    // From where the last turn ended, so that no shard waits for ever behind busier ones.
    for (let tried = 0; tried < this.#shards.length && this.#flightCount < FLIGHTS_MAX; tried++) {
      this.#turn = (this.#turn + 1) % this.#shards.length;
      const shard = this.#shards[this.#turn] as Shard;
      if (shard.waiting.length > 0 && !shard.isFlushing) void this.#flushShard(this.#turn, shard);
    }
    // Behind the answers, which may bring new calls.
    if (this.#flightCount === 0 && this.#drained.length > 0) setImmediate(this.#resolveDrained);
  };

  readonly #resolveDrained = (): void => {
    if (this.#flightCount > 0 || this.#isScheduled) return;
    for (const resolve of this.#drained.splice(0)) resolve();
  };

  #flushShard(index: number, shard: Shard): Promise<void> {
    const calls = takeEnvelope(shard);
    const operations: Operation[] = [];
    for (const call of calls) operations.push(...call.operations);
    return this.#flush(calls, [this.#envelope(index, operations)], shard);
  }

  #flushEverything(): Promise<void> {
    const calls = [
      ...this.#shards.flatMap((shard) => shard.waiting.splice(0)),
      ...this.#spanning.splice(0),
    ];
    const byShard: Operation[][] = this.#shards.map(() => []);
    for (const call of calls) {
      for (const operation of call.operations)
        byShard[this.#shardIndexOf(operation)]?.push(operation);
    }
    const envelopes = byShard.flatMap((operations, index) =>
      inEnvelopes(operations).map((part) => this.#envelope(index, part)),
    );
    return this.#flush(calls, envelopes);
  }

  /** Commits, then lets the next flush go before the callers are answered: the broker works meanwhile. */
  async #flush(
    calls: readonly WaitingCall[],
    envelopes: readonly ShardEnvelope[],
    shard?: Shard,
  ): Promise<void> {
    this.#flightCount++;
    if (shard) shard.isFlushing = true;
    this.flushCount++;
    this.envelopeCount += envelopes.length;
    const outcome = await this.#commit(envelopes);
    this.#flightCount--;
    if (shard) shard.isFlushing = false;
    for (const call of calls) this.#pendingSizeBytes -= call.sizeBytes;
    setImmediate(answer, calls, outcome);
    this.#startFlushes();
  }

  #envelope(shard: number, operations: readonly Operation[]): ShardEnvelope {
    this.operationCount += operations.length;
    return { shard, envelope: { id: this.#options.newId(), operations } };
  }

  #shardIndexOf(operation: Operation): number {
    return shardOf(operation.environmentId, shardKeyOf(operation), this.#options.shardCount);
  }

  /** Undefined where they are of several shards, or more than one envelope holds. */
  #onlyShardOf(operations: readonly Operation[]): Shard | undefined {
    if (operations.length > ENVELOPE_OPERATIONS_MAX) return undefined;
    const index = this.#shardIndexOf(operations[0] as Operation);
    for (let n = 1; n < operations.length; n++) {
      if (this.#shardIndexOf(operations[n] as Operation) !== index) return undefined;
    }
    return this.#shards[index];
  }

  async #commit(envelopes: readonly ShardEnvelope[]): Promise<CommitOutcome> {
    const { commit, now, commitDeadlineMs, onCommitFailure } = this.#options;
    const deadlineMs = now() + commitDeadlineMs;
    for (;;) {
      try {
        await commit(envelopes);
        return 'committed';
      } catch (error) {
        onCommitFailure(error);
        if (now() + RETRY_DELAY_MS >= deadlineMs) return 'unavailable';
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
    }
  }
}

/** From the front, as much as one envelope holds: at least one call. */
function takeEnvelope(shard: Shard): readonly WaitingCall[] {
  let count = 0;
  let operationCount = 0;
  let sizeBytes = 0;
  for (const call of shard.waiting) {
    operationCount += call.operations.length;
    sizeBytes += call.sizeBytes;
    if (
      count > 0 &&
      (operationCount > ENVELOPE_OPERATIONS_MAX || sizeBytes > ENVELOPE_SIZE_BYTES_MAX)
    )
      break;
    count++;
  }
  if (count < shard.waiting.length) return shard.waiting.splice(0, count);
  const all = shard.waiting;
  shard.waiting = [];
  return all;
}

function inEnvelopes(operations: readonly Operation[]): Operation[][] {
  const parts: Operation[][] = [];
  for (let from = 0; from < operations.length; from += ENVELOPE_OPERATIONS_MAX) {
    parts.push(operations.slice(from, from + ENVELOPE_OPERATIONS_MAX));
  }
  return parts;
}

function answer(calls: readonly WaitingCall[], outcome: CommitOutcome): void {
  for (const call of calls) call.done(outcome);
}
