/**
 * Connections to Redis, and what a crash of this Redis can cost.
 *
 * Two kinds, because they must fail differently: a producer answers a waiting client and so fails
 * fast; a worker has nobody waiting and so waits for Redis to come back.
 */
import { Redis } from 'ioredis';

const RECONNECT_DELAY_MS_MAX = 2000;

const retryStrategy = (attempt: number): number => Math.min(attempt * 50, RECONNECT_DELAY_MS_MAX);

/**
 * For adding jobs: a command fails at once while the connection is away, and after
 * `commandTimeoutMs` when it hangs. Resolves when Redis first answers or first fails; in the latter
 * case it goes on trying.
 */
export async function connectProducer(url: string, commandTimeoutMs: number): Promise<Redis> {
  const redis = new Redis(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: commandTimeoutMs,
    connectTimeout: commandTimeoutMs,
    retryStrategy,
  });
  await new Promise<void>((resolve) => {
    redis.once('ready', resolve);
    redis.once('error', () => resolve());
  });
  return redis;
}

/** For BullMQ workers, which need `maxRetriesPerRequest: null`. */
export function connectWorker(url: string): Redis {
  return new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
}

/** What a 200 is worth on this broker. `safe`: what was confirmed is on disk. */
export interface Durability {
  readonly isSafe: boolean;
  /** For the log and `/readyz`: the settings found and what a crash can cost. */
  readonly description: string;
}

/**
 * Reads the real settings; a server that hides them (`CONFIG` is often forbidden) is not called safe.
 *
 * @throws Error where it does not answer, or not in earnest (no password, still loading).
 */
export async function readRedisDurability(redis: Redis): Promise<Durability> {
  await redis.ping();
  const settings = new Map<string, string>();
  try {
    for (const name of ['appendonly', 'appendfsync', 'maxmemory-policy']) {
      const [, value] = (await redis.config('GET', name)) as [string, string];
      settings.set(name, value);
    }
  } catch {
    return {
      isSafe: false,
      description: 'redis: settings cannot be read; what a crash costs is unknown',
    };
  }
  const found = [...settings].map(([name, value]) => `${name}=${value}`).join(' ');
  if (settings.get('maxmemory-policy') !== 'noeviction') {
    return { isSafe: false, description: `redis: ${found}: queued envelopes can be evicted` };
  }
  if (settings.get('appendonly') !== 'yes') {
    return {
      isSafe: false,
      description: `redis: ${found}: a crash loses everything since the last snapshot`,
    };
  }
  if (settings.get('appendfsync') !== 'always') {
    return { isSafe: false, description: `redis: ${found}: a crash loses about the last second` };
  }
  return { isSafe: true, description: `redis: ${found}: what is acknowledged is on disk` };
}
