/**
 * Flushes and earlier ones that are still on an intake's disk.
 *
 * No flush overtakes such an earlier one. The tests check which flushes the broker adds at once, which it stages, and
 * when it gives those back. On both brokers; the intakes are played here, with the broker's own clock.
 */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import {
  migrateQueues,
  openProducer,
  type Producer,
  type ShardCommitBatch,
} from '@sluice/platform/queue/queue';
import { writeFlush, type Standing } from '@sluice/platform/queue/staged-flushes';
import { repeatIfStalled } from '@sluice/platform/testing/stall-watch';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ADD_MS_MAX } from '../support/broker-world.ts';

/** Longer than a standstill of a busy machine. */
const LEASE_MS = 15_000;
const WAIT = { timeout: 20_000, interval: 10 };
/** A part of a lease, and of the wait for an intake after the end of its lease. */
const STALL_MS = 500;

const flush = (id: string): ShardCommitBatch[] => [
  { shard: 0, envelope: { id, operations: [] } },
  { shard: 1, envelope: { id: `${id}-1`, operations: [] } },
];

describe.each(['redis', 'postgres'] as const)('on %s', (broker) => {
  let databaseUrl = 'postgres://127.0.0.1:1/none';
  let database: Database | undefined;
  let producer: Producer;

  beforeAll(async () => {
    if (broker === 'redis') return;
    ({ database, url: databaseUrl } = await createTestDatabase());
    await migrateQueues(databaseUrl);
  });
  beforeEach(async () => {
    if (database) await emptyQueues(database);
    producer = await openProducer(
      {
        databaseUrl,
        redisUrl: broker === 'redis' ? testRedisUrl() : undefined,
        prefix: uniquePrefix(),
        shardCount: 2,
        logger: createLogger('test', 'silent'),
      },
      ADD_MS_MAX,
    );
    return () => producer.close();
  });

  const report = (intakeId: string, oldestMs?: number, more: object = {}): Promise<Standing> =>
    producer.stage.report({
      intakeId,
      formerIds: [],
      leaseEndMs: undefined,
      leaseMs: LEASE_MS,
      oldestMs,
      ...more,
    });
  const unlessStalled = (attempt: () => Promise<void>) =>
    repeatIfStalled(STALL_MS, attempt, () => producer.stage.readClock());
  const put = (id: string, atMs?: number) =>
    producer.stage.put([{ atMs, text: writeFlush(flush(id)) }]);
  const added = async (): Promise<number> =>
    (await producer.commitBatchCounts()).reduce((sum, count) => sum + count, 0) / 2;
  /** As an intake does again and again. */
  const moved = async (mover: string, ...intakes: string[]): Promise<number> => {
    let count = 0;
    await vi.waitUntil(async () => {
      for (const intake of intakes) await report(intake);
      count += await producer.moveStaged(mover);
      return count > 0;
    }, WAIT);
    return count;
  };

  test('a flush is added at once while every intake reports an empty disk', async () => {
    await report('one');
    await report('two');
    expect(await producer.addFlush(flush('a'))).toBe('added');
    expect(await added()).toBe(1);
  });

  test('while an intake has batches on its disk, a flush of any intake is held', async () => {
    await report('one');
    const { nowMs } = await report('two');
    await report('two', nowMs);
    expect(await producer.addFlush(flush('a'))).toBe('held');
    expect(await added()).toBe(0);
    await report('two');
    expect(await producer.addFlush(flush('a'))).toBe('added');
  });

  test('an intake that is silent holds back the others from the end of its lease, and not for ever', async () => {
    await report('silent', undefined, { leaseMs: 50 });
    await report('one');
    // Before the broker finds its lease ended, since a standstill may come after that.
    let heldAtMs = 0;
    await vi.waitUntil(async () => {
      heldAtMs = performance.now();
      await report('one');
      return (await producer.addFlush(flush('a'))) === 'held';
    }, WAIT);
    await vi.waitUntil(async () => {
      await report('one');
      return (await producer.addFlush(flush('b'))) === 'added';
    }, WAIT);
    expect(performance.now() - heldAtMs).toBeGreaterThan(4_000);
  });

  // Its flush was sent before, and waited in the network. The call was answered from its disk meanwhile.
  test('of an intake that was missed for too long, no flush is added or staged before its next report', async () => {
    await report('missed', undefined, { leaseMs: 50 });
    await vi.waitUntil(
      async () => (await producer.addFlush(flush('a'), 'missed')) === 'held',
      WAIT,
    );
    await vi.waitUntil(async () => {
      await report('one');
      return (await producer.addFlush(flush('b'), 'one')) === 'added';
    }, WAIT);
    expect(await producer.addFlush(flush('a'), 'missed')).toBe('held');
    const staging = () => producer.stage.put([{ atMs: 1, text: writeFlush(flush('a')) }], 'missed');
    await expect(staging()).rejects.toThrow('did not confirm');
    const { nowMs, stagedCount } = await report('one');
    expect(stagedCount).toBe(0);
    expect((await report('missed', nowMs)).wasKnown).toBe(false);
    await staging();
    expect((await report('missed')).stagedCount).toBe(1);
  });

  test('staged flushes of several intakes are moved by their times, once no intake has an earlier one', async () => {
    const { nowMs } = await report('one');
    await report('two', nowMs - 50);
    await put('third', nowMs - 30);
    expect(await producer.moveStaged('one')).toBe(0);
    await put('second', nowMs - 40);
    await put('first', nowMs - 50);
    await report('two', nowMs - 35);
    // The one on the disk of the other is before the third.
    await vi.waitUntil(async () => {
      await report('one');
      await report('two', nowMs - 35);
      return (await producer.stage.take('one', 10, 1_000_000)).length === 2;
    }, WAIT);
    const flushes = await producer.stage.take('one', 10, 1_000_000);
    expect(flushes.map(({ text }) => text)).toEqual([
      writeFlush(flush('first')),
      writeFlush(flush('second')),
    ]);
    // No other intake moves them meanwhile.
    expect(await producer.stage.take('two', 10, 1_000_000)).toEqual([]);
    await producer.stage.remove(
      'one',
      flushes.map(({ id }) => id),
    );
    expect(await producer.addFlush(flush('live'))).toBe('held');
    expect(await moved('two', 'one', 'two')).toBe(1);
    await report('one');
    await report('two');
    expect(await producer.addFlush(flush('live'))).toBe('added');
    expect(await added()).toBe(2);
  });

  test('the stage is empty without intakes or if all report empty disks, and not while one may have batches', async () => {
    expect(await producer.stage.isEmpty()).toBe(true);
    const { nowMs } = await report('one');
    expect(await producer.stage.isEmpty()).toBe(true);
    await report('one', nowMs);
    expect(await producer.stage.isEmpty()).toBe(false);
    await put('a', nowMs);
    await vi.waitUntil(async () => (await report('one')).isMovable, WAIT);
    expect(await producer.stage.isEmpty()).toBe(false);
    expect(await moved('one', 'one')).toBe(1);
    await report('one');
    expect(await producer.stage.isEmpty()).toBe(true);
    // Its lease ends, and it is waited for; then it is lost. A standstill may hide the wait.
    await unlessStalled(async () => {
      await report('one', undefined, { leaseMs: 50 });
      await vi.waitUntil(async () => !(await producer.stage.isEmpty()), WAIT);
    });
    await vi.waitUntil(() => producer.stage.isEmpty(), WAIT);
  });

  test('the clock goes on between two readings, and is the one of the reports', async () => {
    const first = await producer.stage.readClock();
    const { nowMs } = await report('one');
    expect(nowMs).toBeGreaterThan(first);
    expect(await producer.stage.readClock()).toBeGreaterThan(nowMs);
  });

  test('a new flush waits if the last staged flushes are about to be moved', async () => {
    await report('one');
    await put('a');
    expect(await producer.addFlush(flush('b'))).toBe('ending');
    expect(await moved('one', 'one')).toBe(1);
    expect(await producer.addFlush(flush('b'))).toBe('added');
  });

  test('a report that arrives after the end of its own lease does not renew it', async () => {
    const { nowMs } = await report('one', undefined, { leaseMs: 50 });
    await vi.waitUntil(async () => (await producer.addFlush(flush('a'))) === 'held', WAIT);
    await report('one', undefined, { leaseEndMs: nowMs + 50 });
    expect(await producer.addFlush(flush('a'))).toBe('held');
  });

  test('a lease is renewed without a report while it holds, and not after its end', async () => {
    const leaseMs = 2_000;
    // A standstill may outlast a lease.
    await unlessStalled(async () => {
      await producer.stage.leave('one');
      const { nowMs } = await report('one', undefined, { leaseMs });
      expect(await producer.stage.renew('one', nowMs + 3 * leaseMs)).toBe(true);
      const startedAtMs = performance.now();
      await vi.waitUntil(() => performance.now() - startedAtMs > leaseMs, WAIT);
      expect(await producer.addFlush(flush('a'))).toBe('added');
      await vi.waitUntil(async () => (await producer.addFlush(flush('a'))) === 'held', WAIT);
      expect(await producer.stage.renew('one', nowMs + 60_000)).toBe(false);
      expect(await producer.addFlush(flush('a'))).toBe('held');
    });
  });

  test('an intake that leaves, or goes on under another id, is waited for no more', async () => {
    await report('one');
    const { nowMs, wasKnown } = await report('left', 1);
    expect(wasKnown).toBe(false);
    expect(await producer.addFlush(flush('a'))).toBe('held');
    const renamed = await report('new', nowMs, { formerIds: ['left'] });
    expect(renamed.wasKnown).toBe(true);
    await producer.stage.leave('new');
    await vi.waitUntil(async () => {
      await report('one');
      return (await producer.addFlush(flush('a'))) === 'added';
    }, WAIT);
  });
});

async function emptyQueues(database: Database): Promise<void> {
  for (const table of ['job', 'sluice_pending_batch', 'sluice_intake', 'sluice_staged_flush'])
    await sql`delete from bullmq.${sql.raw(table)}`.execute(database);
  await sql`update bullmq.sluice_standing set mover_id = null, settled_at_ms = 0, seen_at_ms = 0`.execute(
    database,
  );
}
