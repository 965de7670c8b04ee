/** Short seeds on one fleet. */
import { expect } from 'vitest';
import type { Broker } from '../../src/loss/fault-plan.ts';
import { startFleet } from '../../src/loss/fleet-under-test.ts';
import { describeFault, runSeed } from '../../src/loss/run-seed.ts';

const LENGTH_MS = 800;

export async function expectNoLoss(broker: Broker, seedCount: number): Promise<void> {
  const fleet = await startFleet(broker);
  try {
    for (let seed = 1; seed <= seedCount; seed++) {
      const { problems, faults } = await runSeed(fleet, seed, LENGTH_MS);
      expect(problems, `seed ${seed}: ${faults.map(describeFault).join('; ')}`).toEqual([]);
    }
  } finally {
    await fleet.close();
  }
}
