/** Twenty short seeds on one fleet. */
import { expect } from 'vitest';
import { startFleet, type Broker } from '../../src/fleet-under-test.ts';
import { describeFault, runSeed } from '../../src/run-seed.ts';

const SEEDS = Array.from({ length: 20 }, (_, n) => n + 1);
const LENGTH_MS = 800;

export async function expectNoLoss(broker: Broker): Promise<void> {
  const fleet = await startFleet(broker);
  try {
    for (const seed of SEEDS) {
      const { problems, faults } = await runSeed(fleet, seed, LENGTH_MS);
      expect(problems, `seed ${seed}: ${faults.map(describeFault).join('; ')}`).toEqual([]);
    }
  } finally {
    await fleet.close();
  }
}
