/**
 * Background tasks: one queue a kind, one job = one wake-up to look at something that Postgres knows of.
 *
 * As with lanes, a job of the queue is only a wake-up. Postgres has the work, its progress and its lease. So a lost
 * job costs the wait until the next reconciliation loop, and a job that runs twice finds the lease taken. At most one
 * job a key waits. Work that is due by the clock has a BullMQ job scheduler.
 *
 * Beside `queue.ts`, whose broker, prefix and pool it uses.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { WaitingError, type Job, type Worker } from 'bullmq';
import { connectionWarnings } from '../redis/connection-warnings.ts';
import { AddingQueues } from '../queue/queue-adding.ts';
import { openTakingSide } from './queue-taking.ts';
import { createWakeUps } from '../queue/queue-wake-ups.ts';
import { openQueuePool } from '../queue/queue-pool.ts';
import type { BrokerOptions } from '../queue/broker-options.ts';
import { redisPrefix } from '../queue/queue.ts';
import { connectProducer } from '../redis/redis.ts';
import { within } from '../process/within.ts';

/** One kind of task: its queue, and the key of which at most one job waits. */
export interface TaskKind<Task> {
  readonly queue: string;
  readonly keyOf: (task: Task) => string;
}

/** Exports of the audit log: `worker/src/maintenance/export-audit-logs.ts`. */
export const EXPORT_TASKS: TaskKind<{ readonly accountId: number; readonly exportId: string }> = {
  queue: 'exports',
  keyOf: ({ accountId, exportId }) => `export-${accountId}-${exportId}`,
};

/** Closing days of usage: `worker/src/maintenance/usage-tasks.ts`. One task, of all accounts. */
export const USAGE_TASKS: TaskKind<Record<string, never>> = {
  queue: 'usage',
  keyOf: () => 'close-days',
};

type TaskBroker = Omit<BrokerOptions, 'shardCount'>;

export interface TaskQueue<Task> {
  /** Wakes its worker. Adding the same one again while it waits has no effect. */
  wake(task: Task): Promise<void>;
  /**
   * Has it done at once and every `everyMs` from then on, by one worker each time, even if several processes ask. The
   * schedule is the broker's: it stays when processes end, and is gone with a broker that lost its memory. So ask
   * again from time to time, which also mends a schedule that stands and has no other effect.
   */
  schedule(task: Task, everyMs: number): Promise<void>;
  close(): Promise<void>;
}

const TASK_JOB = 'task.run';
const ADD_TIMEOUT_MS = 5_000;
const STALLED_AFTER_MS = 15_000;
const REOPEN_DELAY_MS = 1_000;
/** For a broker that does not answer when its workers leave; it finds out by their locks. */
const LEAVE_DEADLINE_MS = 1_000;
const SHARDLESS = { shardCount: 0 };

/** Opens the adding side of one kind of task. A broker that is away makes each `wake` fail, not the start. */
export async function openTaskQueue<Task>(
  options: TaskBroker,
  { queue: name, keyOf }: TaskKind<Task>,
): Promise<TaskQueue<Task>> {
  const { logger } = options;
  const redis = options.redisUrl
    ? await connectProducer(options.redisUrl, ADD_TIMEOUT_MS)
    : undefined;
  const warnOfConnection = connectionWarnings(logger);
  redis?.on('error', (error) => warnOfConnection(error));
  const pool = redis
    ? undefined
    : openQueuePool(options, { listenerCount: 0, timeoutMs: ADD_TIMEOUT_MS });
  const prefixOf = (queueName: string) => redisPrefix(options.prefix, queueName);
  const queues = new AddingQueues({ redis, pool, prefixOf, warnOfConnection }, [name]);
  const wakeUp = createWakeUps(queues, name, pool !== undefined);
  return {
    wake(task) {
      return wakeUp({ jobName: TASK_JOB, data: task, key: keyOf(task) });
    },
    async schedule(task, everyMs) {
      await queues.use(async () => {
        const queue = queues.get(name);
        const known = await queue.getJobScheduler(keyOf(task));
        // A schedule that is written again begins anew, and would never come due if that happened often.
        if (known?.every === everyMs && !isOverdue(known, everyMs)) return;
        await queue.upsertJobScheduler(
          keyOf(task),
          { every: everyMs },
          { name: TASK_JOB, data: task, opts: { removeOnComplete: true, removeOnFail: true } },
        );
      });
    },
    async close() {
      await queues.close();
      redis?.disconnect();
      await pool?.end();
    },
  };
}

/**
 * On Postgres, first requests in the same millisecond can set a schedule back by one job, after that job has run: no job
 * of it is left that writes the next one, and it would stand for ever. A job that only waits for a worker keeps its time
 * when its schedule is written again.
 */
const isOverdue = ({ next }: { readonly next?: number }, everyMs: number): boolean =>
  next === undefined || next < Date.now() - everyMs;

/**
 * Takes tasks of one kind, `concurrency` at a time. A task that throws is logged; its reconcile loop or its schedule
 * wakes it again.
 */
export function startTaskWorker<Task>(
  options: TaskBroker,
  { queue: name }: TaskKind<Task>,
  concurrency: number,
  workflow: (task: Task) => Promise<void>,
): { close(): Promise<void> } {
  const { logger, stalledAfterMs = STALLED_AFTER_MS } = options;
  const warnOfConnection = connectionWarnings(logger);
  const side = openTakingSide({ ...options, ...SHARDLESS }, 1, warnOfConnection);
  const inProgress = new Set<Promise<void>>();
  const runInProgress = async (job: Job<Task>, token: string | undefined): Promise<void> => {
    if (isClosing) {
      // It was on its way when we closed, and its resources may be gone before it ends. If it cannot be put back, it
      // returns when its lock ends.
      await within(LEAVE_DEADLINE_MS, job.moveToWait(token)).catch((error: unknown) =>
        logger.warn(
          { error, queue: name, task: job.data },
          'a task could not be returned to its queue; it returns when its lock ends',
        ),
      );
      throw new WaitingError();
    }
    const running = workflow(job.data);
    inProgress.add(running);
    await running.finally(() => inProgress.delete(running));
  };
  const open = (): Worker => {
    const worker = side.openWorker(
      name,
      async (job: Job<Task>, token) => runInProgress(job, token),
      {
        concurrency,
        lockDuration: stalledAfterMs,
        stalledInterval: Math.round(stalledAfterMs / 3),
        // Its reconciliation loop finds work whose wake-up was lost.
        drainDelay: Math.min(stalledAfterMs * 4, side.waitMsMax) / 1_000,
        autorun: false,
      },
    );
    worker.on('error', (error) => warnOfConnection(error, name));
    worker.on('failed', (job, error) =>
      logger.error(
        { error, queue: name, task: job?.data },
        'a task failed; its reconciliation loop or schedule wakes it again',
      ),
    );
    return worker;
  };
  let isClosing = false;
  let worker = open();
  // Run only once it is ready: on Postgres a worker whose first connection failed keeps the error, and its loop would
  // spin on it so fast that no other work of the process ever runs again.
  const keepRunning = async (): Promise<void> => {
    for (;;) {
      try {
        await worker.waitUntilReady();
        await worker.run();
      } catch (error) {
        logger.error({ error, queue: name }, 'a queue worker stopped; another one is opened');
      }
      if (isClosing) return;
      await worker.close(true).catch(() => undefined);
      await sleep(REOPEN_DELAY_MS);
      if (isClosing) return;
      worker = open();
    }
  };
  void keepRunning();

  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    // From here on no task begins, so the ones in progress are the last.
    isClosing = true;
    const closing = worker.close().catch((error: Error) => warnOfConnection(error, name));
    await Promise.allSettled(inProgress);
    // The last step is a message to the broker. BullMQ would wait for one that hangs until it is back.
    await within(LEAVE_DEADLINE_MS, closing).catch(() => undefined);
    side.leave();
    await within(LEAVE_DEADLINE_MS, side.close()).catch(() => undefined);
  };
  return { close: () => (closed ??= close()) };
}
