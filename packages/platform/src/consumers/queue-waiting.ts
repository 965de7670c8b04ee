/**
 * Waiting commit batches of a shard, read in order. They are removed once they are applied. Without BullMQ, which reads each
 * of them twice and removes them one by one, by a script that looks for the job in nine structures and walks the queue from
 * its far end. With small commit batches that took more time of the worker and of Redis than applying them.
 *
 * Only waiting jobs are removed: a job that another worker has taken meanwhile stays with that worker. Commit batches are
 * jobs without parents, children, logs or deduplication, so a job is only its place in the list of waiting jobs and its hash
 * (on Postgres its row).
 *
 * After: `queue-behind.ts`. Beside `queue-heads.ts`, which looks at heads alone.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type pg from 'pg';
import type { RedisClient } from '../redis/redis-client.ts';

export interface WaitingCommitBatches {
  /** The next `count` that wait, behind the first `skipped`, in the order in which they will be taken. */
  list(count: number, skipped?: number): Promise<readonly CommitBatch[]>;
  /** Removes the ones that still wait. */
  remove(envelopeIds: readonly string[]): Promise<unknown>;
}

/** Queued batches by shard and id, in the order given, without the ones that are no longer queued. */
export type ReadBatches = (
  batches: readonly { readonly shard: number; readonly id: string }[],
) => Promise<readonly (CommitBatch | undefined)[]>;

/**
 * The hash is deleted only if the place was there: a worker that has the job needs it to end the job. It searches from the
 * tail, the place of the next ones.
 *
 * KEYS: list of waiting jobs, then the hash of each job. ARGV: the id of each job.
 */
const REMOVE_SCRIPT = `
  for place, id in ipairs(ARGV) do
    if redis.call('LREM', KEYS[1], -1, id) == 1 then redis.call('DEL', KEYS[place + 1]) end
  end`;

/** @param keyOf - of a part of the queue: `wait`, or a job's id. All are on one node of a Cluster. */
export function redisWaiting(
  redis: RedisClient,
  keyOf: (part: string) => string,
): WaitingCommitBatches {
  return {
    async list(count, skipped = 0) {
      const ids = await redis.lrange(keyOf('wait'), -count - skipped, -1 - skipped);
      if (ids.length === 0) return [];
      const reads = redis.pipeline();
      for (const id of ids.toReversed()) reads.hget(keyOf(id), 'data');
      const found = (await reads.exec()) ?? [];
      return found.flatMap(([error, data]) => {
        if (error) throw error;
        // Taken out since.
        return typeof data === 'string' ? [JSON.parse(data) as CommitBatch] : [];
      });
    },
    async remove(envelopeIds) {
      const keys = [keyOf('wait'), ...envelopeIds.map(keyOf)];
      await redis.eval(REMOVE_SCRIPT, keys.length, ...keys, ...envelopeIds);
    },
  };
}

/** By the index by which BullMQ takes them, and by the primary key. BullMQ's own reading gives the last ones of a queue that has more. */
export function postgresWaiting(pool: pg.Pool, name: string): WaitingCommitBatches {
  return {
    async list(count, skipped = 0) {
      const { rows } = await pool.query<{ data: CommitBatch }>(
        `select data from job where queue = $1 and state = 'waiting' order by priority, seq limit $2 offset $3`,
        [name, count, skipped],
      );
      return rows.map(({ data }) => data);
    },
    async remove(envelopeIds) {
      await pool.query(`delete from job where queue = $1 and id = any ($2) and state = 'waiting'`, [
        name,
        envelopeIds,
      ]);
    },
  };
}

/** @param keyOf - of a job's hash. */
export function redisBatches(
  redis: RedisClient,
  keyOf: (shard: number, id: string) => string,
): ReadBatches {
  return async (batches) => {
    const found = await Promise.all(
      batches.map(({ shard, id }) => redis.hget(keyOf(shard, id), 'data')),
    );
    return found.map((data) => (data == null ? undefined : (JSON.parse(data) as CommitBatch)));
  };
}

/** By the primary key. */
export function postgresBatches(pool: pg.Pool): ReadBatches {
  return async (batches) => {
    const { rows } = await pool.query<{ id: string; data: CommitBatch }>(
      `select job.id, data from unnest($1::text[], $2::text[]) as wanted (queue, id) join job using (queue, id)
        where state in ('waiting', 'active', 'failed')`,
      [batches.map(({ shard }) => `events-${shard}`), batches.map(({ id }) => id)],
    );
    const found = new Map(rows.map(({ id, data }) => [id, data]));
    return batches.map(({ id }) => found.get(id));
  };
}
