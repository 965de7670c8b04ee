import { expect, test, vi } from 'vitest';
import { afterRunning } from '../../src/connection/running-time.ts';

/** No timer, socket or file of this process has its turn. */
const standStill = (durationMs: number) =>
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);

test('a deadline ends, and not before its time', async () => {
  const beganMs = performance.now();
  await new Promise<void>((resolve) => afterRunning(200, resolve));
  // A timer counts whole milliseconds and may be that much early.
  expect(performance.now() - beganMs).toBeGreaterThan(180);
});

// A plain timer ends in the turn after the stall, before the sockets are read.
test('a stall that is longer than a deadline leaves most of it', async () => {
  let isOver = false;
  const cancel = afterRunning(1_000, () => (isOver = true));
  standStill(2_000);
  // In turns, not in milliseconds: the machine may be busy.
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(isOver).toBe(false);
  }
  await vi.waitFor(() => expect(isOver).toBe(true), { timeout: 30_000, interval: 20 });
  cancel();
});

test('a deadline that was cancelled never ends', async () => {
  let isOver = false;
  const cancel = afterRunning(20, () => (isOver = true));
  cancel();
  await new Promise<void>((resolve) => afterRunning(200, resolve));
  expect(isOver).toBe(false);
});
