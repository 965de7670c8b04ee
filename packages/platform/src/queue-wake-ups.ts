/**
 * Wake-ups as jobs of a queue: how they get there when many come at once.
 *
 * | broker | those of one go |
 * |---|---|
 * | Redis | a command each, in one write (`redis.ts`) |
 * | Postgres | one statement for up to 200, two statements at a time |
 *
 * On Postgres each one by itself is a transaction that waits for the disk. Of 1,000 at once eight had a
 * connection, and what had none within 5 s failed.
 *
 * Nobody waits in a circle there: BullMQ's `add_flow` takes the locks of all its keys before anything else and in
 * their own order, and locks no job; a job that ends holds itself and takes the one lock of its key. Not so for jobs
 * that replace others (`wakeLaneAt`), which lock the one that they replace: each of those is added by itself.
 *
 * Beside `queue.ts` and `queue-tasks.ts`, which say what is woken.
 */
import type { AddingQueues } from './queue-adding.ts';
import { GroupedCalls } from './grouped-calls.ts';

export interface WakeUp {
  readonly jobName: string;
  readonly data: unknown;
  /** At most one a key waits; one that comes while its job runs is kept for afterwards. */
  readonly key: string;
}

/**
 * Each key is a lock until the commit. Postgres has places for 6,400, of all sessions, unless told otherwise:
 * enough for what sixteen processes add at a time. Where there is none a statement fails, and the sweep wakes.
 */
const WAKE_UPS_A_STATEMENT_MAX = 200;
/** The other connections of the pool are for envelopes, and for wake-ups at a time. */
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
      // Of jobs in a group BullMQ writes down events as well, two rows each.
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
