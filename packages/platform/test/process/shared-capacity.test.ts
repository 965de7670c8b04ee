import { expect, test } from 'vitest';
import { SharedCapacity } from '../../src/process/shared-capacity.ts';

function openCapacity(isAlone = false) {
  const clock = { nowMs: 0 };
  const capacity = new SharedCapacity({
    capacity: 8,
    sharePercent: 25,
    isAlone: () => isAlone,
    monotonicNow: () => clock.nowMs,
  });
  const takeAll = (environmentId: number): number => {
    let count = 0;
    while (capacity.take(environmentId, 1)) count++;
    return count;
  };
  return { capacity, clock, takeAll };
}

test('one workspace leaves the last share; alone it takes everything', () => {
  const { capacity, takeAll } = openCapacity();
  expect(takeAll(1)).toBe(6);
  expect(takeAll(2)).toBe(2);
  expect(capacity.totalSize).toBe(8);
  expect(openCapacity(true).takeAll(1)).toBe(8);
});

// They took all of it, and the only workspace got 503 for each large body.
test('strangers leave the last share to the only workspace of an installation', () => {
  const { takeAll } = openCapacity(true);
  expect(takeAll(0)).toBe(6);
  expect(takeAll(1)).toBe(2);
});

test('released capacity goes to a workspace that was refused and has less', () => {
  const { capacity, takeAll } = openCapacity();
  takeAll(1);
  takeAll(2);
  expect(capacity.take(3, 1)).toBe(false);
  for (let released = 0; released < 4; released++) capacity.release(1, 1);
  // It has its share still, and 3 was refused with 0 bytes.
  expect(capacity.take(1, 1)).toBe(false);
  expect(capacity.take(3, 1)).toBe(true);
  expect(capacity.totalSize).toBe(5);
});

test('a refused workspace that does not come again stops blocking others after a while', () => {
  const { capacity, clock, takeAll } = openCapacity();
  takeAll(1);
  takeAll(2);
  expect(capacity.take(3, 1)).toBe(false);
  for (let released = 0; released < 4; released++) capacity.release(1, 1);
  capacity.release(2, 2);
  expect(capacity.take(1, 1)).toBe(false);
  clock.nowMs += 15_001;
  expect(capacity.take(1, 1)).toBe(true);
});

test('a release is counted once', () => {
  const { capacity } = openCapacity();
  expect(capacity.take(1, 2)).toBe(true);
  expect(capacity.take(2, 1)).toBe(true);
  expect(capacity.heldBy(1)).toBe(2);
  capacity.release(1, 2);
  expect(capacity.totalSize).toBe(1);
  expect(capacity.heldBy(1)).toBe(0);
});

test('a workspace that released all of it and takes some again has its count beside another one', () => {
  const { capacity } = openCapacity();
  expect(capacity.take(1, 2)).toBe(true);
  capacity.release(1, 2);
  expect(capacity.take(1, 1)).toBe(true);
  expect(capacity.take(2, 1)).toBe(true);
  expect(capacity.heldBy(1)).toBe(1);
  expect(capacity.totalSize).toBe(2);
});
