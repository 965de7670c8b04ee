/**
 * Wake-ups as jobs of a queue, also if many come at once.
 *
 * | broker | wake-ups of one call |
 * |---|---|
 * | Redis | a command each, in one write (`redis.ts`) |
 * | Postgres | one statement for up to 200, two statements at a time |
 *
 * On Postgres each wake-up by itself would be a transaction that waits for the disk: of 1,000 at once eight would
 * have a connection, and the others would fail after 5 s.
 *
 * Beside `queue.ts` and `queue-tasks.ts`, which choose the lanes and tasks.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { wakeUpsOf, type LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import type { AddingQueues } from './queue-adding.ts';
import { GroupedCalls } from '../process/grouped-calls.ts';

/** One purchase. */
export interface PurchaseKey {
  readonly accountId: number;
  readonly runId: string;
}

export const LANE_QUEUE_NAME = 'webhooks';
/** Its jobs wake ranges of lanes. */
export const RANGE_QUEUE_NAME = 'webhook-ranges';
export const PURCHASE_QUEUE_NAME = 'purchases';
export const PROVIDER_EVENTS_JOB = 'vendor-events.settle';
const LANE_WAKE_JOB = 'lane.wake';
const RANGE_WAKE_JOB = 'lane-range.wake';
const laneJobKey = (lane: LaneKey): string => `lane-${lane.environmentId}-${lane.webhookId}`;
const rangeJobKey = ({ environmentId, firstWebhookId }: LaneRange): string =>
  `range-${environmentId}-${firstWebhookId}`;

/** The part of a producer that wakes workers. */
export interface WakeUps {
  /** Wakes a lane now. A wake-up that comes while the lane is being drained is kept for afterwards. */
  wakeLane(lane: LaneKey): Promise<void>;
  /**
   * Wakes lanes now that each have little to send. Neighbours are one job, which is not held up by a lane in progress.
   * A lane with more to send than a time slice must be woken by itself, or one process drains it with its neighbours.
   */
  wakeLanes(lanes: readonly LaneKey[]): Promise<void>;
  /** Wakes each of the lanes now, by itself. */
  readonly wakeEach: (lanes: readonly LaneKey[]) => Promise<void>;
  /** Wakes a range again whose wake-up found no capacity. It comes after the ranges that wait. */
  wakeRange(range: LaneRange): Promise<void>;
  /** Wakes a lane at `atMs` (Unix milliseconds); a later call replaces the earlier time. */
  wakeLaneAt(lane: LaneKey, atMs: number, nowMs: number): Promise<void>;
  /** Wakes a purchase workflow now. One that comes while it is worked on is kept for afterwards. */
  wakePurchaseWorkflow(workflow: PurchaseKey): Promise<void>;
  /** Wakes the worker for new events of the payment provider. */
  wakeProviderEvents(): Promise<void>;
}

export interface WakeUp {
  readonly jobName: string;
  readonly data: unknown;
  /** At most one a key waits; one that comes while its job runs is kept for afterwards. */
  readonly key: string;
}

/**
 * Each key is a lock until the commit. By default Postgres has room for 6,400 locks in all sessions: enough for the
 * wake-ups of sixteen processes at a time. If there is no capacity the statement fails, and the reconciliation loop
 * wakes the lanes.
 *
 * There is no deadlock: BullMQ's `add_flow` takes the locks of all its keys first, in their own order, and locks no
 * job. A job that ends locks itself and then its one key. Jobs that replace others (`wakeLaneAt`) lock the job that
 * they replace, so each of these is added by itself.
 */
const WAKE_UPS_A_STATEMENT_MAX = 200;
/** The other connections of the pool are for commit batches, and for wake-ups at a time. */
const STATEMENTS_AT_A_TIME = 2;

/** Makes the adding of wake-ups to one queue: it resolves once the broker has the job, or has one of that key. */
export function createWakeUps(
  queues: AddingQueues,
  queueName: string,
  isOnPostgres: boolean,
): (wakeUp: WakeUp) => Promise<void> {
  const addOne = async (wakeUp: WakeUp): Promise<void> => {
    const { name, data, opts } = jobOf(wakeUp);
    await queues.use(() => queues.get(queueName).add(name, data, opts));
  };
  if (!isOnPostgres) return addOne;
  const groups = new GroupedCalls<WakeUp, void>({
    groupMax: WAKE_UPS_A_STATEMENT_MAX,
    flightsMax: STATEMENTS_AT_A_TIME,
    isOnesFault: () => false,
    async run(group) {
      // For jobs in a group BullMQ also writes events, two rows each.
      const [only] = group;
      if (only && group.length === 1) await addOne(only);
      else await queues.use(() => queues.get(queueName).addBulk(group.map(jobOf)));
      return [];
    },
  });
  return (wakeUp) => groups.call(wakeUp);
}

const jobOf = ({ jobName, data, key }: WakeUp) => ({
  name: jobName,
  data,
  opts: {
    deduplication: { id: key, keepLastIfActive: true },
    removeOnComplete: true,
    removeOnFail: true,
  },
});

/** Makes the wake-ups of a producer over its queues. */
export function createProducerWakeUps(queues: AddingQueues, isOnPostgres: boolean): WakeUps {
  const wakeUpLane = createWakeUps(queues, LANE_QUEUE_NAME, isOnPostgres);
  const wakeUpRange = createWakeUps(queues, RANGE_QUEUE_NAME, isOnPostgres);
  const wakeUpPurchase = createWakeUps(queues, PURCHASE_QUEUE_NAME, isOnPostgres);

  const wakeLane = ({ environmentId, webhookId }: LaneKey): Promise<void> => {
    const lane = { environmentId, webhookId };
    return wakeUpLane({ jobName: LANE_WAKE_JOB, data: lane, key: laneJobKey(lane) });
  };

  const wakeRange = (range: LaneRange): Promise<void> =>
    wakeUpRange({ jobName: RANGE_WAKE_JOB, data: range, key: rangeJobKey(range) });

  return {
    wakeLane,

    wakeRange,

    wakeEach: (lanes) => allOrErrors(lanes.map(wakeLane)),

    async wakeLanes(lanes) {
      const { ranges, alone } = wakeUpsOf(lanes);
      await allOrErrors([...ranges.map(wakeRange), ...alone.map(wakeLane)]);
    },

    async wakeLaneAt(lane, atMs, nowMs) {
      await queues.use(() =>
        queues.get(LANE_QUEUE_NAME).add(LANE_WAKE_JOB, lane, {
          delay: Math.max(0, atMs - nowMs),
          deduplication: { id: `${laneJobKey(lane)}-probe`, replace: true, keepLastIfActive: true },
          removeOnComplete: true,
          removeOnFail: true,
        }),
      );
    },

    wakePurchaseWorkflow(workflow) {
      return wakeUpPurchase({ jobName: 'run.advance', data: workflow, key: workflow.runId });
    },

    wakeProviderEvents() {
      return wakeUpPurchase({ jobName: PROVIDER_EVENTS_JOB, data: {}, key: PROVIDER_EVENTS_JOB });
    },
  };
}

/** Resolves once all have ended well. @throws AggregateError of all that failed; the others are not hurt. */
async function allOrErrors(wakeUps: readonly Promise<void>[]): Promise<void> {
  const ends = await Promise.allSettled(wakeUps);
  const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
  if (errors.length > 0)
    throw new AggregateError(errors, `${errors.length} of ${ends.length} wake-ups were not added`);
}
