/**
 * Calls that wait to be admitted, their times and their order.
 *
 * Counts and orders, by a clock of the test.
 */
import type { QueuedBatch } from '@sluice/platform/queue/queue-heads';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Admission } from '../../src/commit/admission.ts';
import type { CommittedTo } from '../../src/commit/batch-committer.ts';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { createBatcher, event } from '../support/batcher-under-test.ts';
import { operationsIn } from '../support/operations-in.ts';

const FLOOD = 1;
const OTHER = 2;
const BATCH_COUNT = 50;
const BATCH_SIZE_BYTES = 10_000;
/** Without a bound, an unlimited flood would fill the memory of the test. */
const WAITING_MAX = 50_000;

/** An intake before workers who apply `perMs` operations a millisecond, one commit batch after another; 1 ms of theirs is a step. */
function openWorld({ perMs = 10, isAlone = false, pendingSizeBytes = 1e9 } = {}) {
  let nowMs = 0;
  let isAway = false;
  let committedTo: CommittedTo = 'broker';
  const queue: { batch: QueuedBatch; environments: number[]; leftMs: number }[] = [];
  const applied: number[] = [];
  let deepest = 0;
  const admission: Admission = new Admission({
    isAlone: () => isAlone,
    listQueued: (batches) => {
      if (isAway) return Promise.reject(new Error('away'));
      const ids = new Set(queue.map(({ batch }) => batch.id));
      return Promise.resolve(new Set(batches.map(({ id }) => id).filter((id) => ids.has(id))));
    },
    readHeads: () => Promise.resolve([queue[0]?.batch.id ?? '']),
    wake: () => undefined,
    onCapacity: () => batcher.admitMore(),
    monotonicNow: () => nowMs,
    turnNow: () => nowMs,
  });
  const batcher = createBatcher({
    admission,
    pending: new SharedCapacity({
      capacity: pendingSizeBytes,
      sharePercent: 25,
      isAlone: () => isAlone,
      monotonicNow: () => nowMs,
    }),
    commit: (commitBatches: readonly ShardCommitBatch[]) => {
      for (const each of commitBatches) {
        const environments = operationsIn([each]).map(({ environmentId }) => environmentId);
        const batch = { shard: each.shard, id: each.envelope.id };
        if (committedTo === 'broker')
          queue.push({ batch, environments, leftMs: 3 + environments.length / perMs });
      }
      const waiting = queue.reduce((sum, each) => sum + each.environments.length, 0);
      deepest = Math.max(deepest, waiting);
      return Promise.resolve(committedTo);
    },
  });
  const ready: (() => void)[] = [];
  let number = 0;
  const send = (environmentId: number, count: number, sizeBytes: number, done = () => undefined) =>
    batcher.add(
      Array.from({ length: count }, () => ({
        ...event(`p${number % 40}`, String(number++)),
        environmentId,
      })),
      sizeBytes,
      (outcome) => {
        if (outcome === 'committed') done();
      },
    );
  return {
    admission,
    batcher,
    applied,
    queue,
    get deepest() {
      return deepest;
    },
    /** So many connections, each of which sends the next batch a millisecond after its answer, as long as few enough wait. */
    floodFrom(connectionCount: number) {
      const again = (): undefined =>
        void ready.push(() => void send(FLOOD, BATCH_COUNT, BATCH_SIZE_BYTES, again));
      for (let connection = 0; connection < connectionCount; connection++) again();
    },
    flood: (done?: () => undefined) => send(FLOOD, BATCH_COUNT, BATCH_SIZE_BYTES, done),
    other: (done?: () => undefined) => send(OTHER, 1, 200, done),
    send,
    leave: () => void (isAway = true),
    keepOnDisk: () => void (committedTo = 'spill'),
    stage: () => void (committedTo = 'stage'),
    /** @param isWorking - false: the workers apply no operations. */
    async pass(durationMs: number, isWorking = true) {
      for (let ms = 0; ms < durationMs; ms++) {
        nowMs++;
        const waiting = queue.reduce((sum, { environments }) => sum + environments.length, 0);
        if (waiting < WAITING_MAX) for (const next of ready.splice(0)) next();
        const [first] = queue;
        if (isWorking && first && --first.leftMs <= 0) {
          queue.shift();
          applied.push(...first.environments);
        }
        if (nowMs % Math.ceil(admission.intervalMs) === 0) await admission.look();
        await turn();
      }
    },
  };
}

test('beside a flood of any number of connections the call of another workspace is applied behind few others', async () => {
  for (const connectionCount of [8, 64, 1_000]) {
    const world = openWorld();
    world.other();
    await world.pass(20);
    world.floodFrom(connectionCount);
    await world.pass(300);
    const places: number[] = [];
    for (let call = 0; call < 20; call++) {
      const before = world.applied.length;
      world.other();
      await world.pass(100);
      const place = world.applied.indexOf(OTHER, before);
      expect(place).not.toBe(-1);
      places.push(place - before);
    }
    // 10 operations a millisecond: some 50 to 100 ms of work.
    expect(Math.max(...places)).toBeLessThan(1_000);
    // And the workers were not left without work: 2,300 ms at ten a millisecond are 23,000.
    expect(world.applied.length).toBeGreaterThan(8_000);
  }
});

test('waiting calls are answered in order and all applied, also when their workspace starts and stops flooding', async () => {
  const world = openWorld();
  const answered: number[] = [];
  let sent = 0;
  const send = (sizeBytes: number): void => {
    const number = sent++;
    world.send(FLOOD, 1, sizeBytes, () => void answered.push(number));
  };
  world.other();
  await world.pass(1);
  for (let round = 0; round < 6; round++) {
    for (let call = 0; call < 300; call++) send(call % 7 === 0 ? 200 : 5_000);
    world.other();
    await world.pass(40);
    // Quiet enough for a moment that the next ones need not wait.
    await world.pass(1_500);
    for (let call = 0; call < 3; call++) send(200);
  }
  await world.batcher.drain();
  await world.pass(1_000);
  expect(answered).toEqual(Array.from({ length: sent }, (_, number) => number));
  expect(world.applied.filter((environmentId) => environmentId === FLOOD)).toHaveLength(sent);
});

test('the only workspace of an installation, and the only one that sends, do not wait', async () => {
  for (const isAlone of [true, false]) {
    const world = openWorld({ isAlone });
    if (isAlone) world.other();
    for (let call = 0; call < 1_000; call++) world.flood();
    await world.pass(2);
    expect(world.batcher.lineOperationCount).toBe(0);
    expect(world.deepest).toBeGreaterThanOrEqual(1_000 * BATCH_COUNT);
  }
});

test('a flood does not wait for a workspace that was quiet for ten seconds', async () => {
  const world = openWorld();
  world.other();
  await world.pass(10_002);
  for (let call = 0; call < 100; call++) world.flood();
  await world.pass(2);
  expect(world.batcher.lineOperationCount).toBe(0);
});

test('two that send much take turns', async () => {
  const world = openWorld();
  world.other();
  for (let call = 0; call < 200; call++) world.flood();
  for (let call = 0; call < 200; call++) world.send(OTHER, BATCH_COUNT, BATCH_SIZE_BYTES);
  await world.pass(1_500);
  const from = world.applied.indexOf(OTHER, 1);
  const turns = world.applied.slice(from, from + 6_000);
  expect(turns).toHaveLength(6_000);
  const ofOther = turns.filter((environmentId) => environmentId === OTHER).length;
  expect(ofOther / turns.length).toBeGreaterThan(0.35);
  expect(ofOther / turns.length).toBeLessThan(0.65);
});

test('while workers stand still, calls are answered without waiting; once workers are back, calls wait again', async () => {
  const world = openWorld();
  world.other();
  let answeredCount = 0;
  for (let call = 0; call < 100; call++) world.flood(() => void answeredCount++);
  await world.pass(3_000, false);
  expect(answeredCount).toBe(100);
  // They are back: from then on it is as before.
  await world.pass(2_000);
  world.other();
  for (let call = 0; call < 100; call++) world.flood();
  await world.pass(5);
  expect(world.batcher.lineOperationCount).toBeGreaterThan(0);
});

test('while workers work on batches queued earlier, intake keeps the calls of a flood waiting', async () => {
  const world = openWorld();
  // Alone: 60 batches, 6 s of work.
  for (let call = 0; call < 1_200; call++) world.flood();
  await world.pass(2);
  world.other();
  for (let call = 0; call < 100; call++) world.flood();
  await world.pass(4_000);
  expect(world.batcher.lineOperationCount).toBeGreaterThan(50 * BATCH_COUNT);
});

test('calls do not wait if the broker is silent, or if it stages batches, or if they go to the disk', async () => {
  for (const act of ['leave', 'keepOnDisk', 'stage'] as const) {
    const world = openWorld();
    world.other();
    await world.pass(20);
    world[act]();
    let answeredCount = 0;
    for (let call = 0; call < 100; call++) world.flood(() => void answeredCount++);
    await world.pass(300, false);
    expect(answeredCount).toBe(100);
  }
});

test('a workspace whose calls would wait longer than five seconds is refused; another workspace is not', async () => {
  const world = openWorld({ perMs: 1 });
  world.other();
  await world.pass(20);
  let refusedCount = 0;
  for (let round = 0; round < 50; round++) {
    for (let call = 0; call < 20; call++) if (!world.flood()) refusedCount++;
    expect(world.other()).toBe(true);
    await world.pass(20);
  }
  expect(refusedCount).toBeGreaterThan(0);
  // One a millisecond: 5 s are 5,000.
  expect(world.batcher.lineOperationCount).toBeLessThan(12_000);
});

// A busy sender, at half of the workers' speed, beside one who sends a call now and then.
test.each([500, 1_500, 2_500, 30_000])(
  'intake takes every call while workers are away for %d ms and then catch up',
  async (awayMs) => {
    const world = openWorld();
    let refusedCount = 0;
    const sendFor = async (durationMs: number, isWorking: boolean): Promise<void> => {
      for (let ms = 0; ms < durationMs; ms += 50) {
        if (!world.send(FLOOD, 150, 45_000)) refusedCount++;
        if (ms % 1_000 === 0 && !world.other()) refusedCount++;
        await world.pass(50, isWorking);
      }
    };
    await sendFor(2_000, true);
    await sendFor(awayMs, false);
    await sendFor(awayMs < 5_000 ? 6_000 : 10_000, true);
    expect(refusedCount).toBe(0);
    expect(world.batcher.lineOperationCount).toBeLessThan(1_000);
  },
);

test('a batch beside a flood is taken: it waits behind as much of each line, not behind all of the flood', async () => {
  const world = openWorld({ perMs: 1 });
  world.other();
  await world.pass(20);
  let refusedCount = 0;
  for (let round = 0; round < 100; round++) {
    for (let call = 0; call < 20; call++) if (!world.flood()) refusedCount++;
    if (round % 50 === 49) expect(world.send(OTHER, 100, 120_000)).toBe(true);
    await world.pass(20);
  }
  expect(refusedCount).toBeGreaterThan(0);
});

test('a shard that stands still does not delay the calls of the other shards', async () => {
  let nowMs = 0;
  const stuckShard = 0;
  let queued = new Set<string>();
  const admission: Admission = new Admission({
    isAlone: () => false,
    listQueued: (batches) =>
      Promise.resolve(new Set(batches.map(({ id }) => id).filter((id) => queued.has(id)))),
    readHeads: () => Promise.resolve([String(nowMs)]),
    wake: () => undefined,
    onCapacity: () => undefined,
    monotonicNow: () => nowMs,
    turnNow: () => nowMs,
  });
  let admittedCount = 0;
  for (; nowMs < 12_000; nowMs += 10) {
    // Earlier batches are applied, but for one shard.
    queued = new Set([...queued].filter((id) => id.endsWith(`-${stuckShard}`)));
    await admission.look();
    const count = admission.groupCountMax;
    if (!admission.mayAdmit(count, 0)) continue;
    const batches = [0, 1, 2, 3].map((shard) => ({ shard, id: `${nowMs}-${shard}` }));
    for (const { id } of batches) queued.add(id);
    admission.admitted(batches, count, true);
    admittedCount += count;
  }
  // With all waiting for the one: a window each two seconds, 3,000.
  expect(admittedCount).toBeGreaterThan(50_000);
});

test('a stop answers waiting calls without waiting for their admission', async () => {
  const world = openWorld();
  world.other();
  let answeredCount = 0;
  for (let call = 0; call < 200; call++) world.flood(() => void answeredCount++);
  await turn();
  await turn();
  expect(world.batcher.lineOperationCount).toBeGreaterThan(0);
  await world.batcher.drain();
  expect(answeredCount).toBe(200);
});
