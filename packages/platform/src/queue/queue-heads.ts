/**
 * Reads heads of the queues, and pending commit batches, without BullMQ. BullMQ's own reads do not show the holder of a
 * job's lock. Only this file, `queue-waiting.ts` and `queue-commit-batches.ts` know BullMQ's layout of a queue in Redis
 * and in Postgres.
 *
 * It only reads. After: `queue-watch.ts`, `queue-shard-backend.ts`, `intake/src/commit/admission.ts`.
 */
import type { PgPool } from 'bullmq';
import type pg from 'pg';
import type { RedisClient } from '../redis/redis-client.ts';

export interface ActiveJob {
  readonly id: string;
  /** `<worker id>:<number>` of its holder; undefined once the lock has run out. */
  readonly token: string | undefined;
}

export interface QueueHead {
  readonly active: readonly ActiveJob[];
  /** The next job to be taken; undefined without a waiting job. */
  readonly nextId: string | undefined;
  /**
   * The broker knows how many jobs of it may be active at a time. Always true on Postgres, which does not lose this
   * number.
   */
  readonly isLimited: boolean;
}

/** One head for each name, in the order given. */
export type ReadHeads = (names: readonly string[]) => Promise<QueueHead[]>;

/**
 * Uses the connection of the workers' commands. Redis answers a connection in order (on a Cluster each node has one,
 * and a queue is on one node), so every answer from before the heads has been read when they have.
 */
export function redisHeads(
  redis: RedisClient,
  keyOf: (name: string, part: string) => string,
): ReadHeads {
  const readHead = async (name: string): Promise<QueueHead> => {
    const [ids, nextId, limit] = await Promise.all([
      redis.lrange(keyOf(name, 'active'), 0, -1),
      redis.lindex(keyOf(name, 'wait'), -1),
      redis.hget(keyOf(name, 'meta'), 'concurrency'),
    ]);
    // One command: a thousand jobs of lanes may be active.
    const tokens =
      ids.length === 0 ? [] : await redis.mget(ids.map((id) => keyOf(name, `${id}:lock`)));
    return {
      active: ids.map((id, index) => ({ id, token: tokens[index] ?? undefined })),
      nextId: nextId ?? undefined,
      isLimited: limit !== null,
    };
  };
  return async (names) => {
    // Otherwise each look during an outage would wait in memory for its end.
    if (redis.status !== 'ready') throw new Error(`the connection to Redis is ${redis.status}`);
    return Promise.all(names.map(readHead));
  };
}

/** A commit batch that was added. */
export interface QueuedBatch {
  readonly shard: number;
  readonly id: string;
}

/** The ids of the batches that are not applied. */
export type ListQueued = (batches: readonly QueuedBatch[]) => Promise<ReadonlySet<string>>;

/** @param keyOf - of a job's hash, which is deleted when the job has ended. */
export function redisQueued(
  redis: RedisClient,
  keyOf: (shard: number, id: string) => string,
): ListQueued {
  return async (batches) => {
    // As `redisHeads`.
    if (redis.status !== 'ready') throw new Error(`the connection to Redis is ${redis.status}`);
    const counts = await Promise.all(
      batches.map(({ shard, id }) => redis.exists(keyOf(shard, id))),
    );
    return new Set(batches.filter((_, index) => counts[index] !== 0).map(({ id }) => id));
  };
}

/** By the primary key. */
export function postgresQueued(pool: pg.Pool): ListQueued {
  return async (batches) => {
    const { rows } = await pool.query<{ id: string }>(
      `select job.id from unnest($1::text[], $2::text[]) as wanted (queue, id) join job using (queue, id)
        where state in ('waiting', 'active')`,
      [batches.map(({ shard }) => `events-${shard}`), batches.map(({ id }) => id)],
    );
    return new Set(rows.map(({ id }) => id));
  };
}

interface HeadRow {
  readonly active: { id: string; token: string | null }[];
  readonly next_id: string | null;
}

/** One statement, by BullMQ's own indexes of active and of waiting jobs. */
export function postgresHeads(pool: pg.Pool): ReadHeads {
  return async (names) => {
    const { rows } = await pool.query<HeadRow>(
      `select
         coalesce((
           select json_agg(json_build_object('id', id, 'token', lock_token))
           from job where job.queue = wanted.name and state = 'active'
         ), '[]') as active,
         (
           select id from job where job.queue = wanted.name and state = 'waiting'
           order by priority, seq limit 1
         ) as next_id
       from unnest($1::text[]) with ordinality as wanted (name, place)
       order by place`,
      [names],
    );
    return rows.map(({ active, next_id }) => ({
      active: active.map(({ id, token }) => ({ id, token: token ?? undefined })),
      nextId: next_id ?? undefined,
      isLimited: true,
    }));
  };
}

/** True if a commit batch of the shard waits and no other one runs. By BullMQ's own indexes, two look-ups. */
export async function isShardFree(pool: PgPool, name: string): Promise<boolean> {
  const { rows } = await pool.query<{ is_free: boolean }>(
    `select exists (select from job where queue = $1 and state = 'waiting')
        and not exists (select from job where queue = $1 and state = 'active') as is_free`,
    [name],
  );
  return rows[0]?.is_free === true;
}
