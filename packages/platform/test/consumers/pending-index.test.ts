/** Batches of other shards that come first, by the broker's log. */
import { describe, expect, test } from 'vitest';
import { PendingIndex, type PendingBatch } from '../../src/consumers/pending-index.ts';
import type { LoggedBatch, PendingLog } from '../../src/queue/pending-log.ts';
import { batch, memoryLog } from '../support/memory-log.ts';

let nowMs = 0;
const indexOf = (log: PendingLog): PendingIndex =>
  new PendingIndex(log, { now: () => nowMs, answeredMs: () => 0 });

async function logged(index: PendingIndex, id: string): Promise<PendingBatch> {
  const found = await index.find(id);
  if (!found) throw new Error(`${id} is not in the log`);
  return found;
}

async function earlierOf(index: PendingIndex, id: string, keys: number[]): Promise<string[]> {
  return [...index.earlier([await logged(index, id)], keys)].map((each) => each.id);
}

describe('a batch comes after', () => {
  test('a batch of another shard that was added before it and names the same key', async () => {
    const index = indexOf(memoryLog([batch(1, 0, [7]), batch(2, 1, [7])]));
    expect(await earlierOf(index, 'b2', [7])).toEqual(['b1']);
  });

  test('no batch that was added later, or is about other keys', async () => {
    const log = memoryLog([batch(2, 0, [8]), batch(3, 1, [7]), batch(4, 0, [7])]);
    expect(await earlierOf(indexOf(log), 'b3', [7])).toEqual([]);
  });

  test('as one of several, all batches that were added before the last of them', async () => {
    const log = memoryLog([
      batch(1, 0, [7]),
      batch(2, 1, [8]),
      batch(3, 2, [7]),
      batch(4, 1, [7, 8]),
      batch(5, 3, [8], 'f'),
      batch(6, 0, [7, 8]),
      batch(7, 2, [8], 'f'),
    ]);
    const index = indexOf(log);
    const several = [await logged(index, 'b2'), await logged(index, 'b4')];
    const ids = (found: ReadonlySet<PendingBatch>) => [...found].map(({ id }) => id).toSorted();
    expect(ids(index.earlier(several, [7, 8]))).toEqual(['b1', 'b3']);
    expect(ids(index.earlier([await logged(index, 'b5')], [8]))).toEqual(['b2', 'b4', 'b7']);
    expect(ids(index.earlier(several, [7, 8], new Set([7])))).toEqual([]);
  });

  test('the other parts of its own flush, in any order of arrival', async () => {
    const log = memoryLog([batch(1, 0, [7], 'f'), batch(2, 1, [7], 'f'), batch(3, 2, [7])]);
    const index = indexOf(log);
    expect(await earlierOf(index, 'b1', [7])).toEqual(['b2']);
    expect(await earlierOf(index, 'b2', [7])).toEqual(['b1']);
  });
});

test('the index distinguishes earlier batches with an order from earlier batches without an order', async () => {
  const free = (place: number, flushId?: string): LoggedBatch => ({
    ...batch(place, place, [7], flushId),
    isOrderFree: true,
  });
  const entries = [
    free(1),
    free(2),
    batch(3, 3, [7]),
    free(4),
    free(5, 'f'),
    batch(6, 6, [8], 'f'),
  ];
  const index = indexOf(memoryLog(entries));
  const known = async (id: string): Promise<boolean[]> => {
    const found = await logged(index, id);
    return [index.hasEarlier(found), index.hasEarlierOrdered(found)];
  };
  expect(await known('b1')).toEqual([false, false]);
  expect(await known('b2')).toEqual([true, false]);
  expect(await known('b3')).toEqual([true, false]);
  expect(await known('b4')).toEqual([true, true]);
  await index.remove([await logged(index, 'b3')]);
  expect(await known('b4')).toEqual([true, false]);
  // Another part of its call, though behind it.
  expect(await known('b5')).toEqual([true, true]);
  expect(await earlierOf(index, 'b4', [7])).toEqual(['b1', 'b2']);
});

test('a flush is known whole, however many parts of it one read gives', async () => {
  const parts = Array.from({ length: 1_100 }, (_, place) => batch(place + 1, place, [7], 'f'));
  const index = indexOf(memoryLog(parts));
  expect(await earlierOf(index, 'b1', [7])).toHaveLength(1_099);
});

describe('a batch that is applied', () => {
  test('is no longer in the way, and leaves the log', async () => {
    const log = memoryLog([batch(1, 0, [7]), batch(2, 1, [7])]);
    const index = indexOf(log);
    await index.find('b2');
    await index.remove([await logged(index, 'b1')]);
    expect(await earlierOf(index, 'b2', [7])).toEqual([]);
    expect(log.removed).toEqual(['1-0']);
  });

  test('leaves the log also if another shard of the process found it applied before', async () => {
    const log = memoryLog([batch(1, 0, [7])]);
    const index = indexOf(log);
    const found = await logged(index, 'b1');
    index.forget([found]);
    await index.remove([found]);
    expect(log.removed).toEqual(['1-0']);
  });

  test('by another process is forgotten once all before it have left the log', async () => {
    const added = [batch(1, 0, [7]), batch(2, 1, [7])];
    const log = memoryLog(added);
    const index = indexOf(log);
    await index.find('b2');
    log.removed.push('1-0');
    added.push(batch(3, 1, [7]));
    expect(await earlierOf(index, 'b3', [7])).toEqual(['b2']);
    expect(index.size).toBe(2);
  });
});

test('an applied batch is forgotten at once, and leaves a log that refused it with the next one', async () => {
  const log = memoryLog([batch(1, 0, [7]), batch(2, 1, [7]), batch(3, 1, [7])]);
  let isAway = true;
  const refusing = {
    ...log,
    remove: (ids: readonly string[]) =>
      isAway ? Promise.reject(new Error('away')) : log.remove(ids),
  };
  const index = indexOf(refusing);
  await index.find('b3');
  index.removeApplied([await logged(index, 'b1')]);
  expect(await earlierOf(index, 'b2', [7])).toEqual([]);
  isAway = false;
  index.removeApplied([await logged(index, 'b2')]);
  expect(log.removed).toEqual(['1-0', '2-0']);
});

test('a read ahead saves the read of the batch, and its failure waits for the next read', async () => {
  const log = memoryLog([batch(1, 0, [7])]);
  let readCount = 0;
  let isAway = false;
  const counted: PendingLog = {
    ...log,
    read(...given) {
      readCount++;
      return isAway ? Promise.reject(new Error('away')) : log.read(...given);
    },
  };
  const index = indexOf(counted);
  index.readAhead();
  expect(await index.find('b1')).toBeDefined();
  expect(readCount).toBe(1);
  isAway = true;
  index.readAhead();
  await expect(index.find('b2')).rejects.toThrow('away');
});

test('a batch that was added twice keeps the place of its first copy, and both copies leave the log', async () => {
  const log = memoryLog([batch(1, 0, [7]), batch(2, 1, [7]), { ...batch(3, 0, [7]), id: 'b1' }]);
  const index = indexOf(log);
  expect(await earlierOf(index, 'b2', [7])).toEqual(['b1']);
  await index.find('none');
  await index.remove([await logged(index, 'b1')]);
  expect(log.removed).toEqual(['1-0', '3-0']);
});

test('the oldest are known by when they were read', async () => {
  const index = indexOf(memoryLog([batch(1, 0, [7]), batch(2, 1, [7])]));
  nowMs = 1_000;
  await index.find('b2');
  expect(index.readBefore(1_000, 10)).toEqual([]);
  expect(index.readBefore(1_001, 1).map(({ id }) => id)).toEqual(['b1']);
});

test('a batch that no log has is not found, and reading ends', async () => {
  expect(await indexOf(memoryLog([])).find('b1')).toBeUndefined();
});
