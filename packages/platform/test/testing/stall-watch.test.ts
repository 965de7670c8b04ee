/** A test tries again after a measured standstill, three times in all. */
import { setTimeout as sleep } from 'node:timers/promises';
import { repeatIfStalled } from '@sluice/platform/testing/stall-watch';
import { expect, test, vi } from 'vitest';

const STALL_MS = 100;
const failing = (during: () => unknown) =>
  vi.fn<() => Promise<never>>(async () => {
    await during();
    throw new Error('failed');
  });
const block = () => {
  const untilMs = performance.now() + STALL_MS;
  while (performance.now() < untilMs);
};

test('a failure without a standstill is not tried again', async () => {
  const attempt = failing(() => sleep(STALL_MS));
  await expect(repeatIfStalled(60_000, attempt)).rejects.toThrow('failed');
  expect(attempt).toHaveBeenCalledTimes(1);
});

test('a failure after a standstill of this process, or of a server that is asked, is tried three times', async () => {
  const ofProcess = failing(block);
  await expect(repeatIfStalled(STALL_MS, ofProcess)).rejects.toThrow('failed');
  expect(ofProcess).toHaveBeenCalledTimes(3);
  const ofServer = failing(() => sleep(2 * STALL_MS));
  const ask = () => sleep(2 * STALL_MS);
  await expect(repeatIfStalled(STALL_MS, ofServer, ask)).rejects.toThrow('failed');
  expect(ofServer).toHaveBeenCalledTimes(3);
});

test('a try that succeeds is the last one', async () => {
  const attempt = vi.fn<(tries: number) => Promise<number>>(async (tries) => {
    block();
    if (tries === 1) throw new Error('failed');
    return tries;
  });
  expect(await repeatIfStalled(STALL_MS, attempt)).toBe(2);
  expect(attempt).toHaveBeenCalledTimes(2);
});
