/** Durability of an acknowledgement, from the real settings of every master. */
import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from './redis-client.ts';
import { mastersOf } from './redis.ts';

/** Durability of a 200 on this broker. `isSafe`: confirmed writes are on disk. */
export interface Durability {
  readonly isSafe: boolean;
  /**
   * The broker's settings can lose confirmed writes, in a crash or for want of memory. False if it hides its settings,
   * and if only a failover can lose writes, which `REDIS_REPLICAS_MIN` decides.
   */
  readonly isSaidUnsafe: boolean;
  /** For the log and `/readyz`: the settings found and the possible loss in a crash. */
  readonly description: string;
}

/**
 * Reads the real settings of every master; a server that hides them (`CONFIG` is often forbidden) does not count as
 * safe, and neither does one that acknowledges writes that a failover would lose.
 *
 * @throws Error if one does not answer, or only with an error (no password, still loading).
 */
export async function readRedisDurability(
  redis: RedisClient,
  replicasMin: number,
): Promise<Durability> {
  const masters = mastersOf(redis);
  const each = await Promise.all(masters.map((master) => readMasterDurability(redis, master)));
  const worst = each.find((one) => one.isSaidUnsafe) ?? each.find((one) => !one.isSafe) ?? each[0];
  if (!worst) throw new Error('no master of the Redis Cluster is known');
  if (!worst.isSafe || !isReplaceable(redis)) return worst;
  const confirming =
    redis instanceof Cluster ? `${replicasMin} of its replicas` : 'all its replicas';
  return replicasMin > 0
    ? { ...worst, description: `${worst.description} and on ${confirming}` }
    : {
        isSafe: false,
        isSaidUnsafe: false,
        description: `${worst.description}; a failover loses calls that the replica has not received (REDIS_REPLICAS_MIN)`,
      };
}

/** True if a replica may take a master's place without us. */
const isReplaceable = (redis: RedisClient): boolean =>
  redis instanceof Cluster || Boolean(redis.options.sentinels);

interface NeededSetting {
  readonly name: string;
  readonly value: string;
  /** Loss with another value. */
  readonly cost: string;
}

/** In order of the loss: the first wrong one is reported. */
const NEEDED_SETTINGS: readonly NeededSetting[] = [
  {
    name: 'maxmemory-policy',
    value: 'noeviction',
    cost: 'queued commit batches can be evicted',
  },
  {
    name: 'appendonly',
    value: 'yes',
    cost: 'a crash loses everything since the last snapshot',
  },
  { name: 'appendfsync', value: 'always', cost: 'a crash loses about the last second' },
  {
    name: 'no-appendfsync-on-rewrite',
    value: 'no',
    cost: 'a crash loses calls that came while the file was rewritten',
  },
];

/**
 * Of one of the masters of `redis`: read by `CONFIG GET`, or by `INFO` if that is refused or has an empty answer.
 *
 * @throws Error if it does not answer, or only with an error.
 */
export async function readMasterDurability(redis: RedisClient, master: Redis): Promise<Durability> {
  await master.ping();
  const settings = await readSettings(master);
  const told = NEEDED_SETTINGS.flatMap(({ name }) =>
    settings.has(name) ? [`${name}=${settings.get(name)}`] : [],
  );
  const found = [`${nameOf(redis, master)}:`, ...told].join(' ');
  const wrong = NEEDED_SETTINGS.find(({ name, value }) => (settings.get(name) ?? value) !== value);
  if (wrong)
    return {
      isSafe: false,
      isSaidUnsafe: true,
      description: `${found}: ${wrong.cost}`,
    };
  const hidden = NEEDED_SETTINGS.filter(({ name }) => !settings.has(name));
  if (hidden.length > 0)
    return {
      isSafe: false,
      isSaidUnsafe: false,
      description: `${found}${told.length === 0 ? ' ' : ': other '}settings cannot be read; the loss in a crash is unknown`,
    };
  return {
    isSafe: true,
    isSaidUnsafe: false,
    description: `${found}: acknowledged calls are on disk`,
  };
}

/** Of several masters an operator must know which. */
const nameOf = (redis: RedisClient, { options }: Redis): string =>
  redis instanceof Cluster ? `redis ${options.host}:${options.port}` : 'redis';

async function readSettings(redis: Redis): Promise<Map<string, string>> {
  const settings = new Map<string, string>();
  for (const { name } of NEEDED_SETTINGS) {
    const answer = await unlessRefused(redis.config('GET', name));
    // Services that know `CONFIG GET` for a few settings answer an empty list for the others.
    if (Array.isArray(answer) && typeof answer[1] === 'string') settings.set(name, answer[1]);
  }
  if (settings.has('appendonly') && settings.has('maxmemory-policy')) return settings;
  const persistence = await unlessRefused(redis.info('persistence'));
  const isLogging = /^aof_enabled:([01])/m.exec(String(persistence))?.[1];
  if (isLogging !== undefined && !settings.has('appendonly'))
    settings.set('appendonly', isLogging === '1' ? 'yes' : 'no');
  const policy = /^maxmemory_policy:([\w-]+)/m.exec(
    String(await unlessRefused(redis.info('memory'))),
  )?.[1];
  if (policy !== undefined && !settings.has('maxmemory-policy'))
    settings.set('maxmemory-policy', policy);
  return settings;
}

/** `undefined` if the server forbids the command. A server that does not answer is an error. */
async function unlessRefused(command: Promise<unknown>): Promise<unknown> {
  try {
    return await command;
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return undefined;
    throw error;
  }
}
