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
import type { AddingQueues } from './queue-adding.ts';
import { GroupedCalls } from '../process/grouped-calls.ts';

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
