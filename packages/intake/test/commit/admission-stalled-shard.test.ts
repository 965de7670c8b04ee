/** Workers that were away come back, except the workers of one shard. The clock is the test's. */
import { expect, test } from 'vitest';
import { Admission } from '../../src/commit/admission.ts';

const SHARDS = [0, 1, 2, 3];
const STUCK_SHARD = 0;
const STEP_MS = 10;
const COUNT = 40;

/** Queues of four shards; each that works applies the first commit batch of its queue in each step. */
function openQueues() {
  let nowMs = 0;
  const queues = SHARDS.map((): string[] => []);
  const admission: Admission = new Admission({
    isAlone: () => false,
    listQueued: (batches) =>
      Promise.resolve(
        new Set(batches.filter(({ shard, id }) => queues[shard]?.includes(id)).map(({ id }) => id)),
      ),
    readHeads: () => Promise.resolve(queues.map((queue) => queue[0] ?? '')),
    wake: () => undefined,
    onCapacity: () => undefined,
    monotonicNow: () => nowMs,
    turnNow: () => nowMs,
  });
  return {
    /** More than any window, and not the first: true only while no call waits for the workers. */
    isOpen: () => admission.mayAdmit(1e9, 1),
    /** A sender of one commit batch a shard in every second step, if it is admitted. */
    async pass(durationMs: number, works: (shard: number) => boolean) {
      for (const endMs = nowMs + durationMs; nowMs < endMs; nowMs += STEP_MS) {
        for (const shard of SHARDS) if (works(shard)) queues[shard]?.shift();
        if (nowMs % Math.max(STEP_MS, admission.intervalMs) === 0) await admission.look();
        if (nowMs % (2 * STEP_MS) > 0 || !admission.mayAdmit(COUNT, 0)) continue;
        const batches = SHARDS.map((shard) => ({ shard, id: `${nowMs}-${shard}` }));
        for (const { shard, id } of batches) queues[shard]?.push(id);
        admission.admitted(batches, COUNT, true);
      }
    },
  };
}

test('workers that come back but for one shard catch up without it, and then calls wait for admission again', async () => {
  const queues = openQueues();
  await queues.pass(1_000, () => true);
  expect(queues.isOpen()).toBe(false);
  await queues.pass(5_000, () => false);
  expect(queues.isOpen()).toBe(true);
  await queues.pass(20_000, (shard) => shard !== STUCK_SHARD);
  expect(queues.isOpen()).toBe(false);
});

test('as long as each shard goes on, catching up waits for the one that has most', async () => {
  const queues = openQueues();
  await queues.pass(1_000, () => true);
  await queues.pass(5_000, () => false);
  let step = 0;
  // A commit batch in 0.5 s: slow, and at work.
  await queues.pass(4_000, (shard) => shard !== STUCK_SHARD || step++ % 50 === 0);
  expect(queues.isOpen()).toBe(true);
});
