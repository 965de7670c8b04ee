/**
 * Connections to Redis: one server, the master that Sentinels name, or a Cluster (`redis-url.ts`).
 *
 * There are two kinds, because they must fail differently. A producer answers a waiting client and so fails fast; a
 * worker has no waiting client and so waits for Redis to come back.
 *
 * If there is a server to fail over to, a silent one is given up after a while: its connection would stay open for
 * as long as it hangs.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { GatheredWrites } from '@sluice/domain/values/gathered-writes';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisClient } from './redis-client.ts';
import { rememberFailure } from './redis-refusal.ts';
import { parseRedisUrl, type RedisAddress } from '../settings/redis-url.ts';

const RECONNECT_DELAY_MS_MAX = 2_000;
const SENTINEL_TIMEOUT_MS = 1_000;
/** How late a Cluster's client learns that a master which only hangs has been replaced. */
const TOPOLOGY_INTERVAL_MS = 5_000;
/** Connecting to a host that is gone only waits; by this time another one is master. */
const WORKER_CONNECT_TIMEOUT_MS = 2_000;
/** Time that a node may take to go after a quit: ioredis cuts it after 2 s without an answer. */
const DISCONNECTED_WITHIN_MS = 3_000;
const BLOCKING_MS_MAX = 10_000;
/** Longer than a blocking command may wait, since that is silence too. */
const WORKER_SILENCE_MS_MAX = BLOCKING_MS_MAX + 2_000;

type CommandOptions = Pick<
  RedisOptions,
  'maxRetriesPerRequest' | 'commandTimeout' | 'connectTimeout'
>;

const retryStrategy = (attempt: number): number => Math.min(attempt * 50, RECONNECT_DELAY_MS_MAX);

/**
 * For adding jobs: a command fails at once while the connection is away, and after `commandTimeoutMs` when it hangs.
 * Resolves when Redis first answers, first fails, or has done neither in that time; it goes on trying.
 *
 * @param onFailure - called with the first failure, if one came first.
 */
export async function connectProducer(
  url: string,
  commandTimeoutMs: number,
  onFailure: (error: Error) => void = () => {},
): Promise<RedisClient> {
  const redis = connect(parseRedisUrl(url), 2 * commandTimeoutMs, false, {
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
    connectTimeout: commandTimeoutMs,
  });
  rememberFailure(redis);
  const waiting = new AbortController();
  await Promise.race([
    new Promise<void>((resolve) => {
      redis.once('ready', resolve);
      redis.once('error', (error: Error) => {
        onFailure(error);
        resolve();
      });
    }),
    // A Cluster that refuses its slots emits neither event.
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
 * How long a blocking command may wait before the server counts as silent: for ever on one Redis, and on Postgres,
 * which has no such commands.
 */
export function blockingMsMax(redis: RedisClient | undefined): number {
  const options = redis instanceof Cluster ? redis.options.redisOptions : redis?.options;
  return options?.socketTimeout === undefined ? Infinity : BLOCKING_MS_MAX;
}

/**
 * Reopens a connection that is open and silent. One that is being opened is left alone: its steps have deadlines of
 * their own, and ioredis ends a client for good if `reconnect` is called while it asks a Sentinel for the master.
 *
 * A Cluster's client reconnects when the last of its nodes has gone. If a late answer (`MOVED`) gives it another
 * node meanwhile, it would wait for that one for ever.
 */
export function reconnect(redis: RedisClient): void {
  if (redis.status === 'ready' || redis.status === 'connect') redis.disconnect(true);
  if (redis instanceof Cluster && redis.status === 'disconnecting')
    setTimeout(connectStuck, DISCONNECTED_WITHIN_MS, redis).unref();
}

function connectStuck(cluster: Cluster): void {
  if (cluster.status === 'disconnecting') void cluster.connect().catch(() => undefined);
}

/**
 * One server, or the one that Sentinels name. Commands issued together leave in one write to the socket instead of
 * one each: with four that saved 130 µs of 600, and the server reads them all at once and writes its file once for
 * them.
 */
class GatheringRedis extends Redis {
  /** There is no stream until the first connection. */
  readonly #writes = new GatheredWrites(() => this.stream);

  /** BullMQ's blocking connections. */
  override duplicate(override?: Partial<RedisOptions>): Redis {
    return leaveOtherDatabases(super.duplicate(override));
  }

  override sendCommand(...given: Parameters<Redis['sendCommand']>): unknown {
    this.#writes.expectWrite();
    return super.sendCommand(...given);
  }
}

/**
 * A connection whose SELECT is refused is closed and tried again. ioredis 6 goes on with it, in database 0, which may be
 * another installation's.
 */
function leaveOtherDatabases(redis: Redis): Redis {
  return redis.on('error', (error) => {
    if ('command' in error && (error.command as { name?: string }).name === 'select')
      redis.disconnect(true);
  });
}

/**
 * Connects a Cluster's client that ioredis 6.0.0 leaves closed. That client connects again once the last of its nodes has gone.
 * If a node goes late, while the names of the new ones are looked up, ioredis drops this attempt and begins no other. A node that
 * hangs goes 2 s late, so a failover could cut a worker off until it was started again.
 */
function connectIfLeftClosed(cluster: Cluster): Cluster {
  let isEnded = false;
  cluster.on('end', () => (isEnded = true));
  cluster.on('close', () => {
    const connectIfClosed = (): void => {
      if (!isEnded && cluster.status === 'close') cluster.connect().catch(() => undefined);
    };
    setTimeout(connectIfClosed, DISCONNECTED_WITHIN_MS).unref();
  });
  const duplicate = cluster.duplicate.bind(cluster);
  // BullMQ's blocking connections.
  cluster.duplicate = (...given: Parameters<typeof duplicate>) =>
    connectIfLeftClosed(duplicate(...given));
  return cluster;
}

function connect(
  address: RedisAddress,
  silenceMsMax: number,
  enableOfflineQueue: boolean,
  options: CommandOptions,
): RedisClient {
  if (address.kind === 'single')
    return leaveOtherDatabases(
      new GatheringRedis(address.url, { ...options, enableOfflineQueue, retryStrategy }),
    );
  const { username, password, isTls } = address;
  const each = {
    ...options,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(isTls && { tls: {} }),
    socketTimeout: silenceMsMax,
  };
  if (address.kind === 'cluster')
    return connectIfLeftClosed(
      new Cluster([...address.hosts], {
        redisOptions: each,
        enableOfflineQueue,
        clusterRetryStrategy: retryStrategy,
        slotsRefreshInterval: TOPOLOGY_INTERVAL_MS,
        // A certificate names hosts, not the addresses that they resolve to.
        ...(isTls && { dnsLookup: (host, callback) => callback(null, host) }),
      }),
    );
  const { sentinelLogin } = address;
  const redis = new GatheringRedis({
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
  return leaveOtherDatabases(redis);
}

/** The masters that hold our writes: one, or every one of a Cluster. */
export const mastersOf = (redis: RedisClient): Redis[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis];
