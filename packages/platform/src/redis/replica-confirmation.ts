/**
 * A flush counts as confirmed once enough replicas have it.
 *
 * Replication is asynchronous: a master confirms, dies, and its replica may not have the write. An unconfirmed batch goes
 * to the disk buffer and is added again with the same ids, which adds each batch once. `WAIT` counts only writes of its
 * own connection, so the connections must be the same ones before and after.
 *
 * Enough is `replicasMin` on a Cluster. Sentinels need all listed replicas: a failover makes one of them master, and gives
 * it the other ones up to seconds later. Meanwhile an old master that stood still confirms writes with its last replica,
 * and both forget them.
 */
import { Cluster, type Redis } from 'ioredis';
import type { Logger } from '../process/logger.ts';
import { repeat, type Repetition } from '../process/repeat.ts';
import type { RedisClient } from './redis-client.ts';
import { mastersOf } from './redis.ts';
import { SentinelViews } from './sentinels.ts';

export interface ReplicaConfirmationOptions {
  readonly redis: RedisClient;
  /** At least 1. With Sentinels it holds after the grace only. */
  readonly replicasMin: number;
  /**
   * Longer than a failover takes. A master that lacks replicas for so long goes on without them. By then an absent replica
   * of a Cluster has become master, or is cut off from the majority and takes no writes, or cannot be elected. Sentinels
   * have no such rule: a majority of them must see this master up by then, and `replicasMin` replicas must be there.
   */
  readonly graceMs: number;
  /** How long the replicas may take. */
  readonly timeoutMs: number;
  /** Milliseconds, never set: a clock that jumps must not end the grace. */
  readonly monotonicNow: () => number;
  readonly logger: Logger;
}

/** A master with fewer replicas than needed. */
interface Shortage {
  readonly sinceMs: number;
  /** The client of Sentinels is the same for the next master, whose absences begin anew. */
  readonly connection: unknown;
  /** Replicas that suffice once the grace is over. Undefined: those needed before it. */
  readonly enoughCount: number | undefined;
}

const LOOK_INTERVAL_MS = 500;

export class ReplicaConfirmation {
  readonly #options: ReplicaConfirmationOptions;
  readonly #sentinels: SentinelViews | undefined;
  /** By master. Looked at all the time while there are any, so that `sinceMs` means without a break. */
  readonly #shortages = new Map<Redis, Shortage>();
  #looks: Repetition | undefined;

  constructor(options: ReplicaConfirmationOptions) {
    const { redis, monotonicNow } = options;
    this.#options = options;
    this.#sentinels = isWatched(redis) ? new SentinelViews(redis, monotonicNow) : undefined;
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
    const { timeoutMs } = this.#options;
    const wanted = await this.#wantedOf(master);
    const count = Number(await master.call('WAIT', wanted, timeoutMs));
    if (count >= wanted) return;
    await this.#noticeShortage(master);
    throw new Error(`${count} of ${wanted} replicas confirmed within ${timeoutMs} ms`);
  }

  /** Fewer than needed only of a master that has been without them for long enough. */
  async #wantedOf(master: Redis): Promise<number> {
    const needed = await this.#needed();
    if (!this.#isGraceOver(master)) return needed;
    // One that came back since the last look is waited for again.
    await this.#look(master);
    const { enoughCount } = this.#isGraceOver(master) ? (this.#shortages.get(master) ?? {}) : {};
    return enoughCount ?? needed;
  }

  #isGraceOver(master: Redis): boolean {
    const { graceMs, monotonicNow } = this.#options;
    const sinceMs = this.#shortages.get(master)?.sinceMs ?? Infinity;
    return monotonicNow() - sinceMs >= graceMs;
  }

  async #needed(): Promise<number> {
    const { replicasMin } = this.#options;
    if (!this.#sentinels) return replicasMin;
    return Math.max(replicasMin, (await this.#sentinels.latest()).replicaCount);
  }

  async #noticeShortage(master: Redis): Promise<void> {
    const { redis, graceMs, logger } = this.#options;
    const mayGoOn = redis instanceof Cluster || this.#sentinels !== undefined;
    if (!mayGoOn || this.#shortages.has(master)) return;
    await this.#look(master);
    if (!this.#shortages.has(master)) return;
    logger.warn(
      { graceMs, ...addressOf(master) },
      'a master of Redis has fewer replicas than needed, and calls wait in the local disk buffer for graceMs; restore the replicas. With SENTINEL RESET the Sentinels forget a replica that is gone for good',
    );
    this.#looks ??= repeat('count replicas', LOOK_INTERVAL_MS, logger, () =>
      Promise.all([...this.#shortages.keys()].map((each) => this.#look(each))),
    );
  }

  async #look(master: Redis): Promise<void> {
    const { replicasMin, monotonicNow } = this.#options;
    const [attachedCount, needed, isAgreed] = await Promise.all([
      countReplicas(master).catch(() => undefined),
      this.#needed(),
      this.#isAgreed(master).catch(() => false),
    ]);
    // For one that does not answer, or is no master any more, the time begins anew.
    if (attachedCount === undefined || attachedCount >= needed)
      return void this.#shortages.delete(master);
    const enoughCount = this.#sentinels ? Math.max(replicasMin, attachedCount) : attachedCount;
    const connection = master.stream;
    const known = this.#shortages.get(master);
    this.#shortages.set(master, {
      sinceMs: known?.connection === connection ? known.sinceMs : monotonicNow(),
      connection,
      enoughCount: isAgreed ? enoughCount : undefined,
    });
  }

  /** Whether a majority of the Sentinels sees this master up. */
  async #isAgreed(master: Redis): Promise<boolean> {
    if (!this.#sentinels) return true;
    const [{ masterRunId }, runId] = await Promise.all([this.#sentinels.recent(), runIdOf(master)]);
    return masterRunId === runId;
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

const isWatched = (redis: RedisClient): redis is Redis =>
  !(redis instanceof Cluster) && Boolean(redis.options.sentinels);

async function runIdOf(redis: Redis): Promise<string | undefined> {
  return /^run_id:(\w+)/m.exec(await redis.info('server'))?.[1];
}

const addressOf = (redis: Redis) => ({ host: redis.options.host, port: redis.options.port });
