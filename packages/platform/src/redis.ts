/**
 * Connections to Redis: one server, the master that Sentinels name, or a Cluster (`redis-url.ts`).
 *
 * Two kinds, because they must fail differently: a producer answers a waiting client and so fails
 * fast; a worker has nobody waiting and so waits for Redis to come back.
 *
 * Where there is a server to fail over to, one that says nothing is left after a while: its
 * connection would stay open for as long as it hangs.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { parseRedisUrl, type RedisAddress } from './redis-url.ts';

export type RedisClient = Redis | Cluster;

const RECONNECT_DELAY_MS_MAX = 2_000;
const SENTINEL_TIMEOUT_MS = 1_000;
/** How late a Cluster's client learns that a master which only hangs has been replaced. */
const TOPOLOGY_INTERVAL_MS = 5_000;
/** A host that is gone lets a connection wait; it is another's turn to be master by then. */
const WORKER_CONNECT_TIMEOUT_MS = 2_000;
/** Of a node that is told to go; ioredis cuts one that does not answer that after 2 s. */
const DISCONNECTED_WITHIN_MS = 3_000;
const BLOCKING_MS_MAX = 10_000;
/** Longer than a blocking command is let wait: one that waits says nothing either. */
const WORKER_SILENCE_MS_MAX = BLOCKING_MS_MAX + 2_000;

type CommandOptions = Pick<
  RedisOptions,
  'maxRetriesPerRequest' | 'commandTimeout' | 'connectTimeout'
>;

const retryStrategy = (attempt: number): number => Math.min(attempt * 50, RECONNECT_DELAY_MS_MAX);

/**
 * For adding jobs: a command fails at once while the connection is away, and after
 * `commandTimeoutMs` when it hangs. Resolves when Redis first answers or first fails, or neither in
 * that time; then it goes on trying.
 */
export async function connectProducer(url: string, commandTimeoutMs: number): Promise<RedisClient> {
  const redis = connect(parseRedisUrl(url), 2 * commandTimeoutMs, false, {
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
    connectTimeout: commandTimeoutMs,
  });
  const waiting = new AbortController();
  await Promise.race([
    new Promise<void>((resolve) => {
      redis.once('ready', resolve);
      redis.once('error', () => resolve());
    }),
    // A Cluster that refuses its slots says neither.
    sleep(commandTimeoutMs, undefined, { signal: waiting.signal }).catch(() => undefined),
  ]);
  waiting.abort();
  return redis;
}

/** For BullMQ workers, which need `maxRetriesPerRequest: null`. */
export function connectWorker(url: string): RedisClient {
  return connect(parseRedisUrl(url), WORKER_SILENCE_MS_MAX, true, {
    maxRetriesPerRequest: null,
    connectTimeout: WORKER_CONNECT_TIMEOUT_MS,
  });
}

/**
 * How long a blocking command may wait without being taken for a server that says nothing: for ever on one
 * Redis, and on Postgres, which has none.
 */
export function blockingMsMax(redis: RedisClient | undefined): number {
  const options = redis instanceof Cluster ? redis.options.redisOptions : redis?.options;
  return options?.socketTimeout === undefined ? Infinity : BLOCKING_MS_MAX;
}

/**
 * Opens a connection anew that is open and says nothing. One that is being opened is left alone: its steps
 * have deadlines of their own, and ioredis ends a client for good that is told to connect anew while it
 * asks a Sentinel for the master.
 *
 * A Cluster's client connects anew when the last of its nodes has gone. Where an answer that was under way
 * (`MOVED`) gives it another one meanwhile, it would wait for that for ever.
 */
export function reconnect(redis: RedisClient): void {
  if (redis.status === 'ready' || redis.status === 'connect') redis.disconnect(true);
  if (redis instanceof Cluster && redis.status === 'disconnecting')
    setTimeout(connectStuck, DISCONNECTED_WITHIN_MS, redis).unref();
}

function connectStuck(cluster: Cluster): void {
  if (cluster.status === 'disconnecting') void cluster.connect().catch(() => undefined);
}

/** BullMQ makes a command some microtasks after what it follows from; commands of one go come in a row. */
const QUIET_MICROTASKS = 8;

/**
 * One server, or the one that Sentinels name. Commands that are made in one go leave in one write to the
 * socket instead of one each: of four that saves 130 µs of 600, and the server finds them all at once, so
 * that it writes its file once for them.
 */
class GatheringRedis extends Redis {
  #quietMicrotasks = QUIET_MICROTASKS;

  override sendCommand(...given: Parameters<Redis['sendCommand']>): unknown {
    const isGathering = this.#quietMicrotasks < QUIET_MICROTASKS;
    this.#quietMicrotasks = 0;
    if (!isGathering) void this.#gather();
    return super.sendCommand(...given);
  }

  async #gather(): Promise<void> {
    // Absent until the first connection.
    const stream = this.stream as Redis['stream'] | undefined;
    stream?.cork();
    for (; this.#quietMicrotasks < QUIET_MICROTASKS; this.#quietMicrotasks++)
      await Promise.resolve();
    stream?.uncork();
  }
}

function connect(
  address: RedisAddress,
  silenceMsMax: number,
  enableOfflineQueue: boolean,
  options: CommandOptions,
): RedisClient {
  if (address.kind === 'single')
    return new GatheringRedis(address.url, { ...options, enableOfflineQueue, retryStrategy });
  const { username, password, isTls } = address;
  const each = {
    ...options,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(isTls && { tls: {} }),
    socketTimeout: silenceMsMax,
  };
  if (address.kind === 'cluster')
    return new Cluster([...address.hosts], {
      redisOptions: each,
      enableOfflineQueue,
      clusterRetryStrategy: retryStrategy,
      slotsRefreshInterval: TOPOLOGY_INTERVAL_MS,
      // A certificate names hosts, not the addresses that they resolve to.
      ...(isTls && { dnsLookup: (host, callback) => callback(null, host) }),
    });
  const { sentinelLogin } = address;
  return new GatheringRedis({
    ...each,
    enableOfflineQueue,
    retryStrategy,
    sentinels: [...address.hosts],
    name: address.master,
    db: address.database,
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    ...(sentinelLogin.username !== undefined && { sentinelUsername: sentinelLogin.username }),
    ...(sentinelLogin.password !== undefined && { sentinelPassword: sentinelLogin.password }),
    ...(isTls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    // The old master came back as a replica: ask again who is master, and send the command there.
    reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
  });
}

/** The masters that hold what we write: one, or every one of a Cluster. */
export const mastersOf = (redis: RedisClient): Redis[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis];
