import { Queue } from 'bullmq';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { envelope, NAME, useBroker } from './broker-world.ts';

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
  own.add('envelope.process', envelope(id), { jobId: id, removeOnComplete: true });

test.each([
  ['nobody has looked at yet', []],
  ['is paused', [['hset', 'meta', 'paused', '1']]],
  [
    'has as many jobs in hand as it may',
    [
      ['hset', 'meta', 'concurrency', '1'],
      ['lpush', 'active', 'other'],
    ],
  ],
  [
    'has fewer jobs in hand than it may',
    [
      ['hset', 'meta', 'concurrency', '2'],
      ['lpush', 'active', 'other'],
    ],
  ],
] as const)('leaves in a queue that %s what BullMQ leaves', async (_, preparations) => {
  for (const toKey of [keyOf, (part: string) => own.toKey(part)])
    for (const [command, part, ...rest] of preparations)
      await broker.redis.call(command, toKey(part), ...rest);

  for (const id of ['envelope-a', 'envelope-b', 'envelope-a']) {
    await broker.producer.addEnvelopes([{ shard: 0, envelope: envelope(id) }]);
    await addToOwn(id);
  }

  const left = await readQueue(keyOf);
  expect(left.jobs).toHaveLength(2);
  expect(left).toEqual(await readQueue((part) => own.toKey(part)));
});

test('several together leave what they leave one by one', async () => {
  const ids = ['envelope-a', 'envelope-b', 'envelope-c'];
  await broker.producer.addEnvelopes(ids.map((id) => ({ shard: 0, envelope: envelope(id) })));
  for (const id of ids) await addToOwn(id);
  expect(await readQueue(keyOf)).toEqual(await readQueue((part) => own.toKey(part)));
});
