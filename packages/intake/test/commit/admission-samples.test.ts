/** Samples of the time until calls of a flush are applied. */
import { expect, test } from 'vitest';
import { Admission } from '../../src/commit/admission.ts';
import { createBatcher, event } from '../support/batcher-under-test.ts';

async function openSamples(isAlone: boolean) {
  const clock = { nowMs: 0 };
  const asked: number[] = [];
  const admission = new Admission({
    isAlone: () => isAlone,
    listQueued: (batches) => {
      asked.push(batches.length);
      return Promise.resolve(new Set<string>());
    },
    readHeads: () => Promise.resolve([]),
    wake: () => undefined,
    onCapacity: () => undefined,
    monotonicNow: () => clock.nowMs,
    turnNow: () => clock.nowMs,
  });
  const batcher = createBatcher({ admission, shardCount: 1, commit: async () => 'broker' });
  const flushAt = async (nowMs: number) => {
    clock.nowMs = nowMs;
    batcher.add([event('a', String(nowMs))], 10, () => undefined);
    await batcher.drain();
  };
  return { admission, asked, flushAt };
}

test('one flush a second is watched, once the flush before is applied', async () => {
  const { admission, asked, flushAt } = await openSamples(false);
  await flushAt(0);
  await flushAt(5_000);
  // Of the first flush alone, since it was not applied yet.
  await admission.look();
  expect(asked).toEqual([1]);
  await flushAt(5_001);
  await flushAt(5_002);
  await admission.look();
  expect(asked).toEqual([1, 1]);
  await flushAt(6_000);
  await admission.look();
  expect(asked).toEqual([1, 1]);
  await flushAt(6_001);
  await admission.look();
  expect(asked).toEqual([1, 1, 1]);
});

test('no flush is watched while no other workspace could want any', async () => {
  const { admission, asked, flushAt } = await openSamples(true);
  await flushAt(0);
  await admission.look();
  expect(asked).toEqual([]);
});
