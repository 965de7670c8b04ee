/** Worth of an acknowledgement of Redis: real servers, a master and its replica. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readRedisDurability } from '../../../src/redis/redis-durability.ts';
import { ReplicaConfirmation } from '../../../src/redis/replica-confirmation.ts';
import { startRedisServer, type RedisServer } from '../../../src/testing/redis-server.ts';
import { logger } from '../support/broker-world.ts';

/** On a busy machine. */
const WAIT = { timeout: 30_000, interval: 20 };

let master: RedisServer;
let replica: RedisServer;
let redis: Redis;
let onReplica: Redis;

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-durability-'));
  master = await startRedisServer({ directory: join(directory, 'master') });
  replica = await startRedisServer({
    directory: join(directory, 'replica'),
    extraArguments: ['--replicaof', '127.0.0.1', String(master.port)],
  });
  return async () => {
    await Promise.all([master.kill(), replica.kill()]);
    await rm(directory, { recursive: true, force: true });
  };
});

beforeEach(async () => {
  redis = new Redis(master.url);
  onReplica = new Redis(replica.url);
  await vi.waitUntil(
    async () => (await onReplica.info('replication')).includes('master_link_status:up'),
    WAIT,
  );
  return () => {
    redis.disconnect();
    onReplica.disconnect();
  };
});

function confirmation(
  overrides: { replicasMin?: number; timeoutMs?: number; graceMs?: number } = {},
) {
  const replicas = new ReplicaConfirmation({
    redis,
    replicasMin: 1,
    graceMs: 60_000,
    timeoutMs: 20_000,
    monotonicNow: () => performance.now(),
    logger,
    ...overrides,
  });
  return replicas;
}

describe('a write is confirmed', () => {
  test('once the replica has it, with its own result', async () => {
    const result = await confirmation().confirm(() => redis.set('written', 'yes'));
    expect(result).toBe('OK');
    expect(await onReplica.get('written')).toBe('yes');
  });

  test('not by fewer replicas than are asked for, however long it lacks them', async () => {
    const replicas = confirmation({ replicasMin: 2, timeoutMs: 4_000, graceMs: 0 });
    for (const value of ['once', 'twice'])
      await expect(replicas.confirm(() => redis.set('written', value))).rejects.toThrow(
        '1 of 2 replicas confirmed within 4000 ms',
      );
  });

  test('not if the write itself failed', async () => {
    await expect(
      confirmation().confirm(() => Promise.reject(new Error('refused'))),
    ).rejects.toThrow('refused');
  });

  test('not over a connection that was opened anew meanwhile: it may lead to a master that never had the write', async () => {
    await redis.ping();
    const reconnected = confirmation().confirm(async () => {
      await redis.set('written', 'before');
      redis.disconnect(true);
      // A command waits for the next connection.
      await redis.ping();
    });
    await expect(reconnected).rejects.toThrow('masters of Redis changed');
    expect(await confirmation().confirm(() => redis.set('written', 'after'))).toBe('OK');
  });
});

describe('the durability of an acknowledgement', () => {
  const SAFE = {
    appendonly: 'yes',
    appendfsync: 'always',
    'no-appendfsync-on-rewrite': 'no',
    'maxmemory-policy': 'noeviction',
  };
  const setAll = async (settings: Partial<typeof SAFE>): Promise<void> => {
    for (const [name, value] of Object.entries({ ...SAFE, ...settings }))
      await redis.config('SET', name, value);
  };

  test('is reported as safe if every acknowledged write is on disk', async () => {
    await setAll({});
    expect(await readRedisDurability(redis, 0)).toEqual({
      isSafe: true,
      isSaidUnsafe: false,
      description:
        'redis: maxmemory-policy=noeviction appendonly=yes appendfsync=always no-appendfsync-on-rewrite=no: acknowledged calls are on disk',
    });
  });

  test('is an error of a server that goes away, not one of hidden settings', async () => {
    const own = new Redis(master.url);
    const ping = own.ping.bind(own);
    vi.spyOn(own, 'ping').mockImplementation(async () => {
      const answer = await ping();
      own.disconnect();
      return answer;
    });
    await expect(readRedisDurability(own, 0)).rejects.toThrow('Connection is closed');
  });

  test.each<[Partial<typeof SAFE>, string]>([
    [{ appendonly: 'no' }, 'loses everything since the last snapshot'],
    [{ appendfsync: 'everysec' }, 'loses about the last second'],
    [{ appendfsync: 'no' }, 'loses about the last second'],
    [{ 'no-appendfsync-on-rewrite': 'yes' }, 'while the file was rewritten'],
    [{ 'maxmemory-policy': 'allkeys-lru' }, 'can be evicted'],
  ])('is reported as unsafe with %j', async (settings, reason) => {
    await setAll(settings);
    expect(await readRedisDurability(redis, 0)).toEqual({
      isSafe: false,
      isSaidUnsafe: true,
      description: expect.stringContaining(reason),
    });
    await setAll({});
  });

  /** As a user who may not give these commands. */
  const durabilityWithout = async (...commands: string[]) => {
    const forbidden = commands.map((command) => `-${command}`);
    await redis.call(
      'ACL',
      'SETUSER',
      'reader',
      'reset',
      'on',
      '>secret',
      '~*',
      '+@all',
      ...forbidden,
    );
    const reader = new Redis(master.url.replace('//', '//reader:secret@'));
    try {
      return await readRedisDurability(reader, 0);
    } finally {
      reader.disconnect();
    }
  };
  const HIDDEN = { isSafe: false, isSaidUnsafe: false };

  test('is unknown if the settings are hidden', async () => {
    await setAll({});
    expect(await durabilityWithout('config')).toEqual({
      ...HIDDEN,
      description:
        'redis: maxmemory-policy=noeviction appendonly=yes: other settings cannot be read; the loss in a crash is unknown',
    });
    await setAll({ appendfsync: 'everysec' });
    expect(await durabilityWithout('config', 'info')).toEqual({
      ...HIDDEN,
      description: 'redis: settings cannot be read; the loss in a crash is unknown',
    });
    await setAll({});
  });

  test.each<[Partial<typeof SAFE>, string]>([
    [{ appendonly: 'no' }, 'loses everything since the last snapshot'],
    [{ 'maxmemory-policy': 'allkeys-lru' }, 'can be evicted'],
  ])(
    'is reported as unsafe with %j if INFO shows it and CONFIG is forbidden',
    async (settings, reason) => {
      await setAll(settings);
      expect(await durabilityWithout('config')).toEqual({
        isSafe: false,
        isSaidUnsafe: true,
        description: expect.stringContaining(reason),
      });
      await setAll({});
    },
  );
});
