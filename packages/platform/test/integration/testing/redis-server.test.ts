import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRedisDurability } from '@sluice/platform/redis/redis-durability';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';

let directory: string;
let server: RedisServer | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-test-redis-'));
});

afterEach(async () => {
  await server?.kill();
  await rm(directory, { recursive: true, force: true });
});

async function withClient<Result>(
  url: string,
  use: (client: Redis) => Promise<Result>,
): Promise<Result> {
  const client = new Redis(url, { lazyConnect: true });
  client.on('error', () => {});
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}

test('confirmed data is there after kill -9 and a start on the same folder and port', async () => {
  server = await startRedisServer({ directory });
  const { port } = server;
  await withClient(server.url, (client) => client.set('confirmed', 'yes'));
  await server.kill();
  server = await startRedisServer({ directory, port });
  expect(server.port).toBe(port);
  expect(await withClient(server.url, (client) => client.get('confirmed'))).toBe('yes');
});

test('it is set so that an acknowledgement is on disk', async () => {
  server = await startRedisServer({ directory });
  expect(await withClient(server.url, (client) => readRedisDurability(client, 0))).toMatchObject({
    isSafe: true,
  });
});

test.each([
  ['appendonly', 'no', 'everything since the last snapshot'],
  ['appendfsync', 'everysec', 'about the last second'],
  ['no-appendfsync-on-rewrite', 'yes', 'while the file was rewritten'],
  ['maxmemory-policy', 'allkeys-lru', 'can be evicted'],
])('with %s %s the server reports the possible loss', async (name, value, cost) => {
  server = await startRedisServer({ directory });
  const durability = await withClient(server.url, async (client) => {
    await client.config('SET', name, value);
    return readRedisDurability(client, 0);
  });
  expect(durability).toEqual({
    isSafe: false,
    isSaidUnsafe: true,
    description: expect.stringContaining(cost),
  });
});

test('a server that cannot start reports the reason in its own words', async () => {
  server = await startRedisServer({ directory });
  await expect(
    startRedisServer({ directory: join(directory, 'b'), port: server.port }),
  ).rejects.toMatchObject({
    code: 'BROKER_UNAVAILABLE',
    message: expect.stringContaining('Address already in use'),
  });
});
