/**
 * Wait of a worker for commit batches of a shard in Postgres: BullMQ's own backend with another wait.
 *
 * BullMQ's wait ends as soon as a job waits, whether it may be taken or not. A shard runs one commit batch at a time,
 * so while one worker has it every other would ask, be refused and ask again without a pause: 46 transactions for each
 * commit batch with four workers, growing with their square. This wait ends when the shard is free.
 *
 * The worker that took the last commit batch looks at once; the others leave it the time to take the next one too. So a
 * new commit batch costs the others one look each, and a quarter of a second is lost where the worker that had the
 * shard is gone.
 *
 * Before: `queue.ts` adds. After: `queue-workers.ts`, whose workers of shards have one each.
 */
import { PostgresConnection, PostgresQueueBackend, type BackendFactory } from 'bullmq';
import { isShardFree } from '../queue/queue-heads.ts';
import { JOB_CHANNEL, type JobSigns } from './job-signs.ts';

type Connection = ConstructorParameters<typeof PostgresConnection>[0];
type Found = Awaited<ReturnType<PostgresQueueBackend['waitForJob']>>;

const OTHERS_LOOK_AFTER_MS = 250;

class ShardBackend extends PostgresQueueBackend {
  /** True while we know of nobody who took a commit batch after us. */
  #isOurs = true;
  readonly #signs: JobSigns;
  #isInterrupted = false;
  #endWait = (): void => {};

  constructor(signs: JobSigns, ...options: ConstructorParameters<typeof PostgresQueueBackend>) {
    super(...options);
    this.#signs = signs;
  }

  override async moveToActive(token: string, name?: string): Promise<unknown[]> {
    const taken: unknown[] = await super.moveToActive(token, name);
    this.#isOurs = taken[0] !== null;
    return taken;
  }

  override async waitForJob(timeoutSeconds: number): Promise<Found> {
    if (this.#isInterrupted) return null;
    await this.#signs.listen();
    if (this.#isInterrupted) return null;
    return this.#untilFree(timeoutSeconds);
  }

  #untilFree(timeoutSeconds: number): Promise<Found> {
    return new Promise((resolve) => {
      let look: NodeJS.Timeout | undefined;
      let isOver = false;
      const end = (found: Found): void => {
        // A look that comes back late must not end the next wait.
        if (isOver) return;
        isOver = true;
        clearTimeout(timeout);
        clearTimeout(look);
        endHearing();
        this.#endWait = () => {};
        resolve(found);
      };
      const lookSoon = (): void => {
        look ??= setTimeout(
          () => {
            look = undefined;
            isShardFree(this.connection.pool, this.queueName).then(
              (isFree) => isFree && end({ member: this.queueName, score: 0 }),
              // Whoever takes a job then meets the error.
              () => end(null),
            );
          },
          this.#isOurs ? 0 : OTHERS_LOOK_AFTER_MS,
        );
      };
      const timeout = setTimeout(end, timeoutSeconds * 1_000, null);
      this.#endWait = () => end(null);
      const endHearing = this.#signs.wait(this.queueName, {
        onSign: lookSoon,
        onLost: () => end(null),
      });
      // A job may have come before we listened.
      lookSoon();
    });
  }

  override async disconnectBlocking(isToWait?: boolean): Promise<void> {
    this.#isInterrupted = true;
    this.#endWait();
    await super.disconnectBlocking(isToWait);
  }

  override async reconnectBlocking(): Promise<void> {
    this.#isInterrupted = false;
    await super.reconnectBlocking();
  }

  /** Says that the shard is free, when a worker ends its last commit batch and does not take the next one. */
  override async close(isForced?: boolean): Promise<void> {
    this.#endWait();
    if (!isForced && !this.closing) {
      await this.connection.pool
        .query('select pg_notify($1, $2)', [JOB_CHANNEL, this.queueName])
        .catch(() => undefined);
    }
    await super.close(isForced);
  }
}

/** For `withBackend`: only for queues whose global concurrency is 1. */
export const createShardBackend =
  (signs: JobSigns): BackendFactory<PostgresQueueBackend, Connection> =>
  (name, options) =>
    new ShardBackend(signs, new PostgresConnection(options.connection), name, options);
