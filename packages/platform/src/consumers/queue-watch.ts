/**
 * Keeps every queue moving: looks at the head of each once a period and repairs faults of BullMQ.
 *
 * While no job is queued or in progress and all is healthy, it looks seldom: these are the only commands of an idle process
 * (`npm run bench -- idle`). BullMQ's own check of stalled jobs is off and done here: after a failed look it waits 5 s.
 *
 * Beside `queue-consumers.ts`, which makes it; `queue-heads.ts` reads, `watched-queue.ts` acts.
 */
import type { Logger } from '../process/logger.ts';
import type { ActiveJob, QueueHead, ReadHeads } from '../queue/queue-heads.ts';
import type { WatchedQueue } from './watched-queue.ts';
import { within } from '../process/within.ts';

export interface QueueWatchOptions {
  /** Queues of one name take from the same queue. */
  readonly queues: readonly WatchedQueue[];
  readonly readHeads: ReadHeads;
  readonly stalledAfterMs: number;
  /** Between two looks while all queues are quiet. */
  readonly seldomAfterMs: number;
  readonly hungAfterMs: number;
  readonly now: () => number;
  /** By queue, if the broker keeps a limit of jobs at a time: sets it again. */
  readonly limits: ReadonlyMap<string, () => Promise<void>>;
  /** Opens the connection to the broker anew. */
  readonly reconnect: () => void;
  /** Called once for each try that does not end. */
  readonly onHung: (queue: string, jobId: string) => void;
  readonly logger: Logger;
}

/** For `/readyz` and `/metrics`. */
export interface WatchReport {
  /** False while the broker does not answer the looks. */
  readonly isBrokerAnswering: boolean;
  /** Queues whose head has been the same for half of the time that a try may take. */
  readonly stuckQueues: readonly string[];
  readonly replacedWorkers: number;
  /** Active jobs without a worker, put back. */
  readonly recoveredJobs: number;
}

/** Before the first look. */
export const NOT_LOOKED_YET: WatchReport = {
  isBrokerAnswering: false,
  stuckQueues: [],
  replacedWorkers: 0,
  recoveredJobs: 0,
};

interface Standing {
  readonly headId: string | undefined;
  readonly sinceMs: number;
  /**
   * Time since which the head waits without a job in progress; undefined if one is. It may be later than the time at which
   * it became the head: a job of a dead process has only just come back.
   */
  readonly waitsSinceMs: number | undefined;
  /** When a worker was replaced last; -Infinity if no worker was replaced since then. */
  readonly replacedAtMs: number;
  /** Taken in our name, without a worker at the last look. */
  readonly orphans: readonly string[];
}

/**
 * | finding | repair | after |
 * |---|---|---|
 * | a job taken in our name that our workers do not know | put back at the head | two looks |
 * | a job of a process that is reported dead (`putBackJobsOf`) | put back at the head | at once |
 * | a job whose lock has run out, as its process is gone | BullMQ's own move of stalled jobs | its lock + a sixth of the stall time |
 * | the same job waits at two looks, no job is taken, our worker is idle | on Postgres the worker is made to look, since the sign may be lost | a seldom look and the next |
 * | so all through the stall time | the worker is replaced | the stall time |
 * | a worker's loop has ended | the worker is replaced | one look |
 * | the broker is silent on our connection | the connection is opened anew | two thirds of the stall time |
 * | a shard's limit of one job at a time is gone, as Redis was emptied | the limit is set again | one look |
 * | one try of a job does not end | the process ends, because a try cannot be ended from outside | its own limit |
 *
 * The first row is the one that is easy to miss. BullMQ ends a job and takes the next one in one script. If the broker dies
 * after it ran and before we read its answer, ioredis sends it again; the second run finds the first job gone and fails, and
 * the next job is active and locked by us, without a worker. With one job at a time a shard then stands until the lock runs
 * out and is found twice: up to 25 s by BullMQ's clocks. Putting it back is safe even if we are wrong (a confirmation still
 * on its way): it runs again and its claim finds that it has run.
 */
export class QueueWatch {
  readonly #options: QueueWatchOptions;
  readonly #byName: ReadonlyMap<string, readonly WatchedQueue[]>;
  readonly #standings = new Map<string, Standing>();
  readonly #hung = new Set<string>();
  /** Until then it looks each period. */
  #busyUntilMs = -Infinity;
  #answeredAtMs: number;
  #isBrokerAnswering = true;
  #recoveredJobs = 0;

  constructor(options: QueueWatchOptions) {
    this.#options = options;
    this.#byName = Map.groupBy(options.queues, ({ name }) => name);
    this.#answeredAtMs = options.now();
    this.rouse();
  }

  /** Something happened by which jobs can get lost, such as a broken connection: looks each period again. */
  rouse(): void {
    this.#busyUntilMs = this.#options.now() + this.#options.stalledAfterMs;
  }

  report(): WatchReport {
    const { queues, now, hungAfterMs } = this.#options;
    // Early enough to be read before a process that hangs ends.
    const stuckBeforeMs = now() - hungAfterMs / 2;
    return {
      isBrokerAnswering: this.#isBrokerAnswering,
      stuckQueues: [...this.#byName.keys()].filter((name) => {
        const standing = this.#standings.get(name);
        return standing?.headId !== undefined && standing.sinceMs < stuckBeforeMs;
      }),
      replacedWorkers: queues.reduce((sum, queue) => sum + queue.replacedCount, 0),
      recoveredJobs: this.#recoveredJobs,
    };
  }

  /** One look at everything, skipped if the queues were quiet for a while; for `repeat`. */
  async look(): Promise<void> {
    const { queues, readHeads, stalledAfterMs, seldomAfterMs, now, reconnect, logger } =
      this.#options;
    for (const queue of queues) this.#findHung(queue);
    if (queues.some((queue) => queue.hasEnded || queue.isWorking)) this.rouse();
    if (now() >= this.#busyUntilMs && now() - this.#answeredAtMs < seldomAfterMs) return;
    const answerDeadlineMs = (stalledAfterMs * 2) / 3;
    let heads: QueueHead[];
    try {
      heads = await within(answerDeadlineMs, readHeads([...this.#byName.keys()]));
    } catch (error) {
      this.#isBrokerAnswering = false;
      this.rouse();
      if (now() - this.#answeredAtMs >= answerDeadlineMs) {
        logger.warn({ error }, 'the broker does not answer; its connection is opened anew');
        this.#answeredAtMs = now();
        reconnect();
      }
      return;
    }
    this.#answeredAtMs = now();
    this.#isBrokerAnswering = true;
    if (heads.some(({ active, nextId }) => active.length > 0 || nextId !== undefined)) this.rouse();
    // Lets jobs that were answered together with the heads reach their processors first.
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all(
      [...this.#byName].map(([name, takers], index) =>
        this.#mend(name, takers, heads[index] as QueueHead),
      ),
    );
  }

  /**
   * Puts the jobs back that workers of a process that is dead have locked; it would take until their locks end.
   *
   * @returns how many.
   */
  async putBackJobsOf(workerIds: readonly string[]): Promise<number> {
    this.rouse();
    const names = [...this.#byName.keys()];
    const heads = await this.#options.readHeads(names);
    const putBack = names.flatMap((name, index) =>
      (heads[index]?.active ?? [])
        .filter(({ token }) => workerIds.some((id) => token?.startsWith(`${id}:`)))
        .map(async ({ id, token }) => {
          await this.#backendOf(name)?.moveJobFromActiveToWait(id, token);
        }),
    );
    await Promise.all(putBack);
    return putBack.length;
  }

  #backendOf(name: string): WatchedQueue['backend'] {
    return this.#byName.get(name)?.[0]?.backend;
  }

  async #mend(name: string, takers: readonly WatchedQueue[], head: QueueHead): Promise<void> {
    const { stalledAfterMs, limits, now, logger } = this.#options;
    const before = this.#standings.get(name);
    const headId = head.active.at(-1)?.id ?? head.nextId;
    const same = before?.headId === headId ? before : undefined;
    const { sinceMs, replacedAtMs } = same ?? { sinceMs: now(), replacedAtMs: -Infinity };
    const isWaiting = head.active.length === 0 && head.nextId !== undefined;
    const waitsSinceMs = isWaiting ? (same?.waitsSinceMs ?? now()) : undefined;
    const standing = { headId, sinceMs, waitsSinceMs, replacedAtMs };
    const orphans = head.active.filter((job) => isOrphan(takers, job));
    this.#standings.set(name, { ...standing, orphans: orphans.map(orphanKey) });

    try {
      const restoreLimit = head.isLimited ? undefined : limits.get(name);
      if (restoreLimit) {
        logger.warn(
          { queue: name },
          'the broker has lost the limit of a queue; the worker sets it again',
        );
        await restoreLimit();
      }
      for (const job of orphans) {
        if (before?.orphans.includes(orphanKey(job))) await this.#putBack(name, takers, job);
      }
      // It marks active jobs and moves jobs that it marked before and whose lock is gone.
      if (head.active.length > 0) await this.#backendOf(name)?.moveStalledJobsToWait();
    } catch (error) {
      // Tried again at the next look. A worker whose own connection is broken is replaced below.
      logger.warn(
        { error, queue: name },
        'a queue could not be repaired; the next check tries again',
      );
    }

    const isNotTaking = waitsSinceMs !== undefined && takers.some(({ isIdle }) => isIdle);
    const isOverdue = isNotTaking && now() - Math.max(waitsSinceMs, replacedAtMs) >= stalledAfterMs;
    for (const taker of takers) {
      if (taker.hasEnded || (isOverdue && taker.isIdle)) {
        logger.error({ queue: name }, 'a queue worker takes no jobs; it is replaced');
        taker.replace();
        this.#standings.set(name, { ...standing, replacedAtMs: now(), orphans: [] });
      } else if (isNotTaking && before?.headId === headId) taker.nudge();
    }
  }

  async #putBack(
    name: string,
    takers: readonly WatchedQueue[],
    { id, token }: ActiveJob,
  ): Promise<void> {
    const backend = this.#backendOf(name);
    if (!backend || takers.some((taker) => taker.hasInProgress(id))) return;
    await backend.moveJobFromActiveToWait(id, token);
    this.#recoveredJobs++;
    this.#options.logger.warn(
      { queue: name, jobId: id },
      'a job was acquired and did not reach its worker; it returns to the queue',
    );
  }

  #findHung(queue: WatchedQueue): void {
    const { now, hungAfterMs, onHung, logger } = this.#options;
    const longest = queue.longestTry();
    if (!longest || now() - longest.sinceMs < hungAfterMs) return;
    const key = `${queue.name} ${longest.jobId} ${longest.sinceMs}`;
    if (this.#hung.has(key)) return;
    this.#hung.add(key);
    logger.error(
      { queue: queue.name, ...longest },
      'an attempt at a job does not end; the worker ends, and another one acquires the job',
    );
    onHung(queue.name, longest.jobId);
  }
}

const isOrphan = (takers: readonly WatchedQueue[], { id, token }: ActiveJob): boolean =>
  token !== undefined && takers.some((taker) => taker.owns(token) && !taker.hasInProgress(id));

const orphanKey = ({ id, token }: ActiveJob): string => `${id} ${token}`;
