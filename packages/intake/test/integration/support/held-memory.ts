/** Memory, capacity and CPU time that an intake in this process holds. */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, vi } from 'vitest';
import type { IntakeUnderTest } from './intake-under-test.ts';

export const MEBIBYTE = 1_048_576;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Bytes that are held, after a collection; the test keeps the operations that intake passed on, and they are not
 * counted.
 */
export function heldSizeBytes(intake: IntakeUnderTest): number {
  (intake.operations as unknown[]).length = 0;
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/**
 * Of the event loop, and of a core: the least of three windows. Continuing work is in each of them. The time for which
 * another process has the core counts as used by the event loop, and the collector's threads use a core without it.
 */
export async function utilisation(): Promise<number> {
  let least = 1;
  for (let window = 0; window < 3; window++) {
    const before = performance.eventLoopUtilization();
    const cpuBefore = process.cpuUsage();
    const startedAtMs = performance.now();
    await sleep(200);
    const { user, system } = process.cpuUsage(cpuBefore);
    const ofACore = (user + system) / 1_000 / (performance.now() - startedAtMs);
    least = Math.min(least, ofACore, performance.eventLoopUtilization(before).utilization);
  }
  return least;
}

export const NOTHING = {
  collectedSizeBytes: 0,
  unreadSizeBytes: 0,
  streamSizeBytes: 0,
  pendingSizeBytes: 0,
  places: 0,
  inFlight: 0,
};

/** Bytes go with their sockets, which end in a later turn of a busy machine; blocks, when the collector has swept them. */
export const isReleased = (intake: IntakeUnderTest, before: number) =>
  vi.waitFor(() => expect(heldSizeBytes(intake) - before).toBeLessThan(16 * MEBIBYTE), {
    timeout: 20_000,
    interval: 100,
  });

/** No shared capacity is held: a small rest of each cut would end in 503 for everybody. */
export const isIdle = (intake: IntakeUnderTest) =>
  vi.waitFor(
    async () => {
      expect(await utilisation()).toBeLessThan(0.05);
      expect(intake.held()).toEqual(NOTHING);
    },
    { timeout: 60_000 },
  );
