/**
 * Queues to which a process adds. They are opened anew if BullMQ would fail for ever.
 *
 * On Postgres BullMQ asks once, when a queue is opened, whether its tables are there, and keeps an error
 * for good: a queue that was opened during an outage would fail until the next start.
 *
 * Beside `queue.ts` and `queue-tasks.ts`, which make the jobs.
 */
import { createPostgresBackend, Queue, withBackend } from 'bullmq';
import type pg from 'pg';
import type { WarnOfConnection } from '../redis/connection-warnings.ts';
import type { RedisClient } from '../redis/redis-client.ts';

export type AddingQueue = Queue<unknown, void, string>;

export interface AddingBroker {
  /** One of the two is set. */
  readonly redis: RedisClient | undefined;
  readonly pool: pg.Pool | undefined;
  readonly prefixOf: (queueName: string) => string;
  readonly warnOfConnection: WarnOfConnection;
}

/** Queues by name. A failure throws BullMQ's error; the next try may find a queue opened anew. */
export class AddingQueues {
  readonly #broker: AddingBroker;
  readonly #queues = new Map<string, AddingQueue>();
  #reopening: Promise<void> | undefined;

  /** Opens them all. A broker that is away makes each use fail, not this. */
  constructor(broker: AddingBroker, names: readonly string[]) {
    this.#broker = broker;
    for (const name of names) this.#queues.set(name, this.#open(name));
  }

  /** The queue as it is now. Do not keep it: it may be replaced. */
  get(name: string): AddingQueue {
    return this.#queues.get(name) as AddingQueue;
  }

  /** Runs `work`; if it fails, the queues that cannot work any more are replaced for the next one. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (this.#broker.pool)
        this.#reopening ??= this.#reopenBroken().finally(() => (this.#reopening = undefined));
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#reopening;
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  async #reopenBroken(): Promise<void> {
    for (const [name, queue] of this.#queues) {
      try {
        await queue.waitUntilReady();
      } catch {
        void queue.close().catch(() => undefined);
        this.#queues.set(name, this.#open(name));
      }
    }
  }

  #open(name: string): AddingQueue {
    const { redis, pool, prefixOf, warnOfConnection } = this.#broker;
    const queue = redis
      ? new Queue<unknown, void, string>(name, {
          connection: redis,
          prefix: prefixOf(name),
          // Starts also while Redis is away: BullMQ's check would ask once and fail for ever after.
          skipWaitingForReady: true,
          skipVersionCheck: true,
        })
      : (new (withBackend(createPostgresBackend).Queue)(name, {
          connection: pool as never,
        }) as unknown as AddingQueue);
    queue.on('error', (error) => warnOfConnection(error, name));
    return queue;
  }
}
