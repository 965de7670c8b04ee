/**
 * A Redis that can lose confirmed data gets no commit batches.
 *
 * On a real server of its own.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ADD_MS_MAX, commitBatch, logger } from '../support/broker-world.ts';

const WAIT = { timeout: 30_000, interval: 20 };

let directory: string;
let server: RedisServer;
let producer: Producer;
let redis: Redis;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-test-gate-'));
  server = await startRedisServer({ directory });
  redis = new Redis(server.url);
  redis.on('error', () => undefined);
});

afterEach(async () => {
  await producer.close();
  redis.disconnect();
  await server.kill();
  // A child of the server that writes the file of commands may outlive it for a moment.
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
});

const open = async (requiresDurability: boolean): Promise<void> => {
  producer = await openProducer(
    {
      databaseUrl: 'postgres://127.0.0.1:1/none',
      redisUrl: server.url,
      prefix: 'gate',
      shardCount: 1,
      logger,
    },
    ADD_MS_MAX,
    { requiresDurability },
  );
};
const add = (id: string) => producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
const queuedCount = async () => (await producer.commitBatchCounts())[0];
const stageOne = () => producer.stage.put([{ atMs: undefined, text: '[]' }]);

test.each([
  ['appendonly', 'no'],
  ['appendfsync', 'everysec'],
  ['appendfsync', 'no'],
  ['no-appendfsync-on-rewrite', 'yes'],
  ['maxmemory-policy', 'allkeys-lru'],
])('with %s %s batches are refused until the setting is right', async (name, value) => {
  await redis.config('SET', name, value);
  await open(true);
  for (const adding of [() => add('one'), stageOne])
    await expect(adding()).rejects.toMatchObject({
      code: 'BROKER_UNDURABLE',
      message: expect.stringMatching(
        `${name}=${value}.*appendonly yes.*appendfsync always.*INTAKE_ALLOW_UNDURABLE_BROKER=true`,
      ),
    });
  expect(await queuedCount()).toBe(0);
  const found = await producer.durability();
  expect(producer.durabilityRefusal(found)).toMatchObject({ code: 'BROKER_UNDURABLE' });
  for (const [needed, right] of [
    ['appendonly', 'yes'],
    ['appendfsync', 'always'],
    ['no-appendfsync-on-rewrite', 'no'],
    ['maxmemory-policy', 'noeviction'],
  ] as const)
    await redis.config('SET', needed, right);
  await add('one');
  expect(await queuedCount()).toBe(1);
  expect(producer.durabilityRefusal(await producer.durability())).toBeUndefined();
});

test('if the loss is accepted, every batch is added', async () => {
  await redis.config('SET', 'appendonly', 'no');
  await open(false);
  await add('one');
  expect(await queuedCount()).toBe(1);
  expect(producer.durabilityRefusal(await producer.durability())).toBeUndefined();
});

test('a server that comes back with other settings is looked at again', async () => {
  await open(true);
  await add('one');
  await server.stop();
  server = await startRedisServer({ directory, port: server.port, appendFsync: 'everysec' });
  await vi.waitFor(
    () => expect(add('two')).rejects.toMatchObject({ code: 'BROKER_UNDURABLE' }),
    WAIT,
  );
  expect(await queuedCount()).toBe(1);
});

test('a server that hides its settings still gets batches', async () => {
  await redis.config('SET', 'appendfsync', 'everysec');
  await redis.call('ACL', 'SETUSER', 'default', '-config');
  await open(true);
  await add('one');
  expect(await queuedCount()).toBe(1);
  expect(await producer.durability()).toMatchObject({ isSafe: false, isSaidUnsafe: false });
});
