/**
 * The delivery of a worker process: the lanes that the queue wakes, with the permits, the capacity and the connections
 * that they share. Its periodic work about webhooks is `webhook-tasks.ts`.
 *
 * The queue is `platform/src/consumers/queue-consumers.ts`, the draining `deliver-webhook.ts` (step 11 of the walk).
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { longestWaitMs } from '@sluice/domain/delivery/delivery-schedule';
import type { TailPublisher } from '@sluice/domain/operations/tail';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import type { Producer } from '@sluice/platform/queue/queue';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import { readOpenFilesMax } from '@sluice/platform/settings/open-files';
import { AccessTokens, type AccessTokensDeps } from './access-tokens.ts';
import { authorizedPost, TOKEN_TIME_SHARE } from './authorized-post.ts';
import { claimRange } from './claim-range.ts';
import { deliverLane, leasesOf } from './deliver-webhook.ts';
import { createHttpClient } from '../http/http-client.ts';
import { outcomeOf } from '../http/http-outcome.ts';
import type { LaneDrainDeps, PostDelivery } from '../lane/lane-drain-deps.ts';
import { LaneCapacity } from './lane-capacity.ts';
import { createLanePermits, type LanePermits } from '../scheduling/lane-permits.ts';
import { createLaneStore, type LaneStore } from '../lane/lane-store.ts';
import { DirectWakes } from './direct-wakes.ts';
import type { LaneHandOver } from '../events/process-commit-batch.ts';
import { LanesInProgress } from './lanes-in-progress.ts';
import { RangeDrains } from './range-drains.ts';
import { IdleTime } from '../scheduling/idle-time.ts';
import type { webhookOptions } from '../process/webhook-settings.ts';

export interface DeliveriesDeps {
  readonly database: Database;
  readonly producer: Pick<
    Producer,
    'wakeLane' | 'wakeLaneAt' | 'wakeLanes' | 'wakeEach' | 'wakeRange'
  >;
  readonly webhooks: ReturnType<typeof webhookOptions>;
  readonly openSecret: LaneDrainDeps['openSecret'];
  readonly encryptSecret: AccessTokensDeps['encryptSecret'];
  /** Each wraps its argument in traces. */
  readonly tracing: {
    loading(store: LaneStore): LaneStore;
    posting(post: PostDelivery): PostDelivery;
    waking(wake: LaneHandOver['wake']): LaneHandOver['wake'];
  };
  readonly tail: TailPublisher;
  /** Called for each attempt of a live delivery that has ended. */
  readonly countAttempt: NonNullable<LaneDrainDeps['countAttempt']>;
  readonly now: () => number;
  readonly clock: Pick<LaneDrainDeps, 'confirmGivingUp' | 'confirmFailure'>;
  readonly presence: LaneDrainDeps['presence'];
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

export interface Deliveries {
  /** Dependencies of the drains of lanes and replays. */
  readonly draining: Omit<
    LaneDrainDeps,
    'store' | 'permits' | 'isAtEnd' | 'isPlaceWanted' | 'tail' | 'countAttempt'
  >;
  readonly permits: LanePermits;
  /** Posts to endpoints so far, by outcome. */
  readonly attempts: ReadonlyMap<string, number>;
  /** Times a lane was drained. */
  readonly timeSliceCount: () => number;
  /** How long the oldest drain of a lane has run; 0 without one. */
  readonly oldestDrainMs: () => number;
  /** Has lanes drained whose logs have grown: by this process, unless it drains too many already. */
  readonly lanes: LaneHandOver;
  readonly processors: Pick<Processors, 'wakeLane' | 'wakeRange'>;
}

/**
 * A request that is still open after so much idle time of ours means that its endpoint is far away or does not
 * answer.
 */
const SLOW_AFTER_MS = 25;
/**
 * Requests under way at the same time, slow ones not counted. With 64 a worker delivered 0.80 as much as with 128,
 * because a statement holds fewer lanes then. With 256 it delivered no more (`npm run bench -- deliver`).
 */
const REQUESTS_MAX = 128;
/**
 * Requests that wait for a slow endpoint, a socket each; beyond that they hold up others. One is given up after 4 s
 * (`WEBHOOK_TIMEOUT_MS`), so a thousand a second may hang.
 */
const SLOW_REQUESTS_MAX = 4_096;

/** Lanes that are drained without a job; with more of them, all workers are to take their share. */
const DIRECT_WAKES_MAX = 64;
/**
 * Lanes of woken ranges in progress, from which on no range is claimed. They are more than have requests in flight, so
 * that no permit waits for a claim. With 768 a worker delivered no more (`npm run bench -- deliver --webhooks 10000`).
 */
const RANGE_LANES_MAX = 320;

/** The requests in flight need open files too, and so do Postgres and Redis. */
const IDLE_FILES_PART = 1 / 4;

/** The resources that it opens are closed with `lifecycle`. */
export function createDeliveries(deps: DeliveriesDeps): Deliveries {
  const { database, producer, webhooks, openSecret, encryptSecret } = deps;
  const { tail, clock, now, logger } = deps;
  const idleConnectionsMax = Math.floor(IDLE_FILES_PART * readOpenFilesMax());
  const http = createHttpClient({ ...webhooks, idleConnectionsMax });
  deps.lifecycle.defer('http client', () => http.close());
  const store = deps.tracing.loading(createLaneStore(database, now, longestWaitMs(webhooks.lanes)));
  const monotonicNow = () => performance.now();
  const { timeoutMs } = webhooks;
  const fetchTimeoutMs = Math.ceil(TOKEN_TIME_SHARE * timeoutMs);
  const { post } = http;
  const tokenDeps = { database, post, openSecret, encryptSecret, fetchTimeoutMs, monotonicNow };
  const tokens = new AccessTokens(tokenDeps);
  const send = authorizedPost({ post, tokens, timeoutMs, monotonicNow });
  const idleTime = new IdleTime({
    idleMs: () => performance.eventLoopUtilization().idle,
    monotonicNow,
  });
  const permits = createLanePermits({
    permitsMax: REQUESTS_MAX,
    slowMax: SLOW_REQUESTS_MAX,
    slowAfterMs: SLOW_AFTER_MS,
    monotonicNow,
    idleTimeMs: () => idleTime.totalMs(),
  });
  const capacity = new LaneCapacity({
    stillAfterMs: SLOW_AFTER_MS,
    idleTimeMs: () => idleTime.totalMs(),
    stillMax: SLOW_REQUESTS_MAX,
    onFailure: (error) =>
      logger.warn(
        { error },
        'a drain failed; the reconciliation loop will find its delivery queue',
      ),
  });
  deps.lifecycle.defer('lanes under way', () => capacity.close());
  const inProgress = new LanesInProgress();
  const attempts = new Map<string, number>();
  let timeSliceCount = 0;
  const draining = {
    policy: webhooks.lanes,
    leases: leasesOf(timeoutMs),
    presence: deps.presence,
    post: deps.tracing.posting(async (request) => {
      const answer = await send(request);
      const outcome = outcomeOf(answer);
      attempts.set(outcome, (attempts.get(outcome) ?? 0) + 1);
      return answer;
    }),
    openSecret,
    now,
    confirmGivingUp: (endedAtMs: number) => clock.confirmGivingUp(endedAtMs),
    confirmFailure: (endedAtMs: number) => clock.confirmFailure(endedAtMs),
    monotonicNow,
    idleTime,
    laneCount: () => inProgress.count,
    pause: sleep,
    random: Math.random,
    logger,
  };

  const delivering = {
    ...draining,
    store,
    permits,
    inProgress,
    wakeLane: (key: LaneKey) => producer.wakeLane(key),
    wakeLaneAt: (key: LaneKey, atMs: number) => producer.wakeLaneAt(key, atMs, now()),
    tail,
    countAttempt: deps.countAttempt,
  };
  const deliveringHere = {
    ...delivering,
    isPlaceWanted: () => false,
    wakeLane: async (key: LaneKey) => {
      if (!directWakes.wakeAgain(key)) await producer.wakeLane(key);
    },
  };
  const directWakes = new DirectWakes({
    async drain(lane, taken) {
      await deliverLane(deliveringHere, lane, taken).ended;
      timeSliceCount++;
    },
    countMax: DIRECT_WAKES_MAX,
    onFailure: (error) =>
      logger.warn(
        { error },
        'a drain failed; the reconciliation loop will find its delivery queue',
      ),
  });
  deps.lifecycle.defer('lanes woken here', () => directWakes.close());

  const rangeDrains = new RangeDrains({
    claim: (range) => claimRange({ ...delivering, wakeEach: producer.wakeEach }, range),
    async drain(lane, taken, { timeSliceMs, isPlaceWanted }) {
      const leases = { ...draining.leases, timeSliceMs };
      await capacity.waitFor(deliverLane({ ...delivering, leases, isPlaceWanted }, lane, taken));
      timeSliceCount++;
    },
    wakeAgain: (range) => producer.wakeRange(range),
    countMax: RANGE_LANES_MAX,
    timeSliceMs: draining.leases.timeSliceMs,
    onFailure: (error) =>
      logger.warn(
        { error },
        'a drain failed; the reconciliation loop will find its delivery queue',
      ),
  });
  deps.lifecycle.defer('ranges of lanes', () => rangeDrains.close());

  const lanes: LaneHandOver = {
    taking() {
      const { isShown, processId: holderProcessId } = deps.presence;
      const countMax = directWakes.roomCount;
      if (!isShown || countMax === 0) return undefined;
      return { leaseMs: draining.leases.leaseMs, holderProcessId, nowMs: now(), countMax };
    },
    wake: deps.tracing.waking(async (logged, askedAtMs) => {
      const left: LaneKey[] = [];
      for (const lane of logged) {
        const { environmentId, webhookId, claimed, deliveries } = lane;
        const key = { environmentId, webhookId };
        if (claimed) {
          const taken = { claimed, claimedAtMs: askedAtMs };
          directWakes.drainTaken(key, deliveries ? { ...taken, deliveries } : taken);
        } else if (!inProgress.tell(lane) && !directWakes.wake(key)) left.push(key);
      }
      // A wake-up that is lost here is made good by the reconcile loop.
      await producer.wakeLanes(left).catch((error: unknown) => {
        logger.warn(
          { error },
          'delivery queues could not be woken; the reconciliation loop will find them',
        );
      });
    }),
    monotonicNow,
  };

  return {
    draining,
    permits,
    attempts,
    timeSliceCount: () => timeSliceCount,
    oldestDrainMs() {
      const { oldestBeganAtMs } = inProgress;
      return oldestBeganAtMs === undefined ? 0 : monotonicNow() - oldestBeganAtMs;
    },
    lanes,
    processors: {
      async wakeLane(lane, isPlaceWanted) {
        await capacity.waitFor(deliverLane({ ...delivering, isPlaceWanted }, lane));
        timeSliceCount++;
        return { outcome: 'done' };
      },
      wakeRange: (range) => rangeDrains.wake(range),
    },
  };
}
