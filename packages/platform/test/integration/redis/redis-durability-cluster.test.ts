/** Worth of an acknowledgement of a Redis Cluster: three real masters with a replica each. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readRedisDurability } from '../../../src/redis/redis-durability.ts';
import { ReplicaConfirmation } from '../../../src/redis/replica-confirmation.ts';
import { connectWorker, mastersOf } from '../../../src/redis/redis.ts';
import type { RedisClient } from '../../../src/redis/redis-client.ts';
import {
  startRedisCluster,
  type RedisFleet,
  type RedisNode,
} from '../../../src/testing/redis-fleet.ts';
import { logger } from '../support/broker-world.ts';

/** On a busy machine. */
const WAIT = { timeout: 60_000, interval: 20 };
/** Six servers start and hear of each other. */
const START_MS_MAX = 180_000;
/** No master is replaced because it stands still on a busy machine. */
const GONE_AFTER_MS = 30_000;
const GRACE_MS = 10_000;

let fleet: RedisFleet;
let redis: RedisClient;

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-durability-'));
  fleet = await startRedisCluster(directory, GONE_AFTER_MS);
  return async () => {
    await fleet.close();
    await rm(directory, { recursive: true, force: true });
  };
}, START_MS_MAX);
beforeEach(async () => {
  redis = connectWorker(fleet.url);
  await redis.ping();
});
afterEach(() => {
  vi.restoreAllMocks();
  redis.disconnect();
});

/** A key whose slot the master has; the others refuse it. */
async function findKeyOf(master: RedisNode): Promise<string> {
  for (let n = 0; n < 1_000; n++) {
    const key = `written-${n}`;
    const answer = await master.command('SET', key, '').catch(() => undefined);
    if (answer === 'OK') return key;
  }
  throw new Error('a master without slots');
}

describe('the durability of an acknowledgement', () => {
  test('needs a replica, since a failover loses writes that only the master has', async () => {
    expect(await readRedisDurability(redis, 0)).toEqual({
      isSafe: false,
      isSaidUnsafe: false,
      description: expect.stringMatching(/a failover loses calls .*\(REDIS_REPLICAS_MIN\)$/),
    });
    expect(await readRedisDurability(redis, 1)).toEqual({
      isSafe: true,
      isSaidUnsafe: false,
      description: expect.stringMatching(/on disk and on 1 of its replicas$/),
    });
  });

  test.each(['first', 'second'])(
    'has the reason of the master that is known to lose writes, beside one that hides its settings (%s)',
    async (which) => {
      const [one, other] = (await fleet.masters()) as [RedisNode, RedisNode];
      const [hides, loses] = which === 'first' ? [one, other] : [other, one];
      const user = ['ACL', 'SETUSER', 'reader', 'reset', 'on', '>secret', '~*', '+@all'];
      for (const master of await fleet.masters())
        await master.command(...user, ...(master === hides ? ['-config'] : []));
      await loses.command('CONFIG', 'SET', 'appendfsync', 'everysec');
      const reader = connectWorker(fleet.url.replace('//', '//reader:secret@'));
      try {
        await reader.ping();
        expect(await readRedisDurability(reader, 1)).toEqual({
          isSafe: false,
          isSaidUnsafe: true,
          description: expect.stringContaining(`redis 127.0.0.1:${loses.port}: `),
        });
      } finally {
        reader.disconnect();
        await loses.command('CONFIG', 'SET', 'appendfsync', 'always');
      }
    },
  );
});

describe('a write', () => {
  let nowMs: number;
  let replicas: ReplicaConfirmation;
  let master: RedisNode;
  let replica: RedisNode;
  /** One of the master's: it waits for its replica only after a write of its own. */
  let key: string;
  beforeEach(async () => {
    nowMs = 0;
    replicas = new ReplicaConfirmation({
      redis,
      replicasMin: 1,
      graceMs: GRACE_MS,
      timeoutMs: 2_000,
      monotonicNow: () => nowMs,
      logger,
    });
    [master] = (await fleet.masters()) as [RedisNode];
    key = await findKeyOf(master);
    // The test before may have restarted the replica, which is unknown to its master for a moment.
    await vi.waitFor(write, WAIT);
    [replica] = (await fleet.replicasOf(master)) as [RedisNode];
    return () => replicas.stop();
  });

  const write = () => replicas.confirm(() => redis.set(key, 'yes'));
  const isAttached = () =>
    vi.waitFor(async () => expect(await fleet.replicasOf(master)).toEqual([replica]), WAIT);

  test('is refused while its master lacks a replica, confirmed without one after the grace, and waits for one that is back', async () => {
    await replica.kill();
    await expect(write()).rejects.toThrow('0 of 1 replicas confirmed within 2000 ms');
    nowMs = GRACE_MS - 1;
    await expect(write()).rejects.toThrow('0 of 1 replicas');
    nowMs = GRACE_MS;
    expect(await write()).toBe('OK');
    await replica.restart();
    await isAttached();
    process.kill(replica.pid, 'SIGSTOP');
    try {
      await expect(write()).rejects.toThrow('0 of 1 replicas');
    } finally {
      process.kill(replica.pid, 'SIGCONT');
    }
    expect(await write()).toBe('OK');
  });

  describe('is refused for a whole grace anew', () => {
    /** Runs `act` while the looks at the master go on, and waits for one that began afterwards. */
    const lookDuring = async (act: () => Promise<unknown>): Promise<void> => {
      await act();
      const client = mastersOf(redis).find(({ options }) => options.port === master.port);
      const looks = vi.spyOn(client as NonNullable<typeof client>, 'role');
      // The one that is under way may have begun before.
      await vi.waitFor(() => expect(looks.mock.settledResults.length).toBeGreaterThan(0), WAIT);
      looks.mockRestore();
    };

    test('after a replica was there in between, with one warning for each absence', async () => {
      const warn = vi.spyOn(logger, 'warn');
      await replica.kill();
      await expect(write()).rejects.toThrow('0 of 1 replicas');
      await expect(write()).rejects.toThrow('0 of 1 replicas');
      await lookDuring(async () => {
        await replica.restart();
        await isAttached();
      });
      await replica.kill();
      nowMs = GRACE_MS;
      await expect(write()).rejects.toThrow('0 of 1 replicas');
      const address = { host: '127.0.0.1', port: master.port };
      const warnings = warn.mock.calls.map(([fields]) => fields as object);
      expect(warnings).toEqual(Array(2).fill({ graceMs: GRACE_MS, ...address }));
      await replica.restart();
    });

    test('after the master did not show its replicas in between', async () => {
      await replica.kill();
      await expect(write()).rejects.toThrow('0 of 1 replicas');
      await lookDuring(() => master.command('ACL', 'SETUSER', 'default', '-role'));
      await master.command('ACL', 'SETUSER', 'default', '+role');
      nowMs = GRACE_MS;
      await expect(write()).rejects.toThrow('0 of 1 replicas');
      await replica.restart();
    });
  });

  test('that an attached replica does not confirm in time is refused without a warning of its absence', async () => {
    const warn = vi.spyOn(logger, 'warn');
    process.kill(replica.pid, 'SIGSTOP');
    try {
      await expect(write()).rejects.toThrow('0 of 1 replicas');
      nowMs = GRACE_MS;
      await expect(write()).rejects.toThrow('0 of 1 replicas');
    } finally {
      process.kill(replica.pid, 'SIGCONT');
    }
    expect(warn).not.toHaveBeenCalled();
  });

  test('is not confirmed if a replica became master meanwhile, which may not have it', async () => {
    const mastersBefore = new Set(mastersOf(redis));
    const confirmed = replicas.confirm(async () => {
      await redis.set(key, 'before');
      await replica.command('CLUSTER', 'FAILOVER');
      await vi.waitFor(async () => {
        // An answer that the key has moved has the client ask for the masters.
        await redis.set(key, 'after');
        const ports = mastersOf(redis).map(({ options }) => options.port);
        expect(ports).toContain(replica.port);
        expect(ports).not.toContain(master.port);
      }, WAIT);
    });
    await expect(confirmed).rejects.toThrow('masters of Redis changed');
    expect(new Set(mastersOf(redis))).not.toEqual(mastersBefore);
  });

  test('is not confirmed if a master left meanwhile, which may be the only one that has it', async () => {
    const confirmed = replicas.confirm(async () => {
      await redis.set(key, 'yes');
      const left = mastersOf(redis).find(({ options }) => options.port !== master.port);
      left?.disconnect();
      await vi.waitFor(() => expect(mastersOf(redis)).not.toContain(left), WAIT);
    });
    await expect(confirmed).rejects.toThrow('masters of Redis changed');
  });
});
