/**
 * Repairs of the watch over the queues, and its restraint.
 *
 * The workers are real; the test takes jobs in their names.
 */
import { NOT_LOOKED_YET } from '@sluice/platform/consumers/queue-watch';
import { Worker } from 'bullmq';
import { describe, expect, test, vi } from 'vitest';
import { commitBatch, NAME, useBroker } from '../support/broker-world.ts';
import { createWatchWorld, keyOf, type WatchWorldOptions } from '../support/watch-world.ts';

const broker = useBroker();
const JOB = 'envelope-a';

const createWorld = (options: Partial<WatchWorldOptions> = {}) =>
  createWatchWorld(broker, { nowMs: () => 1_000_000, loops: 'hang', ...options });

const addJob = () => broker.producer.addCommitBatches([{ shard: 0, envelope: commitBatch(JOB) }]);

/** Lists of the queue in which the job is. */
async function placesOf(id: string): Promise<string[]> {
  const places = ['wait', 'active'];
  const lists = await Promise.all(
    places.map((place) => broker.redis.lrange(keyOf(broker, place), 0, -1)),
  );
  return places.filter((_, index) => lists[index]?.includes(id));
}

/** Takes the job in the name of a worker, as if the answer of the broker had been lost. */
async function takeFor(worker: Worker | undefined, token: string) {
  const job = await worker?.getNextJob(token);
  if (!job) throw new Error('there is no job to take');
  return job;
}

describe('a job that was taken for a worker and did not reach it', () => {
  test('is put back at the second look that finds it, and not at the first', async () => {
    const { workers, watch } = createWorld();
    await addJob();
    await takeFor(workers[0], `${workers[0]?.id}:1`);
    await watch.look();
    expect(await placesOf(JOB)).toEqual(['active']);
    expect(watch.report().recoveredJobs).toBe(0);
    await watch.look();
    expect(await placesOf(JOB)).toEqual(['wait']);
    expect(watch.report().recoveredJobs).toBe(1);
  });

  test('stays if its answer comes together with the heads of the second look', async () => {
    let onHeads = (): void => {};
    const { workers, handOver, watch, processed } = createWorld({
      process: () => new Promise(() => {}),
      readHeads: (read) => async (names) => {
        const heads = await read(names);
        setImmediate(onHeads);
        return heads;
      },
    });
    await addJob();
    const token = `${workers[0]?.id}:1`;
    const job = await takeFor(workers[0], token);
    await watch.look();
    onHeads = () => void handOver[0]?.(job, token);
    await watch.look();
    expect(processed).toEqual([JOB]);
    expect(await placesOf(JOB)).toEqual(['active']);
    expect(watch.report().recoveredJobs).toBe(0);
  });

  test('stays if it reaches its worker while the watch repairs, beside an idle worker', async () => {
    let onRepair = (): void => {};
    const { workers, handOver, watch, processed } = createWorld({
      takers: 2,
      process: () => new Promise(() => {}),
      restoreLimit: async () => onRepair(),
    });
    await addJob();
    const token = `${workers[0]?.id}:1`;
    const job = await takeFor(workers[0], token);
    await watch.look();
    onRepair = () => void handOver[0]?.(job, token);
    await watch.look();
    expect(processed).toEqual([JOB]);
    expect(await placesOf(JOB)).toEqual(['active']);
    expect(watch.report().recoveredJobs).toBe(0);
  });

  test('is left to the broker if its lock has run out', async () => {
    const { workers, watch } = createWorld();
    await addJob();
    await takeFor(workers[0], `${workers[0]?.id}:1`);
    await broker.redis.del(keyOf(broker, `${JOB}:lock`));
    await watch.look();
    await watch.look();
    expect(watch.report()).toMatchObject({ isBrokerAnswering: true, recoveredJobs: 0 });
  });
});

test('jobs of a dead process are put back at once, and the queue is looked at each period again', async () => {
  let nowMs = 1_000_000;
  const { watch } = createWorld({ nowMs: () => nowMs });
  const dead = new Worker(NAME, null, {
    ...broker.connection(),
    autorun: false,
    skipStalledCheck: true,
  });
  broker.closes.push(() => dead.close());
  nowMs += 15_000;
  await watch.look();
  nowMs += 1_000;
  await addJob();
  await takeFor(dead, 'dead:1');
  const readHead = vi.spyOn(broker.redis, 'lindex');
  await watch.look();
  expect(readHead).not.toHaveBeenCalled();
  expect(await watch.putBackJobsOf(['other', 'dead'])).toBe(1);
  expect(await placesOf(JOB)).toEqual(['wait']);
  readHead.mockClear();
  await watch.look();
  expect(readHead).toHaveBeenCalledTimes(1);
});

test('jobs of a process whose name only begins alike stay', async () => {
  const { watch } = createWorld();
  const other = new Worker(NAME, null, {
    ...broker.connection(),
    autorun: false,
    skipStalledCheck: true,
  });
  broker.closes.push(() => other.close());
  await addJob();
  await takeFor(other, 'worker-12:1');
  expect(await watch.putBackJobsOf(['worker-1'])).toBe(0);
  expect(await placesOf(JOB)).toEqual(['active']);
});

test('a broker that does not answer is reported, and its connection is opened anew in two thirds of the stall time', async () => {
  let nowMs = 1_000_000;
  let isAway = false;
  const { watch, events } = createWorld({
    nowMs: () => nowMs,
    readHeads: (read) => (names) =>
      isAway ? Promise.reject(new Error('the broker is away')) : read(names),
  });
  expect(NOT_LOOKED_YET).toEqual({
    isBrokerAnswering: false,
    stuckQueues: [],
    replacedWorkers: 0,
    recoveredJobs: 0,
  });
  // The consumers have used the broker before they have a watch.
  expect(watch.report()).toEqual({ ...NOT_LOOKED_YET, isBrokerAnswering: true });
  isAway = true;
  await watch.look();
  expect(watch.report().isBrokerAnswering).toBe(false);
  nowMs += 9_999;
  await watch.look();
  expect(events).toEqual([]);
  nowMs += 1;
  await watch.look();
  await watch.look();
  expect(events).toEqual(['connects anew']);
  isAway = false;
  await watch.look();
  expect(watch.report().isBrokerAnswering).toBe(true);
});

test('a look at a quiet queue only reads its head, and leaves its worker alone', async () => {
  const { watch, workers, events } = createWorld({ restoreLimit: () => Promise.resolve() });
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  const sent = vi.spyOn(broker.redis, 'sendCommand');
  for (let look = 0; look < 3; look++) await watch.look();
  expect(new Set(sent.mock.calls.map(([command]) => command.name))).toEqual(
    new Set(['lrange', 'lindex', 'hget']),
  );
  expect(events).toEqual([]);
});

test('an idle worker looks for jobs itself if the same one waits at two looks', async () => {
  const { watch, events } = createWorld();
  await addJob();
  await watch.look();
  expect(events).toEqual([]);
  await watch.look();
  expect(events).toEqual(['looks for jobs']);
});

test('a try that does not end is reported once its time is over, and once only', async () => {
  let nowMs = 1_000_000;
  const { watch, workers, handOver, events } = createWorld({
    nowMs: () => nowMs,
    process: (_, trying) => {
      trying.begin();
      return new Promise(() => {});
    },
  });
  await watch.look();
  await addJob();
  const token = `${workers[0]?.id}:1`;
  void handOver[0]?.(await takeFor(workers[0], token), token);
  nowMs += 59_999;
  await watch.look();
  expect(events).toEqual([]);
  nowMs += 1;
  await watch.look();
  nowMs += 1_000;
  await watch.look();
  expect(events).toEqual([`${JOB} hangs`]);
});
