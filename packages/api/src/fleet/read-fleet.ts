/**
 * One look at the whole installation: its processes by their heartbeats, the broker's shards, and the backlogs in
 * Postgres. It costs a few statements and two commands a shard, so it is kept for some seconds, and is only made on
 * request.
 */
import { countPurchasesInReview } from '@sluice/database/billing/purchases-in-review';
import { findOldestWaitingEvent } from '@sluice/database/billing/provider-events';
import { findOldestUntold } from '@sluice/database/changes/outbox';
import type { Database } from '@sluice/database/connection/connection';
import { findLaneBacklog, type LaneBacklog } from '@sluice/database/delivery/lane-backlog';
import { countDeadLetteredOperations } from '@sluice/database/events/dead-lettered-operations';
import { findUnknownKeys, type UnknownKeys } from '@sluice/database/events/ingestion-issue-reads';
import { type Heartbeat, listHeartbeats } from '@sluice/database/maintenance/process-heartbeats';
import { ulidTimeMs } from '@sluice/domain/values/ulid';
import { within } from '@sluice/platform/process/within';
import type { Producer } from '@sluice/platform/queue/queue';
import type { FastifyBaseLogger } from 'fastify';

/** The parts of a broker that are read. */
export type FleetBroker = Pick<
  Producer,
  'kind' | 'commitBatchCounts' | 'shardHeads' | 'failedCount' | 'durability' | 'fill'
>;

export interface FleetReaderEffects {
  readonly database: Database;
  /** Opened at the first look; fails while the number of shards is not known. */
  readonly openFleetBroker: () => Promise<FleetBroker>;
  readonly now: () => number;
  readonly monotonicNow: () => number;
  readonly logger: Pick<FastifyBaseLogger, 'warn'>;
}

export interface ShardBacklog {
  readonly shard: number;
  /** Commit batches that wait or run. */
  readonly waitingCount: number;
  /** Null: the queue is empty. */
  readonly oldestAgeMs: number | null;
  /** Some worker reports that it makes no progress. */
  readonly isStuck: boolean;
}

export interface LaneAges {
  readonly webhookCount: number;
  readonly deliveryCount: number;
  readonly oldestAgeMs: number | null;
}

export interface FleetReading {
  readonly readAtMs: number;
  readonly processes: readonly Heartbeat[];
  /** Undefined: it does not answer this process. */
  readonly broker:
    | {
        readonly kind: 'redis' | 'postgres';
        readonly description: string;
        readonly isDurable: boolean;
        readonly isFull: boolean;
        /** Of its memory; 0 without a bound. */
        readonly memoryRatio: number;
        readonly failedCount: number;
      }
    | undefined;
  /** Undefined as the broker. */
  readonly shards: readonly ShardBacklog[] | undefined;
  readonly lanes: { readonly healthy: LaneAges; readonly failing: LaneAges };
  /** At most 1,000 are counted, of the next too. */
  readonly parkedOperationCount: number;
  readonly setAsidePurchaseCount: number;
  readonly providerEventOldestAgeMs: number | null;
  readonly outboxOldestAgeMs: number | null;
  /** Of the last 24 hours. Undefined: they cannot be read, as if their node of Citus is away. */
  readonly unknownKeys: UnknownKeys | undefined;
}

const KEPT_MS = 2_000;
const BROKER_MS_MAX = 3_000;
const COUNT_MAX = 1_000;
const UNKNOWN_KEYS_MS = 24 * 60 * 60 * 1000;
const LATEST_COUNT_MAX = 5;

/** Callers at the same time, and within two seconds, share a look. */
export function createFleetReader(effects: FleetReaderEffects): () => Promise<FleetReading> {
  const readUnknownKeys = createUnknownKeysReader(effects);
  let latest: { readonly atMs: number; readonly reading: Promise<FleetReading> } | undefined;
  return () => {
    const atMs = effects.monotonicNow();
    if (latest && atMs - latest.atMs < KEPT_MS) return latest.reading;
    const reading = readFleet(effects, readUnknownKeys);
    latest = { atMs, reading };
    // A look that failed is not shared.
    reading.catch(() => (latest = undefined));
    return reading;
  };
}

/** Logs the first failure, and the first one after each success. */
function createUnknownKeysReader({ database, logger }: FleetReaderEffects) {
  let isFailing = false;
  return async (sinceMs: number): Promise<UnknownKeys | undefined> => {
    try {
      // It has a deadline of its own.
      const found = await findUnknownKeys(database, sinceMs, LATEST_COUNT_MAX);
      isFailing = false;
      return found;
    } catch (error) {
      if (!isFailing)
        logger.warn({ error }, 'calls with unknown keys could not be read; the fleet omits them');
      isFailing = true;
      return undefined;
    }
  };
}

async function readFleet(
  { database, openFleetBroker, now }: FleetReaderEffects,
  readUnknownKeys: (sinceMs: number) => Promise<UnknownKeys | undefined>,
): Promise<FleetReading> {
  const nowMs = now();
  const ageMs = (atMs: number | null | undefined): number | null =>
    atMs == null ? null : Math.max(0, nowMs - atMs);
  const agesOf = ({ laneCount, deliveryCount, oldestAtMs }: LaneBacklog): LaneAges => ({
    webhookCount: laneCount,
    deliveryCount,
    oldestAgeMs: ageMs(oldestAtMs),
  });
  const [processes, lanes, parked, setAside, providerEvent, untold, unknownKeys, broker] =
    await Promise.all([
      listHeartbeats(database),
      findLaneBacklog(database, nowMs),
      countDeadLetteredOperations(database, COUNT_MAX),
      countPurchasesInReview(database, COUNT_MAX),
      findOldestWaitingEvent(database),
      findOldestUntold(database, nowMs),
      // While one of the next two is away, an operator needs the rest most.
      readUnknownKeys(nowMs - UNKNOWN_KEYS_MS),
      within(BROKER_MS_MAX, openFleetBroker().then(readBroker)).catch(() => undefined),
    ]);
  const stuck = new Set(processes.flatMap(({ report }) => report.stuckQueues ?? []));
  return {
    readAtMs: nowMs,
    processes,
    broker: broker?.state,
    shards: broker?.shards.map(({ shard, waitingCount, oldestAtMs }) => ({
      shard,
      waitingCount,
      oldestAgeMs: ageMs(oldestAtMs),
      isStuck: stuck.has(`events-${shard}`),
    })),
    lanes: { healthy: agesOf(lanes.healthy), failing: agesOf(lanes.failing) },
    parkedOperationCount: parked,
    setAsidePurchaseCount: setAside,
    providerEventOldestAgeMs: ageMs(providerEvent?.getTime()),
    outboxOldestAgeMs: ageMs(untold?.getTime()),
    unknownKeys,
  };
}

async function readBroker(broker: FleetBroker) {
  const [counts, heads, failedCount, durability, fill] = await Promise.all([
    broker.commitBatchCounts(),
    broker.shardHeads(),
    broker.failedCount(),
    broker.durability(),
    broker.fill(),
  ]);
  return {
    state: {
      kind: broker.kind,
      description: durability.description,
      isDurable: durability.isSafe,
      isFull: fill.isFull,
      memoryRatio: fill.ratio,
      failedCount,
    },
    shards: counts.map((waitingCount, shard) => {
      const head = heads[shard];
      // The id of a commit batch is a ULID, so it has the time at which intake made it.
      const id = head?.active[0]?.id ?? head?.nextId;
      return { shard, waitingCount, oldestAtMs: id === undefined ? undefined : ulidTimeMs(id) };
    }),
  };
}
