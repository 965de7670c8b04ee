/**
 * Durability of an acknowledgement on this Redis. If a replica may take the master's place, it waits for a replica too.
 *
 * Replication is asynchronous: a master confirms, dies, and its replica may not have the write. So a commit batch counts
 * as confirmed only when every master that may have it reports it on `replicasMin` of its replicas too (`WAIT`). An
 * unconfirmed batch goes to the disk buffer and is added again with the same ids, which adds each batch once.
 *
 * `WAIT` counts only writes of its own connection. So the connections must be the same ones before the commit batches
 * are sent and after they were confirmed; one that was opened anew may lead to a master that never had them.
 *
 * A Cluster whose master has lost its replicas goes on without them after `graceMs`. By then either one of them has
 * become master, or it is cut off from the majority and takes no writes, or they are gone and cannot be elected. A set
 * watched by Sentinels has no such rule, so no write there is confirmed until a replica is back.
 */
import { Cluster, type Redis } from 'ioredis';
import type { Logger } from '../process/logger.ts';
import type { RedisClient } from './redis-client.ts';
import { mastersOf } from './redis.ts';
import { repeat, type Repetition } from '../process/repeat.ts';

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
  return replicasMin > 0
    ? { ...worst, description: `${worst.description} and on ${replicasMin} of its replicas` }
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

export interface ReplicaConfirmationOptions {
  readonly redis: RedisClient;
  /** At least 1. */
  readonly replicasMin: number;
  /** Longer than a failover takes. */
  readonly graceMs: number;
  /** How long the replicas may take. */
  readonly timeoutMs: number;
  /** Milliseconds, never set: a clock that jumps must not end the grace. */
  readonly monotonicNow: () => number;
  readonly logger: Logger;
}

/** A master with fewer replicas than wanted. */
interface Shortage {
  readonly sinceMs: number;
  readonly attachedCount: number;
}

const LOOK_INTERVAL_MS = 500;

export class ReplicaConfirmation {
  readonly #options: ReplicaConfirmationOptions;
  readonly #isCluster: boolean;
  /** By master. Looked at all the time while there are any, so that `sinceMs` means without a break. */
  readonly #shortages = new Map<Redis, Shortage>();
  #looks: Repetition | undefined;

  constructor(options: ReplicaConfirmationOptions) {
    this.#options = options;
    this.#isCluster = options.redis instanceof Cluster;
  }

  /**
   * Runs `write` and resolves when its effects are on enough replicas.
   *
   * @throws Error if they may not be; the write may be there all the same.
   */
  async confirm<Result>(write: () => Promise<Result>): Promise<Result> {
    const { redis } = this.#options;
    const before = connectionsOf(redis);
    const result = await write();
    await Promise.all(mastersOf(redis).map((master) => this.#waitForReplicas(master)));
    const after = connectionsOf(redis);
    if (before.size !== after.size || [...after].some((connection) => !before.has(connection)))
      throw new Error('the masters of Redis changed while commit batches were added');
    return result;
  }

  async stop(): Promise<void> {
    await this.#looks?.stop();
  }

  async #waitForReplicas(master: Redis): Promise<void> {
    const { replicasMin, timeoutMs } = this.#options;
    const wanted = await this.#wantedOf(master);
    if (wanted === 0) return;
    const count = Number(await master.call('WAIT', wanted, timeoutMs));
    if (count >= wanted) return;
    await this.#noticeShortage(master);
    throw new Error(`${count} of ${replicasMin} replicas confirmed within ${timeoutMs} ms`);
  }

  /** Fewer than `replicasMin` only of a Cluster's master that has been without them for long enough. */
  async #wantedOf(master: Redis): Promise<number> {
    const { replicasMin, graceMs, monotonicNow } = this.#options;
    const shortage = this.#shortages.get(master);
    if (!shortage || monotonicNow() - shortage.sinceMs < graceMs) return replicasMin;
    // One that came back since the last look is waited for again.
    await this.#look(master);
    return this.#shortages.get(master)?.attachedCount ?? replicasMin;
  }

  async #noticeShortage(master: Redis): Promise<void> {
    if (!this.#isCluster || this.#shortages.has(master)) return;
    await this.#look(master);
    if (!this.#shortages.has(master)) return;
    const { graceMs, logger } = this.#options;
    logger.warn(
      { graceMs, ...addressOf(master) },
      'a master of Redis has fewer replicas than required; restore them within graceMs, or intake stops adding to it',
    );
    this.#looks ??= repeat('count replicas', LOOK_INTERVAL_MS, logger, () =>
      Promise.all([...this.#shortages.keys()].map((each) => this.#look(each))),
    );
  }

  async #look(master: Redis): Promise<void> {
    const { replicasMin, monotonicNow } = this.#options;
    const attachedCount = await countReplicas(master).catch(() => undefined);
    // For one that does not answer, or is no master any more, the time begins anew.
    if (attachedCount === undefined || attachedCount >= replicasMin) this.#shortages.delete(master);
    else
      this.#shortages.set(master, {
        sinceMs: this.#shortages.get(master)?.sinceMs ?? monotonicNow(),
        attachedCount,
      });
  }
}

/** The connections that `WAIT` covers. A Cluster's client has one connection in the life of each node object. */
const connectionsOf = (redis: RedisClient): Set<unknown> =>
  new Set<unknown>(redis instanceof Cluster ? redis.nodes('master') : [redis.stream]);

/** Undefined for one that is no master. */
async function countReplicas(redis: Redis): Promise<number | undefined> {
  const [role, , replicas] = (await redis.role()) as [string, number, unknown[]];
  return role === 'master' ? replicas.length : undefined;
}

const addressOf = (redis: Redis) => ({ host: redis.options.host, port: redis.options.port });
