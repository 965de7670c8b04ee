/**
 * Log of added commit batches, beside the queues. It has the keys of each batch, in the one order in which batches
 * became durable. A batch is added to the log together with its job, and leaves it once it is applied.
 *
 * - Redis: a stream. The script that adds the jobs adds the entries (`queue-commit-batches.ts`), so their order is the
 *   order of the scripts.
 * - Postgres: a table. A trigger on BullMQ's jobs fills it under a lock that ends with the transaction, so the entries
 *   have the order of the commits. Without the lock a reader could pass an entry that is not committed yet.
 *
 * A worker that died between the commit in Postgres and the removal leaves an entry without a job. Readers find its
 * batch applied and remove it; `sweep` removes the others.
 *
 * Before: `queue-commit-batches.ts`. After: `consumers/pending-index.ts`.
 */
import type pg from 'pg';
import type { BatchPlace } from '@sluice/domain/operations/order-place';
import { readBatchKeys, type BatchKeys } from './batch-keys.ts';
import type { RedisClient } from '../redis/redis-client.ts';

/** One batch, as the log has it. */
export interface LoggedBatch extends BatchKeys {
  readonly id: string;
  /** Id of its entry; ids grow in the order of the log. */
  readonly logId: string;
  readonly shard: number;
  /** The flush of which it is a part, if one call of that flush spans its parts; else undefined. */
  readonly flushId: string | undefined;
  /** Place of its flush in the order of acknowledgement. */
  readonly flushPlace: BatchPlace;
}

/** A flush and the place of a part in it, as an entry has them; '' for a batch that is no part of one. */
export const flushText = (flushId: string | undefined, part: number): string =>
  flushId === undefined ? '' : `${flushId}/${part}`;

/**
 * Reads the output of {@link flushText}. The entries of a flush follow each other, so its first one's place is known
 * from each of them.
 */
function readFlush(
  text: string,
  [major, minor]: readonly [number, number],
): Pick<LoggedBatch, 'flushId' | 'flushPlace'> {
  const [flushId, part] = text.split('/');
  if (!flushId) return { flushId: undefined, flushPlace: { major, minor } };
  const before = Number(part ?? 0);
  return { flushId, flushPlace: { major, minor: Math.max(0, minor - before) } };
}

export interface PendingLog {
  /** Entries behind `after`, in order, at most `count`; and the first remaining entry, undefined if the log is empty. */
  read(
    after: string | undefined,
    count: number,
  ): Promise<{ readonly entries: readonly LoggedBatch[]; readonly firstLogId: string | undefined }>;
  /** Forgets applied batches. */
  remove(logIds: readonly string[]): Promise<void>;
}

type StreamEntry = readonly [id: Buffer, fields: readonly Buffer[]];

/** @param key - of the stream. */
export function redisPendingLog(redis: RedisClient, key: string): PendingLog {
  return {
    async read(after, count) {
      const from = after === undefined ? '-' : `(${after}`;
      const reads = redis.pipeline();
      reads.xrangeBuffer(key, from, '+', 'COUNT', count);
      reads.xrange(key, '-', '+', 'COUNT', 1);
      const [entries = [null, []], first = [null, []]] = (await reads.exec()) ?? [];
      if (entries[0]) throw entries[0];
      if (first[0]) throw first[0];
      return {
        entries: (entries[1] as StreamEntry[]).map(batchOf),
        firstLogId: (first[1] as [string, string[]][])[0]?.[0],
      };
    },
    async remove(logIds) {
      await redis.xdel(key, ...logIds);
    },
  };
}

function batchOf([logId, fields]: StreamEntry): LoggedBatch {
  const [id, shard, flush, keys] = fields.filter((_, index) => index % 2 === 1);
  const [major = 0, minor = 0] = String(logId).split('-').map(Number);
  return {
    id: String(id),
    logId: String(logId),
    shard: Number(shard),
    ...readFlush(String(flush ?? ''), [major, minor]),
    ...readBatchKeys(keys ?? Buffer.alloc(0)),
  };
}

/** Without an entry behind the last one, a row has the first entry's id alone. */
interface LogRow {
  readonly first_log_id: string | null;
  readonly log_id: string | null;
  readonly batch_id: string;
  readonly shard: number;
  readonly flush_id: string | null;
  readonly keys: Buffer;
}

/** By the primary key of the table. */
export function postgresPendingLog(pool: pg.Pool): PendingLog {
  return {
    async read(after, count) {
      const { rows } = await pool.query<LogRow>(
        `select first.log_id as first_log_id, log.*
           from (select min(log_id) as log_id from bullmq.sluice_pending_batch) as first
           left join lateral (
             select log_id, batch_id, shard, flush_id, keys from bullmq.sluice_pending_batch
              where log_id > $1 order by log_id limit $2
           ) as log on true`,
        [after?.split('-')[0] ?? '0', count],
      );
      const firstLogId = rows[0]?.first_log_id;
      return {
        entries: rows.flatMap(({ log_id: logId, batch_id: id, shard, flush_id: flush, keys }) =>
          logId === null
            ? []
            : {
                id,
                logId: `${logId}-0`,
                shard,
                ...readFlush(flush ?? '', [0, Number(logId)]),
                ...readBatchKeys(keys),
              },
        ),
        firstLogId: firstLogId == null ? undefined : `${firstLogId}-0`,
      };
    },
    async remove(logIds) {
      await pool.query(
        'delete from bullmq.sluice_pending_batch where log_id = any ($1::bigint[])',
        [logIds.map((logId) => logId.split('-')[0])],
      );
    },
  };
}
