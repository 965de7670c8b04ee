/**
 * The queue at a failover, as tests for any servers.
 *
 * A replica may take a master's place there.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import { connectWorker, reconnect } from '@sluice/platform/redis/redis';
import { type RedisFleet, type RedisNode } from '@sluice/platform/testing/redis-fleet';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { testQueue } from './queue-guarantees.ts';

/** A master may stand still for less time on a busy machine. Its replacement would fail the tests without a kill. */
const GONE_AFTER_MS = 3_000;
/**
 * Workers go on after 3 s; Sentinels take 10 s until a master that has come back is a replica. An election that fails is
 * repeated after 12 s.
 */
const WAIT = { timeout: 60_000, interval: 50 };
/** Six servers start and hear of each other, on a busy machine one after another. */
const START_MS_MAX = 180_000;
const ADD_TIMEOUT_MS = 1_000;
const SHARD_COUNT = 12;

/** Called in a `describe`; the servers are started once for all. @returns them, once they are. */
export function testFailover(
  start: (directory: string, goneAfterMs: number) => Promise<RedisFleet>,
): () => RedisFleet {
  let fleet: RedisFleet;
  beforeAll(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sluice-test-failover-'));
    fleet = await start(directory, GONE_AFTER_MS);
    return async () => {
      await fleet.close();
      await rm(directory, { recursive: true, force: true });
    };
  }, START_MS_MAX);

  testQueue(() => Promise.resolve({ url: fleet.url, close: () => Promise.resolve() }));

  test('a connection that has to connect anew while it connects goes on', async () => {
    const redis = connectWorker(fleet.url);
    redis.on('error', () => undefined);
    redis.once('connecting', () => setImmediate(() => reconnect(redis)));
    expect(await redis.ping()).toBe('PONG');
    redis.disconnect();
  });

  test('batches are refused while one of the masters reports that it loses confirmed writes', async () => {
    const producer = await openProducer(
      {
        databaseUrl: 'postgres://127.0.0.1:1/none',
        redisUrl: fleet.url,
        prefix: uniquePrefix(),
        shardCount: 1,
        logger: createLogger('test', 'silent'),
      },
      20_000,
      { requiresDurability: true },
    );
    const add = () =>
      producer.addCommitBatches([{ shard: 0, envelope: { id: 'one', operations: [] } }]);
    const last = (await fleet.masters()).at(-1) as RedisNode;
    await last.command('CONFIG', 'SET', 'appendfsync', 'everysec');
    await expect(add()).rejects.toMatchObject({ code: 'BROKER_UNDURABLE' });
    expect(await producer.durability()).toMatchObject({ isSafe: false, isSaidUnsafe: true });
    await last.command('CONFIG', 'SET', 'appendfsync', 'always');
    await vi.waitFor(add, WAIT);
    await producer.close();
  });

  describe('a master that is lost', () => {
    let options: BrokerOptions;
    let producer: Producer;
    beforeEach(async () => {
      options = {
        databaseUrl: 'postgres://127.0.0.1:1/none',
        redisUrl: fleet.url,
        prefix: uniquePrefix(),
        shardCount: SHARD_COUNT,
        stalledAfterMs: 3_000,
        logger: createLogger('test', 'silent'),
      };
      producer = await openProducer(options, ADD_TIMEOUT_MS, { graceMs: 500 });
      return () => producer.close();
    });

    const flush = (name: string) =>
      Array.from({ length: SHARD_COUNT }, (_, shard) => ({
        shard,
        envelope: { id: `${name}-${shard}`, operations: [] } satisfies CommitBatch,
      }));
    /** As intake's disk buffer does: the same ids again until they are confirmed. */
    const addUntilConfirmed = (name: string) =>
      vi.waitFor(() => producer.addCommitBatches(flush(name)), WAIT);
    const idsOf = (name: string) => flush(name).map(({ envelope: commitBatch }) => commitBatch.id);

    const consume = async (processed: string[]) => {
      const consumers = await startConsumers(options, {
        processCommitBatch({ id }) {
          if (!processed.includes(id)) processed.push(id);
          return Promise.resolve({ outcome: 'done' });
        },
        wakeLane: () => Promise.resolve({ outcome: 'done' }),
        laneConcurrency: 1,
        now: Date.now,
      });
      return consumers;
    };

    test('loses no confirmed batch, and workers go on by themselves', async () => {
      const processed: string[] = [];
      const consumers = await consume(processed);
      const names: string[] = [];
      let isSending = true;
      const sending = (async () => {
        for (let n = 0; isSending; n++) {
          await addUntilConfirmed(`flush-${n}`);
          names.push(`flush-${n}`);
        }
      })();
      await vi.waitFor(() => expect(names.length).toBeGreaterThan(20), WAIT);
      const [master] = (await fleet.masters()) as [RedisNode];
      await master.kill();
      const countAtKill = names.length;
      await vi.waitFor(() => expect(names.length).toBeGreaterThan(countAtKill + 20), WAIT);
      isSending = false;
      await sending;
      const wanted = names.flatMap(idsOf);
      await vi.waitFor(() => {
        expect(wanted.filter((id) => !processed.includes(id))).toEqual([]);
      }, WAIT);
      for (let shard = 0; shard < SHARD_COUNT; shard++) {
        const order = processed.filter((id) => id.endsWith(`-${shard}`));
        expect(order).toEqual(names.map((name) => `${name}-${shard}`));
      }
      await consumers.close();
      await master.restart();
      await vi.waitFor(
        async () => expect(await attachedCount(fleet)).toBe(replicaCount(fleet)),
        WAIT,
      );
    }, 240_000);

    test('before a replica had a commit batch takes it along, so it was not confirmed and is added again', async () => {
      await addUntilConfirmed('first');
      const masters = await fleet.masters();
      const replicas = (await Promise.all(masters.map((each) => fleet.replicasOf(each)))).flat();
      // They hang and their connections end: a master can write, without an answer to its clients.
      for (const { pid } of replicas) process.kill(pid, 'SIGSTOP');
      await Promise.all(masters.map((each) => each.command('CLIENT', 'KILL', 'TYPE', 'replica')));
      await expect(producer.addCommitBatches(flush('second'))).rejects.toMatchObject({
        code: 'BROKER_UNAVAILABLE',
      });
      const [master] = masters as [RedisNode];
      await master.kill();
      for (const { pid } of replicas) process.kill(pid, 'SIGCONT');
      // The old master had parts of it on its disk, of which the new one never heard.
      const counts = await vi.waitFor(() => producer.commitBatchCounts(), WAIT);
      expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThan(2 * SHARD_COUNT);
      await addUntilConfirmed('second');
      const processed: string[] = [];
      const consumers = await consume(processed);
      await vi.waitFor(() => {
        expect(processed.toSorted()).toEqual([...idsOf('first'), ...idsOf('second')].toSorted());
      }, WAIT);
      await consumers.close();
      await master.restart();
      await vi.waitFor(
        async () => expect(await attachedCount(fleet)).toBe(replicaCount(fleet)),
        WAIT,
      );
    }, 240_000);
  });

  return () => fleet;
}

const replicaCount = (fleet: RedisFleet): number => fleet.nodes.length - fleet.masterCount;

async function attachedCount(fleet: RedisFleet): Promise<number> {
  const masters = await fleet.masters();
  return (await Promise.all(masters.map((each) => fleet.replicasOf(each)))).flat().length;
}
