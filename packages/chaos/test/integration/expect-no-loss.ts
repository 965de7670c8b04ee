/** Short seeds on one fleet. */
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { expect } from 'vitest';
import type { Broker } from '../../src/loss/fault-plan.ts';
import { startDeliveryReceiver } from '../../src/loss/delivery-receiver.ts';
import { SMALL_FLEET, startFleet } from '../../src/loss/fleet-under-test.ts';
import { describeFault, runSeed } from '../../src/loss/run-seed.ts';

const LENGTH_MS = 800;

export interface SeedsOptions {
  readonly seeds: readonly number[];
  /** To an endpoint that refuses and hangs up at times. */
  readonly delivers?: boolean;
}

export async function expectNoLoss(
  broker: Broker,
  { seeds, delivers = false }: SeedsOptions,
): Promise<void> {
  const receiver = delivers ? await startDeliveryReceiver(seededRandom(seeds[0] ?? 0)) : undefined;
  const shape = { ...SMALL_FLEET, ...(receiver && { deliversTo: receiver.url }) };
  const fleet = await startFleet(broker, shape);
  try {
    for (const seed of seeds) {
      const { problems, faults } = await runSeed(fleet, seed, LENGTH_MS, 'mixed', receiver);
      expect(problems, `seed ${seed}: ${faults.map(describeFault).join('; ')}`).toEqual([]);
    }
  } finally {
    await fleet.close();
    receiver?.close();
  }
}
