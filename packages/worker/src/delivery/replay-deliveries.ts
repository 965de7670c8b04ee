/**
 * Drains one replay for a time slice: as a lane is drained (`lane-drain.ts`), by the same rules, with a log and a
 * cursor of its own.
 *
 * So a replay keeps order and waits out failures by the schedule. The webhook's own lane does not wait for it, and goes
 * on sending new events meanwhile. Its deliveries are the same bytes with the same `event_id`.
 *
 * Not a job of the queue: replays are few, and a worker looks for one to claim again and again. They have drains of
 * their own, so they take no drain of the lanes.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { LoggedDelivery, LogRequest } from '@sluice/database/delivery/logged-deliveries';
import type { DrainReport, LaneAfterProgress } from '@sluice/database/delivery/lane-progress';
import { listReplayed } from '@sluice/database/replays/replay-log';
import {
  claimReplay,
  recordReplayProgress,
  type ClaimedReplay,
} from '@sluice/database/replays/replay-lanes';
import { longestWaitMs } from '@sluice/domain/delivery/delivery-schedule';
import { LaneDrain } from '../lane/lane-drain.ts';
import type { LaneDrainDeps } from '../lane/lane-drain-deps.ts';
import type { LaneStore } from '../lane/lane-store.ts';

export type DrainedLog = Pick<LaneStore, 'load' | 'keep'>;

/** The log of a replay, which numbers its deliveries anew. */
export interface ReplayedLog extends DrainedLog {
  /** Of the webhook's own log. */
  sequenceOf(position: number): number;
}

export interface ReplayDeps extends Omit<LaneDrainDeps, 'store' | 'isAtEnd' | 'isPlaceWanted'> {
  readonly database: Database;
  /** Wraps a log in traces; absent if traces are off. */
  readonly tracedReplay?: (store: ReplayedLog, replay: ClaimedReplay) => DrainedLog;
}

/** Live deliveries get the larger part of an endpoint's capacity. */
const REPLAY_CONCURRENCY_MAX = 8;
/** Rows read in one statement, and reads before the found rows are recorded. */
const SCANNED_ROWS_MAX = 10_000;
const SCANS_MAX = 20;

/**
 * Claims a replay that has a delivery to send now, and drains it for a time slice.
 *
 * @returns false if no replay was due.
 */
export async function replayDeliveries(deps: ReplayDeps): Promise<boolean> {
  const claimedAtMs = deps.monotonicNow();
  const claimed = await claimReplay(
    deps.database,
    deps.leases.leaseMs,
    deps.now(),
    longestWaitMs(deps.policy),
  );
  if (!claimed) return false;
  const store = new ReplayStore(deps.database, claimed, deps.now);
  const lane = {
    ...claimed,
    readFromDay: null,
    // The number of matching rows is unknown before the log is read.
    lastSequence: Number.MAX_SAFE_INTEGER,
    windowMax: Math.min(claimed.windowMax ?? REPLAY_CONCURRENCY_MAX, REPLAY_CONCURRENCY_MAX),
  };
  const log = deps.tracedReplay?.(store, claimed) ?? store;
  const drain = {
    ...deps,
    store: log,
    isAtEnd: () => store.isAllLoaded,
    isPlaceWanted: () => true,
  };
  await new LaneDrain(drain, claimed, { claimed: lane, claimedAtMs }).run();
  return true;
}

/** Numbers the matching rows, without gaps, as it reads them. */
class ReplayStore implements ReplayedLog {
  readonly #database: Database;
  readonly #replay: ClaimedReplay;
  readonly #now: () => number;
  /** Of the log, by position. */
  readonly #sequences = new Map<number, number>();
  #cursor: { position: number; sequence: number };
  #loadedThrough: number;
  #scannedThrough: number;

  constructor(database: Database, replay: ClaimedReplay, now: () => number) {
    this.#database = database;
    this.#replay = replay;
    this.#now = now;
    this.#cursor = { position: replay.cursor, sequence: replay.cursorSequence };
    this.#loadedThrough = replay.cursor;
    this.#scannedThrough = replay.cursorSequence;
  }

  get isAllLoaded(): boolean {
    return this.#scannedThrough >= this.#replay.throughSequence;
  }

  async load({ limit }: LogRequest): Promise<LoggedDelivery[]> {
    for (let scan = 0; scan < SCANS_MAX && !this.isAllLoaded; scan++) {
      const range = {
        afterSequence: this.#scannedThrough,
        throughSequence: this.#replay.throughSequence,
      };
      const { deliveries, scannedThrough } = await listReplayed(
        this.#database,
        this.#replay,
        this.#replay.criteria,
        range,
        limit,
        SCANNED_ROWS_MAX,
      );
      this.#scannedThrough = scannedThrough;
      if (deliveries.length > 0) return deliveries.map((delivery) => this.#number(delivery));
    }
    return [];
  }

  #number({
    logSequence,
    ...delivery
  }: { logSequence: number } & Omit<LoggedDelivery, 'sequence'>) {
    const sequence = ++this.#loadedThrough;
    this.#sequences.set(sequence, logSequence);
    return { ...delivery, sequence };
  }

  async keep({ progress, leaseMs }: DrainReport): Promise<LaneAfterProgress | undefined> {
    const { snapshot, attempts, isLast } = progress;
    const isCaughtUp = snapshot.cursor === this.#loadedThrough;
    const sequence =
      snapshot.cursor === this.#cursor.position
        ? this.#cursor.sequence
        : this.sequenceOf(snapshot.cursor);
    const cursorSequence = isCaughtUp ? this.#scannedThrough : sequence;
    const after = await recordReplayProgress(
      this.#database,
      this.#replay,
      this.#replay.fencing,
      {
        snapshot,
        attempts: attempts.map((attempt) => ({
          ...attempt,
          sequence: this.sequenceOf(attempt.sequence),
        })),
        cursorSequence,
        nextStartAtMs: progress.nextStartAtMs ?? null,
        isLast,
        isDone: isCaughtUp && this.isAllLoaded,
      },
      leaseMs,
      this.#now(),
    );
    if (!after) return undefined;
    this.#cursor = { position: snapshot.cursor, sequence };
    return {
      ...after,
      nextProbeAtMs: snapshot.nextProbeAtMs,
      lastSequence: this.isAllLoaded ? this.#loadedThrough : Number.MAX_SAFE_INTEGER,
    };
  }

  /** Of the log, by a position that was read. */
  sequenceOf(position: number): number {
    return this.#sequences.get(position) ?? this.#cursor.sequence;
  }
}
