/**
 * Source of jobs: every difference between Redis and Postgres for consumers.
 *
 * Used by `queue-consumers.ts` and `queue-tasks.ts`. Beside `queue-adding.ts`, which adds.
 */
import {
  createPostgresBackend,
  Queue,
  withBackend,
  Worker,
  type Processor,
  type WorkerOptions,
} from 'bullmq';
import { Cluster, type Redis } from 'ioredis';
import { postgresHeads, redisHeads, type ReadHeads } from '../queue/queue-heads.ts';
import { createRedisShardBackend, createShardBackend } from './queue-shard-backend.ts';
import {
  postgresBatches,
  postgresWaiting,
  redisBatches,
  redisWaiting,
  type ReadBatches,
  type WaitingCommitBatches,
} from './queue-waiting.ts';
import { JobSigns } from './job-signs.ts';
import { postgresPendingLog, redisPendingLog, type PendingLog } from '../queue/pending-log.ts';
import { openQueuePool } from '../queue/queue-pool.ts';
import type { BrokerOptions } from '../queue/broker-options.ts';
import { pendingLogKey, redisPrefix, shardQueueName } from '../queue/queue.ts';
import { blockingMsMax, connectWorker, reconnect } from '../redis/redis.ts';

type OpenWorker = (
  name: string,
  process: Processor,
  options: Omit<WorkerOptions, 'connection' | 'prefix'>,
) => Worker;

export interface TakingSide {
  readonly kind: 'redis' | 'postgres';
  openQueue(name: string): Queue;
  readonly openWorker: OpenWorker;
  readonly openShardWorker: OpenWorker;
  waitingIn(shardQueue: string): WaitingCommitBatches;
  readonly pendingLog: PendingLog;
  /** Calls `listener` when a worker of a shard begins to take a job that it was given a sign of. */
  onTaking(listener: () => void): void;
  /** Batches of any shards that are still queued, taken or not. */
  readonly readBatches: ReadBatches;
  readonly readHeads: ReadHeads;
  /** How long a worker may wait for the sign of a job before its connection counts as silent. */
  readonly waitMsMax: number;
  /** Ends the wait of an idle worker at once, so that it asks for a job; absent if that cannot be done. */
  readonly endWait?: (worker: Worker) => void;
  /** Reopens a connection that is open and silent. */
  reconnect(): void;
  /** Calls `listener` when a connection has closed, if that is known. */
  onClosed(listener: () => void): void;
  /** Called when the connection to the broker is there again, perhaps to one that has lost its data. */
  onReady(listener: () => void): void;
  /** Disconnects from a broker that does not answer, so calls that wait for it end. */
  leave(): void;
  /** Call last. */
  close(): Promise<void>;
}

/** @param listenerCount - how many connections to Postgres will be kept to hear of new jobs. */
export function openTakingSide(
  options: BrokerOptions,
  listenerCount: number,
  warnOfConnection: (error: Error) => void,
  postgresTimeoutMs?: number,
): TakingSide {
  return options.redisUrl
    ? takeFromRedis(options.redisUrl, options.prefix, warnOfConnection)
    : takeFromPostgres(options, listenerCount, postgresTimeoutMs);
}

/**
 * BullMQ gives no sign of a commit batch that comes while another one of its shard runs: the worker that ends that one
 * takes it. A worker that closes takes no job; without a sign the shard would stand until the watch replaces the other's
 * worker.
 */
class ShardWorker extends Worker {
  readonly #giveSign: () => Promise<unknown>;

  constructor(
    name: string,
    process: Processor,
    options: WorkerOptions,
    openBackend: ReturnType<typeof createRedisShardBackend>,
    giveSign: () => Promise<unknown>,
  ) {
    super(name, process, options, openBackend);
    this.#giveSign = giveSign;
  }

  override async close(isForced = false): Promise<void> {
    await super.close(isForced);
    if (!isForced) await this.#giveSign().catch(() => undefined);
  }
}

function takeFromRedis(
  url: string,
  prefix: string,
  warnOfConnection: (error: Error) => void,
): TakingSide {
  const redis = connectWorker(url);
  redis.on('error', (error) => warnOfConnection(error));
  const connectionOf = (name: string) => ({
    connection: redis,
    prefix: redisPrefix(prefix, name),
  });
  const keyOf = (name: string, part: string) => `${redisPrefix(prefix, name)}:${name}:${part}`;
  const openWorker: OpenWorker = (name, process, options) =>
    new Worker(name, process, { ...options, ...connectionOf(name) });
  let onTaking = (): void => {};
  const openBackend = createRedisShardBackend(redis, () => onTaking());
  const openShardWorker: OpenWorker = (name, process, options) =>
    new ShardWorker(name, process, { ...options, ...connectionOf(name) }, openBackend, () =>
      redis.zadd(keyOf(name, 'marker'), 0, '0'),
    );
  return {
    kind: 'redis',
    openQueue: (name) => new Queue(name, connectionOf(name)),
    openWorker,
    openShardWorker,
    waitingIn: (name) => redisWaiting(redis, (part) => keyOf(name, part)),
    pendingLog: redisPendingLog(redis, pendingLogKey(prefix)),
    onTaking: (listener) => void (onTaking = listener),
    readBatches: redisBatches(redis, (shard, id) => keyOf(shardQueueName(shard), id)),
    readHeads: redisHeads(redis, keyOf),
    waitMsMax: blockingMsMax(redis),
    // No `endWait`: a wait here ends only when its connection is closed, which is as good as replacing the worker.
    reconnect: () => reconnect(redis),
    onClosed: (listener) => void redis.on('close', listener),
    onReady(listener) {
      redis.on('ready', listener);
      // A Cluster's client does not report that one of its nodes is back.
      if (!(redis instanceof Cluster)) return;
      for (const node of redis.nodes()) node.on('ready', listener);
      redis.on('+node', (node: Redis) => void node.on('ready', listener));
    },
    leave: () => redis.disconnect(),
    close: () => Promise.resolve(),
  };
}

function takeFromPostgres(
  options: BrokerOptions,
  listenerCount: number,
  timeoutMs: number | undefined,
): TakingSide {
  const pool = openQueuePool(options, { listenerCount, timeoutMs });
  const connection = { connection: pool };
  const plain = withBackend(createPostgresBackend);
  const signs = new JobSigns(pool);
  const ofShards = withBackend(createShardBackend(signs, pool));
  // Typed as if for Redis: BullMQ has no other type for any worker.
  const openWith =
    (workerClass: unknown): OpenWorker =>
    (name, process, workerOptions) =>
      new (workerClass as typeof Worker)(name, process, { ...workerOptions, ...connection });
  return {
    kind: 'postgres',
    openQueue: (name) => new (plain.Queue as unknown as typeof Queue)(name, connection),
    openWorker: openWith(plain.Worker),
    openShardWorker: openWith(ofShards.Worker),
    waitingIn: (name) => postgresWaiting(pool, name),
    pendingLog: postgresPendingLog(pool),
    onTaking: () => {},
    readBatches: postgresBatches(pool),
    readHeads: postgresHeads(pool),
    waitMsMax: blockingMsMax(undefined),
    endWait(worker) {
      const backend = worker.getBackend();
      // In one turn: a close in between would be undone by the second call.
      void backend.disconnectBlocking();
      void backend.reconnectBlocking();
    },
    reconnect: () => {},
    onClosed: () => {},
    onReady: () => {},
    leave: () => {},
    async close() {
      await signs.close();
      await pool.end();
    },
  };
}
