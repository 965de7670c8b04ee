/**
 * Makes a flush durable (step 6b): on the broker, or in the disk buffer while the broker is away.
 *
 * ```
 *                 disk buffer empty              confirmed, in the queues or staged
 *   flush ──────────────────────▶ broker ──────────────────────▶ committed
 *     │ the buffer holds a flush    │ refused, or silent until the oldest call is `deadlineMs` old
 *     └───────────────────────▶ disk buffer ─── on disk ───────▶ committed
 *                                   │  └──── full, or the disk refuses ──▶ rejected: 503
 *                                   ▼ staged oldest first, same commit batch ids, deleted once the broker has them
 * ```
 * Order of flushes and of intakes: at `BatchCommitter`. Before: `batcher.ts`. After: `platform/src/queue/queue.ts`.
 */
import { AppError } from '@sluice/domain/values/errors';
import type { Logger } from '@sluice/platform/process/logger';
import type { Producer, ShardCommitBatch } from '@sluice/platform/queue/queue';
import { within } from '@sluice/platform/process/within';
import type { FlushStage } from '@sluice/platform/queue/staged-flushes';
import { writeFlush } from '@sluice/platform/queue/staged-flushes';
import type { BufferedFlush, DiskBuffer } from './disk-buffer.ts';
import type { IntakeLease } from './intake-lease.ts';

const STEP_FLUSHES_MAX = 32;
const STEP_SIZE_BYTES_MAX = 4 * 1_048_576;
/** A drain step that hangs for so long is given up. It may still happen; then the claim drops the second copy. */
const STEP_DEADLINE_MS = 30_000;
/** How long a new flush waits for the step under way before it goes behind it. */
const STEP_WAIT_MS_MAX = 250;
/** However old a flush is, the broker gets this long: a process that was stopped for a while is no outage. */
const ANSWER_WAIT_MS_MIN = 50;
/** Between two tries while the last staged flushes are moved. */
const ENDING_WAIT_MS = 5;
const NEVER = new AbortController().signal;
const PROBE_DEADLINE_MS = 5_000;
const PROBE_DELAY_MS_MIN = 50;
const PROBE_DELAY_MS_MAX = 1_000;
/** How long a stop goes on draining while that succeeds; the next start does the rest. */
const STOP_DRAIN_MS_MAX = 5_000;
const RETRY_AFTER_SECONDS_MAX = 60;

/**
 * `stage`: the broker has it, behind calls that other intakes have yet to hand over, in no queue. `spill`: a copy is on
 * disk, and the broker's client may still hold the bytes and send them.
 */
export type CommittedTo = 'broker' | 'stage' | 'spill';

export interface BatchCommitterOptions {
  readonly producer: Pick<Producer, 'addFlush' | 'durability' | 'isAtomicAcrossShards'> & {
    readonly stage: Pick<FlushStage, 'put'>;
  };
  readonly diskBuffer: DiskBuffer;
  readonly lease: Pick<
    IntakeLease,
    | 'beforeKeeping'
    | 'kept'
    | 'leaveUncounted'
    | 'staged'
    | 'brokerNow'
    | 'untilPassed'
    | 'reported'
    | 'isLate'
  >;
  /** Unix milliseconds: the time of calls. */
  readonly now: () => number;
  /** Milliseconds that never go back, for the measuring of durations. */
  readonly monotonicNow: () => number;
  /** How long a call may wait for the broker, from when intake took it. */
  readonly deadlineMs: number;
  /** Waits, and returns early when `signal` is aborted. */
  readonly pause: (durationMs: number, signal: AbortSignal) => Promise<void>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

const REFUSAL_TOLD_INTERVAL_MS = 60_000;

/**
 * The committer of one process.
 *
 * Order: a flush goes to the broker only while the disk buffer is empty, and a flush in the buffer stays there until the
 * broker has confirmed it. So a flush of unknown outcome (the broker hung) is in the buffer before the next one is looked
 * at, and is confirmed before the next one is sent. A flush that reaches the broker late is a second copy of ids that were
 * added before, and the worker's claim drops it.
 *
 * The broker refuses the flushes of an intake that it has missed for too long, until that has reported again. From then
 * on they are marked as late.
 *
 * Order among intakes: `intake-lease.ts`. While any intake may have calls on its disk, the broker stages a new flush and
 * does not add it to the queues. Staged flushes go to the queues by their time.
 *
 * A Redis Cluster cannot commit a flush of several shards together. An atomic flush is written to the disk buffer there
 * first and forgotten when every shard is confirmed. After a cut in between, the next start adds the missing shards, so a
 * call takes effect wholly or not at all.
 *
 * The drain ends under load too: while it makes progress each new flush waits for the step under way, and a step takes at
 * least two if there are two. Any refusal counts as away (full, out of memory, read-only, no password): it is tried again
 * for ever, in order, and every flush is kept. `/readyz` and the log show that it is stuck. A Redis that is nearly full
 * gets no flush (`BROKER_FULL`), so that workers have memory to take jobs with. The disk buffer fills then.
 */
export class BatchCommitter {
  readonly #options: BatchCommitterOptions;
  readonly #stopping = new AbortController();
  #draining: Promise<void> | undefined;
  #step: Promise<boolean> | undefined;
  /** True if the broker's last answer was a confirmation. */
  #isBrokerBack = true;
  #awaySinceMs: number | undefined;
  #drainStartedAtMs = 0;
  #drainedSizeBytes = 0;
  #lastMovedAtMs: number;
  #stopAtMs = Infinity;
  #refusalToldAtMs = -Infinity;

  /** Begins with the flushes that an earlier process left, before any new one. */
  constructor(options: BatchCommitterOptions) {
    this.#options = options;
    this.#lastMovedAtMs = options.monotonicNow();
    if (!options.diskBuffer.isEmpty) {
      this.#isBrokerBack = false;
      options.logger.info(
        { envelopes: options.diskBuffer.commitBatchCount, sizeBytes: options.diskBuffer.sizeBytes },
        'an earlier process left calls in the local disk buffer; intake sends them first',
      );
      this.#startDraining();
    }
  }

  /** When the disk buffer was last empty, or something last left it; by the clock that is never set. */
  get lastMovedAtMs(): number {
    return this.#options.diskBuffer.isEmpty ? this.#options.monotonicNow() : this.#lastMovedAtMs;
  }

  /**
   * Makes one flush durable. Call it for one flush at a time. It takes at most the deadline, counted from
   * `arrivedAtMs` (Unix milliseconds, of the oldest call), and a write to the disk. So a call that has waited for a
   * slow flush does not wait as long again for its own. `sizes`: request bytes, by workspace.
   *
   * @throws AppError BROKER_UNAVAILABLE when neither the broker nor the disk took it.
   */
  async commit(
    commitBatches: readonly ShardCommitBatch[],
    isAtomic: boolean,
    arrivedAtMs: number,
    sizes: ReadonlyMap<number, number>,
  ): Promise<CommittedTo> {
    const { producer, diskBuffer, lease, now, monotonicNow, deadlineMs, logger } = this.#options;
    if (this.#step && this.#isBrokerBack && !(await isSettledWithin(this.#step, STEP_WAIT_MS_MAX)))
      this.#isBrokerBack = false;
    if (!diskBuffer.isEmpty) {
      this.#keep(commitBatches, sizes, 'the local disk buffer drains first');
      this.#startDraining();
      await lease.untilPassed();
      return 'spill';
    }
    const kept =
      isAtomic && !producer.isAtomicAcrossShards
        ? this.#keep(commitBatches, sizes, 'not asked yet')
        : undefined;
    lease.leaveUncounted(kept?.position);
    try {
      const leftMs = Math.min(deadlineMs, arrivedAtMs + deadlineMs - now());
      const waitMs = Math.max(ANSWER_WAIT_MS_MIN, leftMs);
      const committedTo = await within(waitMs, this.#addOrStage(commitBatches));
      if (kept) diskBuffer.deleteOldest([kept]);
      this.#awaySinceMs = undefined;
      return committedTo;
    } catch (error) {
      this.#isBrokerBack = false;
      if (this.#awaySinceMs === undefined) {
        this.#awaySinceMs = monotonicNow();
        logger.warn(
          { error },
          'the broker confirms no flush; intake writes calls to the local disk buffer. Check that the broker runs',
        );
      }
      this.#lastMovedAtMs = monotonicNow();
      await lease.beforeKeeping();
      try {
        if (!kept) this.#keep(commitBatches, sizes, error);
      } finally {
        lease.leaveUncounted();
        lease.kept();
      }
      this.#startDraining();
      await lease.untilPassed();
      return 'spill';
    }
  }

  /** Adds them to the queues, or behind calls that other intakes have acknowledged and not handed over yet. */
  async #addOrStage(commitBatches: readonly ShardCommitBatch[]): Promise<'broker' | 'stage'> {
    const { producer, diskBuffer, lease, pause } = this.#options;
    let outcome = await producer.addFlush(commitBatches, diskBuffer.id);
    for (let waitedMs = 0; outcome === 'ending' && waitedMs < STEP_WAIT_MS_MAX;) {
      // Else flushes would be staged as fast as they are moved, for as long as there are any.
      await pause(ENDING_WAIT_MS, NEVER);
      waitedMs += ENDING_WAIT_MS;
      outcome = await producer.addFlush(commitBatches, diskBuffer.id);
    }
    if (outcome === 'added') return 'broker';
    await producer.stage.put([{ atMs: undefined, text: writeFlush(commitBatches) }], diskBuffer.id);
    lease.staged();
    return 'stage';
  }

  /**
   * When a call that is refused now should be sent again: when a tenth of the disk buffer is free, at the present rate.
   * While the buffer does not drain: after half of the time that the broker has been away.
   */
  retryAfterSeconds(): number {
    const { monotonicNow, diskBuffer } = this.#options;
    let waitMs = 0;
    if (this.#isBrokerBack && this.#drainedSizeBytes > 0) {
      const ratePerMs =
        this.#drainedSizeBytes / Math.max(1, monotonicNow() - this.#drainStartedAtMs);
      waitMs = (diskBuffer.sizeBytes - 0.9 * diskBuffer.sizeBytesMax) / ratePerMs;
    } else if (this.#awaySinceMs !== undefined) {
      waitMs = (monotonicNow() - this.#awaySinceMs) / 2;
    }
    return Math.min(RETRY_AFTER_SECONDS_MAX, Math.max(1, Math.ceil(waitMs / 1_000)));
  }

  /** Drains while that succeeds, for seconds; the rest stays on disk for the next start. The disk buffer stays open. */
  async stop(): Promise<void> {
    this.#stopAtMs = this.#options.monotonicNow() + STOP_DRAIN_MS_MAX;
    this.#stopping.abort();
    await this.#draining;
    if (!this.#options.diskBuffer.isEmpty) {
      this.#options.logger.warn(
        { envelopes: this.#options.diskBuffer.commitBatchCount },
        'calls stay in the local disk buffer; the next start with this directory sends them',
      );
    }
  }

  #keep(
    commitBatches: readonly ShardCommitBatch[],
    sizes: ReadonlyMap<number, number>,
    brokerFailure: unknown,
  ): BufferedFlush {
    const { diskBuffer, lease, now } = this.#options;
    try {
      const kept = diskBuffer.append(commitBatches, sizes, now(), lease.brokerNow());
      if (kept) return kept;
      throw new Error('the local disk buffer is full');
    } catch (cause) {
      throw new AppError(
        'BROKER_UNAVAILABLE',
        `neither the broker (${String(brokerFailure)}) nor the local disk buffer (${String(cause)}) accepted a flush; intake refuses calls until one of them does. Check that the broker runs and the disk has space`,
        { cause },
      );
    }
  }

  #startDraining(): void {
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    const { diskBuffer, monotonicNow, logger } = this.#options;
    let flushesMax = 1;
    let failureCount = 0;
    this.#awaySinceMs ??= monotonicNow();
    while (!diskBuffer.isEmpty) {
      if (!this.#isBrokerBack && !(await this.#isBrokerAnswering(failureCount++))) {
        if (this.#stopping.signal.aborted) break;
        continue;
      }
      if (monotonicNow() >= this.#stopAtMs) break;
      this.#step = this.#moveOldest(flushesMax);
      const isMoved = await this.#step;
      this.#step = undefined;
      // Begins with one flush: a flush that the broker refuses is then alone, and a broker that has just started is not
      // flooded.
      flushesMax = isMoved ? Math.min(flushesMax * 2, STEP_FLUSHES_MAX) : 1;
      if (isMoved) failureCount = 0;
      else if (this.#stopping.signal.aborted) break;
    }
    // No `await` since the disk buffer was found empty, so the next append starts a new drain.
    this.#draining = undefined;
    if (!diskBuffer.isEmpty) return;
    this.#awaySinceMs = undefined;
    this.#drainedSizeBytes = 0;
    logger.info({}, 'the local disk buffer is empty; calls go to the broker again');
  }

  /**
   * Asks with something small: commands that hang stay in memory, and those must not be commit batches. The report shows
   * whether others have gone on meanwhile.
   */
  async #isBrokerAnswering(failureCount: number): Promise<boolean> {
    const { pause, producer, lease } = this.#options;
    const delayMs = Math.min(PROBE_DELAY_MS_MIN * 2 ** failureCount, PROBE_DELAY_MS_MAX);
    await pause(delayMs, this.#stopping.signal);
    const asked = producer.durability().then(() => lease.reported());
    return within(PROBE_DEADLINE_MS, asked).then(
      () => true,
      () => false,
    );
  }

  /** Never rejects: false if the oldest are still there. */
  async #moveOldest(flushesMax: number): Promise<boolean> {
    const { producer, diskBuffer, lease, monotonicNow, logger } = this.#options;
    try {
      const flushes = diskBuffer.readOldest(flushesMax, STEP_SIZE_BYTES_MAX);
      const isLate = lease.isLate;
      const drafts = flushes.map(({ writtenAtMs, envelopes }) => ({
        atMs: writtenAtMs,
        text: writeFlush(isLate ? envelopes.map(replayed) : envelopes),
      }));
      const startedAtMs = monotonicNow();
      await within(STEP_DEADLINE_MS, producer.stage.put(drafts, diskBuffer.id));
      diskBuffer.deleteOldest(flushes);
      lease.staged();
      if (this.#drainedSizeBytes === 0) this.#drainStartedAtMs = startedAtMs;
      this.#drainedSizeBytes += flushes.reduce((sum, flush) => sum + flush.sizeBytes, 0);
      this.#lastMovedAtMs = monotonicNow();
      this.#isBrokerBack = true;
      this.#refusalToldAtMs = -Infinity;
      return true;
    } catch (error) {
      this.#isBrokerBack = false;
      this.#drainedSizeBytes = 0;
      // A Redis that is full answers, so this is tried each second for as long as it is.
      if (monotonicNow() - this.#refusalToldAtMs >= REFUSAL_TOLD_INTERVAL_MS) {
        this.#refusalToldAtMs = monotonicNow();
        logger.warn(
          { error, envelopes: diskBuffer.commitBatchCount },
          'the broker did not accept the oldest flushes of the local disk buffer; intake retries, and error has the reason',
        );
      }
      return false;
    }
  }
}

/** Workers compare calls that come too late for their place with later deletions. */
const replayed = ({ shard, envelope }: BufferedFlush['envelopes'][number]): ShardCommitBatch => ({
  shard,
  envelope: { ...envelope, isReplayed: true },
});

const isSettledWithin = (work: Promise<unknown>, durationMs: number): Promise<boolean> =>
  within(durationMs, work).then(
    () => true,
    () => false,
  );
