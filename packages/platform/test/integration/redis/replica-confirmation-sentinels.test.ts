/** Worth of an acknowledgement of a set watched by Sentinels: a real master with two replicas, and three Sentinels. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ReplicaConfirmation } from '../../../src/redis/replica-confirmation.ts';
import { connectWorker } from '../../../src/redis/redis.ts';
import type { RedisClient } from '../../../src/redis/redis-client.ts';
import { SentinelViews } from '../../../src/redis/sentinels.ts';
import {
  startRedisSentinels,
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

beforeEach(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-confirmation-'));
  fleet = await startRedisSentinels(directory, GONE_AFTER_MS);
  redis = connectWorker(fleet.url);
  await redis.ping();
  return async () => {
    redis.disconnect();
    await fleet.close();
    await rm(directory, { recursive: true, force: true });
  };
}, START_MS_MAX);

test('Sentinels that the URL does not name are asked too', async () => {
  const client = connectWorker(fleet.url.replace(/,[^?]+/, '')) as Redis;
  const runId = /^run_id:(.+)\r$/m.exec(await client.info('server'))?.[1];
  // One of three is no majority.
  const view = await new SentinelViews(client, () => 0).recent();
  expect(view).toEqual({ replicaCount: 2, masterRunId: runId });
  client.disconnect();
});

describe('a write', () => {
  let nowMs: number;
  let replicas: ReplicaConfirmation;
  let master: RedisNode;
  let one: RedisNode;
  let other: RedisNode;
  beforeEach(async () => {
    nowMs = 0;
    replicas = new ReplicaConfirmation({
      redis,
      replicasMin: 1,
      graceMs: GRACE_MS,
      timeoutMs: 1_000,
      monotonicNow: () => nowMs,
      logger,
    });
    [master] = (await fleet.masters()) as [RedisNode];
    [one, other] = (await fleet.replicasOf(master)) as [RedisNode, RedisNode];
    await vi.waitFor(() => write('before'), WAIT);
    return () => replicas.stop();
  });

  const write = (value: string) => replicas.confirm(() => redis.set('written', value));

  test('is not confirmed by a replica of the old master, once a Sentinel has made the other replica a master', async () => {
    // The first step of a failover. A Sentinel takes up to a second until it gives it the remaining replica.
    await one.command('REPLICAOF', 'NO', 'ONE');
    await expect(write('after')).rejects.toThrow('1 of 2 replicas');
    await other.command('REPLICAOF', '127.0.0.1', String(one.port));
    await vi.waitFor(async () => expect(await fleet.replicasOf(one)).toEqual([other]), WAIT);
    expect(await other.command('GET', 'written')).toBe('before');
  });

  test('is confirmed without a replica that is gone for the grace, and waits for it once it is back', async () => {
    await one.kill();
    await expect(write('one')).rejects.toThrow('1 of 2 replicas');
    nowMs = GRACE_MS - 1;
    await expect(write('two')).rejects.toThrow('1 of 2 replicas');
    nowMs = GRACE_MS;
    await vi.waitFor(() => write('three'), WAIT);
    // A connection that is opened anew may lead to another master.
    redis.disconnect(true);
    await redis.ping();
    await expect(write('three')).rejects.toThrow('1 of 2 replicas');
    nowMs += GRACE_MS;
    await vi.waitFor(() => write('three'), WAIT);
    await one.restart();
    await vi.waitFor(async () => expect(await fleet.replicasOf(master)).toHaveLength(2), WAIT);
    await suspended([one.pid], async () => {
      await expect(write('four')).rejects.toThrow('1 of 2 replicas');
    });
  });

  test('needs a replica also after the grace', async () => {
    await Promise.all([one.kill(), other.kill()]);
    await expect(write('one')).rejects.toThrow('0 of 2 replicas');
    nowMs = GRACE_MS;
    await expect(write('two')).rejects.toThrow('0 of 1 replicas');
  });

  describe('waits for all replicas also after the grace', () => {
    const expectRefusal = () => expect(write('refused')).rejects.toThrow('1 of 2 replicas');

    test('while most or all of the Sentinels do not answer', async () => {
      await one.kill();
      await expectRefusal();
      const pids = fleet.sentinels.map(({ pid }) => pid);
      nowMs = GRACE_MS;
      await suspended(pids.slice(1), expectRefusal);
      nowMs += 1_000;
      await suspended(pids, expectRefusal);
      // Their next answers.
      nowMs += 1_000;
      await vi.waitFor(() => write('confirmed'), WAIT);
    });

    test('while most of the Sentinels name another master', async () => {
      await one.kill();
      await expectRefusal();
      for (const sentinel of fleet.sentinels.slice(1)) {
        await sentinel.command('SENTINEL', 'REMOVE', 'sluice');
        const address = ['127.0.0.1', String(other.port)];
        await sentinel.command('SENTINEL', 'MONITOR', 'sluice', ...address, '2');
      }
      nowMs = GRACE_MS;
      await expectRefusal();
    });
  });
});

async function suspended(pids: readonly number[], act: () => Promise<void>): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    await act();
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  }
}
