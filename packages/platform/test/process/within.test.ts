import { stat } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { within } from '../../src/process/within.ts';

test('work that does not end in time fails with its deadline', async () => {
  await expect(within(20, new Promise(() => undefined))).rejects.toThrow('no answer in 20 ms');
});

test('work that fails in time fails with its own error', async () => {
  await expect(within(60_000, Promise.reject(new Error('of its own')))).rejects.toThrow(
    'of its own',
  );
});

// A worker or an intake that stood still for seconds took its broker for silent.
test('an answer that comes while the process stands still is in time, though the deadline passes too', async () => {
  // After a turn's immediates come its timers, then its sockets and files.
  await new Promise((resolve) => setImmediate(resolve));
  const answer = within(100, stat('.'));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
  expect((await answer).isDirectory()).toBe(true);
});
