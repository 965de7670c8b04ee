/**
 * Commit batches as jobs of their shards' queues. The batches of one flush get there together.
 *
 * | broker | atomic addition |
 * |---|---|
 * | Postgres | by one SQL transaction |
 * | Redis | by one script |
 * | Redis Cluster | of each shard, by one script a shard, since their nodes have no common transaction |
 *
 * Beside `queue.ts`, which opens the queues.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { Job } from 'bullmq';
import { batchKeysOf, writeBatchKeys } from './batch-keys.ts';
import { flushText } from './pending-log.ts';
import {
  ANYBODY,
  clearKeyOf,
  expectClear,
  HELD_BACK,
  NOT_NEW,
  type AddOutcome,
  type FlushOwner,
} from './hold-back.ts';
import { commitBatchText, type WrittenCommitBatch } from './commit-batch-writer.ts';
import type { AddingQueue } from './queue-adding.ts';
import type { RedisClient } from '../redis/redis-client.ts';

export interface ShardCommitBatch {
  readonly shard: number;
  readonly envelope: CommitBatch | WrittenCommitBatch;
}

/**
 * Adds commit batches, in the order given and, but for a Cluster, atomically. An id that is there already is not added.
 *
 * @param queues - by shard.
 * @param owner - a new flush is not added if earlier calls may be on the disk of an intake (`staged-flushes.ts`).
 */
export type AddCommitBatches = (
  queues: readonly AddingQueue[],
  commitBatches: readonly ShardCommitBatch[],
  owner: FlushOwner,
) => Promise<AddOutcome>;

const JOB_NAME = 'envelope.process';
const JOB_OPTIONS = { removeOnComplete: true };

/**
 * Does the work of BullMQ's script `addStandardJob`, for jobs of any number of queues at once. Redis takes 3.3 µs a call of
 * intake with four shards, and 5.1 by BullMQ's, one script a job; with sixteen shards 4.6 and 7.9
 * (`npm run bench -- intake --compare 879c9e4e`).
 *
 * It leaves out parts that a commit batch does not have (a delay, a priority, a parent, deduplication), and parts without a
 * reader: the stream of the queue's events, and the counter of ids, since a commit batch brings its own.
 *
 * A job that is there already is written to as well, with its own values: `WAIT` (`redis-durability.ts`) asks for the last
 * write of its connection, and from Redis 7.2 on it confirms at once if a new connection has made no write.
 *
 * KEYS, five a job: its hash, then its queue's waiting jobs, jobs in progress, settings, marker. Last the log of pending
 * batches (`pending-log.ts`) and the time until which new flushes may be added. ARGV: name, options and time of all, whose
 * new flush they are, then id, data, shard, flush and keys of each.
 */
const addScript = (isLogged: boolean): string => `
  ${isLogged ? expectClear('KEYS[#KEYS]', 'ARGV[4]') : ''}
  local name, options, timestamp = ARGV[1], ARGV[2], ARGV[3]
  local count = (#ARGV - 4) / 5
  for index = 0, count - 1 do
    local job, wait, active, settings, marker = unpack(KEYS, index * 5 + 1, index * 5 + 5)
    local id, data, shard, flush, keys = unpack(ARGV, index * 5 + 5, index * 5 + 9)
    if redis.call('EXISTS', job) == 0 then
      redis.call('HSET', job, 'name', name, 'data', data, 'opts', options,
        'timestamp', timestamp, 'delay', 0, 'priority', 0)
      redis.call('LPUSH', wait, id)
      ${isLogged ? `redis.call('XADD', KEYS[#KEYS - 1], '*', 'b', id, 's', shard, 'f', flush, 'k', keys)` : ''}
      local isPaused, concurrency = unpack(redis.call('HMGET', settings, 'paused', 'concurrency'))
      local isFull = concurrency and redis.call('LLEN', active) >= tonumber(concurrency)
      if not isPaused and not isFull then redis.call('ZADD', marker, 0, '0') end
    else
      redis.call('HSET', job, 'name', name)
    end
  end`;
/** Parts of one flush must follow each other. ARGV: whose new flush they are, then id, shard, flush and keys of each. */
const LOG_SCRIPT = `
  ${expectClear('KEYS[2]', 'ARGV[1]')}
  for index = 2, #ARGV, 4 do
    local id, shard, flush, keys = unpack(ARGV, index, index + 3)
    redis.call('XADD', KEYS[1], '*', 'b', id, 's', shard, 'f', flush, 'k', keys)
  end`;
/** Options as BullMQ keeps them. */
const JOB_OPTIONS_TEXT = JSON.stringify({ ...JOB_OPTIONS, attempts: 0 });

/** Answer of a script that has added no batch; nil if it has added all. */
type HeldBack = 'held' | 'ending' | null;

/** On one Redis. By EVALSHA: the script goes over once, not with each flush. */
export function addingByScript(
  redis: RedisClient,
  logKey: string,
  prefix: string,
): AddCommitBatches {
  redis.defineCommand('addCommitBatches', { lua: addScript(true) });
  const scripted = redis as unknown as AddingScript;
  const clearKey = clearKeyOf(prefix);
  return async (queues, commitBatches, owner) => {
    const { keys, values } = jobsOf(queues, commitBatches, owner);
    const heldBack = await scripted.addCommitBatches(
      keys.length + 2,
      ...keys,
      logKey,
      clearKey,
      ...values,
    );
    return heldBack ?? 'added';
  };
}

/**
 * On a Cluster, atomic for each shard; of several shards some may be added and others not. Their nodes have no common order,
 * so the one node that has the log logs all first. A worker that finds a batch logged and not queued waits for it
 * (`worker/src/events/process-commit-batch.ts`).
 */
export function addingByShard(
  redis: RedisClient,
  logKey: string,
  prefix: string,
): AddCommitBatches {
  redis.defineCommand('addCommitBatches', { lua: addScript(false) });
  redis.defineCommand('logBatches', { lua: LOG_SCRIPT, numberOfKeys: 2 });
  const scripted = redis as unknown as AddingScript & {
    logBatches(...values: (string | number | Buffer)[]): Promise<HeldBack>;
  };
  const clearKey = clearKeyOf(prefix);
  return async (queues, commitBatches, owner) => {
    const partOf = countParts();
    const entries = commitBatches.flatMap(({ shard, envelope: commitBatch }) => [
      commitBatch.id,
      shard,
      flushText(commitBatch.flushId, partOf(commitBatch)),
      writtenKeysOf(commitBatch),
    ]);
    const heldBack = await scripted.logBatches(logKey, clearKey, owner, ...entries);
    if (heldBack) return heldBack;
    const groups = Map.groupBy(commitBatches, ({ shard }) => shard);
    await Promise.all(
      [...groups.values()].map((group) => {
        const { keys, values } = jobsOf(queues, group, owner);
        return scripted.addCommitBatches(keys.length, ...keys, ...values);
      }),
    );
    return 'added';
  };
}

/** Number of a batch within its flush, from 0; parts are added together and in order. */
function countParts(): (commitBatch: Pick<CommitBatch, 'flushId'>) => number {
  const counts = new Map<string, number>();
  return ({ flushId }) => {
    if (flushId === undefined) return 0;
    const part = counts.get(flushId) ?? 0;
    counts.set(flushId, part + 1);
    return part;
  };
}

interface AddingScript {
  addCommitBatches(
    keyCount: number,
    ...keysAndArguments: (string | number | Buffer)[]
  ): Promise<HeldBack>;
}

/** Keys and arguments of the script. */
function jobsOf(
  queues: readonly AddingQueue[],
  commitBatches: readonly ShardCommitBatch[],
  owner: FlushOwner,
): { keys: string[]; values: (string | number | Buffer)[] } {
  const keys: string[] = [];
  const values: (string | number | Buffer)[] = [JOB_NAME, JOB_OPTIONS_TEXT, Date.now(), owner];
  const partOf = countParts();
  for (const { shard, envelope: commitBatch } of commitBatches) {
    const queue = queues[shard] as AddingQueue;
    for (const part of [commitBatch.id, 'wait', 'active', 'meta', 'marker'])
      keys.push(queue.toKey(part));
    values.push(
      commitBatch.id,
      'bytes' in commitBatch ? commitBatch.bytes : commitBatchText(commitBatch),
      shard,
      flushText(commitBatch.flushId, partOf(commitBatch)),
      writtenKeysOf(commitBatch),
    );
  }
  return { keys, values };
}

/** On Postgres. */
export const addInTransaction: AddCommitBatches = async (queues, commitBatches, owner) => {
  const [first] = commitBatches;
  if (!first) return 'added';
  // `addFlow` is BullMQ's one way to add to several queues in one transaction; it reports a refusal per entry instead
  // of throwing it.
  const partOf = countParts();
  // One row of the statement asks for all.
  const entries = commitBatches.map((each, index) =>
    entryOf(queues, each, partOf(each.envelope), index === 0 ? owner : NOT_NEW),
  );
  for (const [error] of await (queues[first.shard] as AddingQueue).getBackend().addFlow(entries)) {
    if (isHeldBack(error)) return error.message === 'ending' ? 'ending' : 'held';
    if (error) throw error;
  }
  return 'added';
};

const isHeldBack = (error: unknown): error is Error =>
  error instanceof Error && (error as { code?: unknown }).code === HELD_BACK;

/** Maximum size of a job in Redis beside its commit batch; 0.8 KB by `npm run bench -- memory`. */
const JOB_SIZE_BYTES = 1_024;

/** Their approximate size in the broker. Infinity if one is not written yet, because only writing shows its size. */
export const sizeBytesOf = (commitBatches: readonly ShardCommitBatch[]): number =>
  commitBatches.reduce(
    (sum, { envelope: commitBatch }) =>
      sum + JOB_SIZE_BYTES + ('bytes' in commitBatch ? commitBatch.bytes.length : Infinity),
    0,
  );

/** Of one that was read from a disk they are not at hand. */
const writtenKeysOf = (commitBatch: CommitBatch | WrittenCommitBatch): Buffer =>
  writeBatchKeys('keys' in commitBatch ? commitBatch : batchKeysOf(commitBatch));

type FlowEntry = ReturnType<Job['toFlowEntry']>;

/** By queue: a job as BullMQ makes it. */
const templates = new WeakMap<AddingQueue, FlowEntry>();

/**
 * Made by BullMQ once; then only the differing fields are set. BullMQ would serialise the commit batch again, and takes 10
 * µs for the rest.
 */
function entryOf(
  queues: readonly AddingQueue[],
  { shard, envelope: commitBatch }: ShardCommitBatch,
  part: number,
  owner: FlushOwner,
): FlowEntry {
  const queue = queues[shard] as AddingQueue;
  let template = templates.get(queue);
  if (template === undefined) {
    template = new Job(queue, JOB_NAME, undefined, JOB_OPTIONS, commitBatch.id).toFlowEntry({});
    templates.set(queue, template);
  }
  const keys = writtenKeysOf(commitBatch).toString('base64');
  const data = `{"keys":"${keys}","part":${part},${liveText(owner)}${commitBatchText(commitBatch).slice(1)}`;
  const jobData = { ...template.jobData, id: commitBatch.id, timestamp: Date.now(), data };
  return { ...template, jobId: commitBatch.id, jobData };
}

/** As the trigger reads it (`expectClearSql`). */
const liveText = (owner: FlushOwner): string => {
  if (owner === NOT_NEW) return '';
  return `"live":${owner === ANYBODY ? 'true' : JSON.stringify(owner)},`;
};
