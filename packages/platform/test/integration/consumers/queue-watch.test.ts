/**
 * The watch over the queues, with real BullMQ workers.
 *
 * The loops of the workers are ended and stopped under it.
 */
import { Worker } from 'bullmq';
import { expect, test, vi } from 'vitest';
import { commitBatch, NAME, useBroker, WAIT } from '../support/broker-world.ts';
import { createWatchWorld, keyOf, type WatchWorldOptions } from '../support/watch-world.ts';

const broker = useBroker();

const watchOne = (nowMs: () => number, loops: WatchWorldOptions['loops']) =>
  createWatchWorld(broker, { nowMs, loops });

test('a worker whose loop has ended is replaced at the next look, and the queue goes on', async () => {
  const { workers, processed, watch } = watchOne(Date.now, 'run');
  await workers[0]?.close();
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  await vi.waitFor(async () => {
    await watch.look();
    expect(workers).toHaveLength(2);
  }, WAIT);
  await vi.waitFor(() => expect(processed).toEqual(['envelope-a']), WAIT);
  expect(watch.report().replacedWorkers).toBe(1);
});

test('a worker that leaves waiting jobs is replaced after the stall time, and not before', async () => {
  let nowMs = 1_000_000;
  const { workers, processed, watch } = watchOne(() => nowMs, 'first hangs');
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  await watch.look();
  nowMs += 14_999;
  await watch.look();
  expect(workers).toHaveLength(1);
  expect(watch.report()).toMatchObject({ stuckQueues: [], replacedWorkers: 0 });
  nowMs += 1;
  await watch.look();
  expect(workers).toHaveLength(2);
  await vi.waitFor(() => expect(processed).toEqual(['envelope-a']), WAIT);
});

// As when a worker is stopped or killed: the others were about to take its jobs, and were replaced instead.
test('a job that was long in another process counts as waiting from when it was put back', async () => {
  let nowMs = 1_000_000;
  const { workers, watch } = watchOne(() => nowMs, 'first hangs');
  const other = new Worker(NAME, null, {
    ...broker.connection(),
    autorun: false,
    skipStalledCheck: true,
  });
  broker.closes.push(() => other.close());
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  expect((await other.getNextJob('token of the other'))?.id).toBe('envelope-a');
  await watch.look();
  nowMs += 60_000;
  await watch.look();
  await other.getBackend().moveJobFromActiveToWait('envelope-a', 'token of the other');
  await watch.look();
  nowMs += 14_999;
  await watch.look();
  expect(watch.report().replacedWorkers).toBe(0);
  nowMs += 1;
  await watch.look();
  expect(workers).toHaveLength(2);
});

// As with a full memory of Redis: the taking of a job is refused, for any worker.
test('a queue that makes no progress after repeated replacements of its workers is reported as stuck', async () => {
  let nowMs = 1_000_000;
  const { workers, watch } = watchOne(() => nowMs, 'hang');
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  for (let look = 0; look < 3; look++) {
    await watch.look();
    nowMs += 15_000;
  }
  expect(workers).toHaveLength(3);
  expect(watch.report()).toMatchObject({ stuckQueues: [NAME], replacedWorkers: 2 });
});

test('an idle queue is looked at once in two thirds of the stall time, until something happens', async () => {
  let nowMs = 1_000_000;
  const { watch } = watchOne(() => nowMs, 'first hangs');
  const readHeads = vi.spyOn(broker.redis, 'lindex');
  const looksIn = async (seconds: number): Promise<number> => {
    readHeads.mockClear();
    for (let second = 0; second < seconds; second++) {
      nowMs += 1_000;
      await watch.look();
    }
    return readHeads.mock.calls.length;
  };
  expect(await looksIn(14)).toBe(14);
  await looksIn(1);
  expect(await looksIn(60)).toBe(6);
  watch.rouse();
  expect(await looksIn(14)).toBe(14);
  await looksIn(60);
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  await looksIn(10);
  expect(await looksIn(5)).toBe(5);
});

test('a queue that stands is named until it moves', async () => {
  let nowMs = 1_000_000;
  const { watch } = watchOne(() => nowMs, 'first hangs');
  await broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch('envelope-a') }]);
  await watch.look();
  nowMs += 30_001;
  expect(watch.report().stuckQueues).toEqual([NAME]);
  await watch.look();
  await vi.waitFor(async () => {
    await watch.look();
    expect(watch.report().stuckQueues).toEqual([]);
    expect(await broker.redis.llen(keyOf(broker, 'wait'))).toBe(0);
  }, WAIT);
});
