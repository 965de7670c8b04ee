/**
 * What an acknowledgement is worth on this Redis, and how it is made to be worth that where a
 * replica may take the master's place.
 *
 * Replication is asynchronous: a master confirms, dies, and its replica may never have heard. So a
 * commit batch counts as confirmed only when every master that it may be on has said that
 * `replicasMin` of its replicas have it too (`WAIT`). Whatever is not confirmed goes to the disk buffer and
 * is added again with the same ids, which costs nothing where it was there already.
 *
 * `WAIT` speaks of what came over its own connection. So the connections must be the same ones
 * before the commit batches are sent and after they were confirmed; one that was opened anew may lead to
 * a master that never had them.
 *
 * A Cluster whose master has lost its replicas goes on without them after `graceMs`. By then either
 * one of them has become master, or it is cut off from the majority and takes nothing, or they are gone
 * and cannot be elected. A set watched by Sentinels has no such rule, so there nothing is confirmed
 * until a replica is back.
 */
import { Cluster, type Redis } from 'ioredis';
import type { Logger } from '../process/logger.ts';
import type { RedisClient } from './redis-client.ts';
import { mastersOf } from './redis.ts';
import { repeat, type Repetition } from '../process/repeat.ts';

/** What a 200 is worth on this broker. `isSafe`: what was confirmed is on disk. */
export interface Durability {
  readonly isSafe: boolean;
  /** For the log and `/readyz`: the settings found and what a crash can cost. */
  readonly description: string;
}

/**
 * Reads the real settings of every master; a server that hides them (`CONFIG` is often forbidden) is
 * not called safe, nor is one that acknowledges what a failover would lose.
 *
 * @throws Error where one does not answer, or only with an error (no password, still loading).
 */
export async function readRedisDurability(
  redis: RedisClient,
  replicasMin: number,
): Promise<Durability> {
  const masters = mastersOf(redis);
  if (masters.length === 0) throw new Error('no master of the Redis Cluster is known');
  const [first, ...others] = await Promise.all(masters.map(readMasterDurability));
  const worst = [first as Durability, ...others].reduce((one, other) => (one.isSafe ? other : one));
  if (!worst.isSafe || !isReplaceable(redis)) return worst;
  return replicasMin > 0
    ? { isSafe: true, description: `${worst.description} and on ${replicasMin} of its replicas` }
    : {
        isSafe: false,
        description: `${worst.description}; a failover loses what the replica had not heard of (REDIS_REPLICAS_MIN)`,
      };
}

/** True where a replica may take a master's place without us. */
const isReplaceable = (redis: RedisClient): boolean =>
  redis instanceof Cluster || Boolean(redis.options.sentinels);

const SETTINGS = ['appendonly', 'appendfsync', 'no-appendfsync-on-rewrite', 'maxmemory-policy'];

async function readMasterDurability(redis: Redis): Promise<Durability> {
  await redis.ping();
  const settings = new Map<string, string>();
  try {
    for (const name of SETTINGS) {
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
    return { isSafe: false, description: `redis: ${found}: queued commit batches can be evicted` };
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
  if (settings.get('no-appendfsync-on-rewrite') !== 'no') {
    return {
      isSafe: false,
      description: `redis: ${found}: a crash loses what came while the file was rewritten`,
    };
  }
  return { isSafe: true, description: `redis: ${found}: what is acknowledged is on disk` };
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
   * @throws Error where they may not be; what was written may be there all the same.
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
    logger.warn({ graceMs, ...addressOf(master) }, 'a master of Redis has lost replicas');
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

/** What `WAIT` speaks of. A Cluster's client has one connection in the life of each node object. */
const connectionsOf = (redis: RedisClient): Set<unknown> =>
  new Set<unknown>(redis instanceof Cluster ? redis.nodes('master') : [redis.stream]);

/** Undefined for one that is no master. */
async function countReplicas(redis: Redis): Promise<number | undefined> {
  const [role, , replicas] = (await redis.role()) as [string, number, unknown[]];
  return role === 'master' ? replicas.length : undefined;
}

const addressOf = (redis: Redis) => ({ host: redis.options.host, port: redis.options.port });
