import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { openProducer } from '../../../src/queue/queue.ts';
import { startRedisServer } from '../../../src/testing/redis-server.ts';
import { ADD_MS_MAX, commitBatch, NAME, useBroker } from '../support/broker-world.ts';

const broker = useBroker();
/** BullMQ by itself, beside it: the same Redis, another prefix. */
let own: Queue;

beforeEach(async () => {
  const { connection, prefix } = broker.connection();
  own = new Queue(NAME, { connection, prefix: `own-${prefix}` });
  await own.waitUntilReady();
});
afterEach(() => own.close());

const keyOf = (part: string): string => `${broker.connection().prefix}:${NAME}:${part}`;

/** Of the jobs' places and hashes. */
async function readQueue(toKey: (part: string) => string) {
  const { redis } = broker;
  const waiting = await redis.lrange(toKey('wait'), '0', '-1');
  const jobs = await Promise.all(
    waiting.map(async (id) => {
      const { timestamp, opts = '', ...rest } = await redis.hgetall(toKey(id));
      // `Queue.add`, which has no other way to name a job, keeps the id among the options too.
      const { jobId: _, ...options } = JSON.parse(opts) as Record<string, unknown>;
      return { id, ...rest, options, isStamped: Math.abs(Number(timestamp) - Date.now()) < 60_000 };
    }),
  );
  return { jobs, marker: await redis.zrange(toKey('marker'), '0', '-1', 'WITHSCORES') };
}

const addToOwn = (id: string): Promise<unknown> =>
  own.add('envelope.process', commitBatch(id), { jobId: id, removeOnComplete: true });

test.each([
  ['nobody has looked at yet', []],
  ['is paused', [['hset', 'meta', 'paused', '1']]],
  [
    'has as many jobs in progress as it may',
    [
      ['hset', 'meta', 'concurrency', '1'],
      ['lpush', 'active', 'other'],
    ],
  ],
  [
    'has fewer jobs in progress than it may',
    [
      ['hset', 'meta', 'concurrency', '2'],
      ['lpush', 'active', 'other'],
    ],
  ],
] as const)(
  'an added batch leaves the same data as BullMQ in a queue that %s',
  async (_, preparations) => {
    for (const toKey of [keyOf, (part: string) => own.toKey(part)])
      for (const [command, part, ...rest] of preparations)
        await broker.redis.call(command, toKey(part), ...rest);

    for (const id of ['envelope-a', 'envelope-b', 'envelope-a']) {
      await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
      await addToOwn(id);
    }

    const left = await readQueue(keyOf);
    expect(left.jobs).toHaveLength(2);
    expect(left).toEqual(await readQueue((part) => own.toKey(part)));
  },
);

// From Redis 7.2 on, `WAIT` on a new connection confirms a read-only command at once.
test('a commit batch that is there already is a write too, which replicas can be asked for', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-envelopes-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  // Its own, because the number is of the whole server.
  const server = await startRedisServer({ directory });
  onTestFinished(() => server.kill());
  const producer = await openProducer({ ...broker.options, redisUrl: server.url }, ADD_MS_MAX);
  onTestFinished(() => producer.close());
  const redis = new Redis(server.url);
  onTestFinished(() => redis.disconnect());
  const writeCount = async (): Promise<number> =>
    Number(/rdb_changes_since_last_save:(\d+)/.exec(await redis.info('persistence'))?.[1]);
  const add = () => producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);

  await add();
  const before = await writeCount();
  await add();
  expect(await writeCount()).toBeGreaterThan(before);
  expect(await producer.commitBatchCounts()).toEqual([1]);
});

test('several batches together leave the same data as the batches one by one', async () => {
  const ids = ['envelope-a', 'envelope-b', 'envelope-c'];
  await broker.producer.addCommitBatches(
    ids.map((id) => ({ shard: 0, envelope: commitBatch(id) })),
  );
  for (const id of ids) await addToOwn(id);
  expect(await readQueue(keyOf)).toEqual(await readQueue((part) => own.toKey(part)));
});
