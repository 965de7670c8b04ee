/**
 * Calls take effect in the order in which they were acknowledged.
 *
 * The clocks of two intakes are two minutes apart, or the broker was away and both intakes kept calls on their disks.
 * Senders change between the intakes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type Fleet } from '../../src/loss/fleet-under-test.ts';
import { sequenceOf } from '../../src/order/generate-calls.ts';
import { IntakeOutages } from '../../src/order/intake-outages.ts';
import { orderFleetOf } from '../../src/order/order-oracle.ts';
import { runSequences, type RunOptions } from '../../src/order/run-sequences.ts';

const OUTAGE_MS = 600;
/** In turn. In the long one all that was kept on disks gets into the queues, which an import waits for. */
const BETWEEN_OUTAGES_MS = [300, 300, 2_500] as const;

/** On Postgres fewer: a call costs the broker there five times as much. */
const SEQUENCES = { redis: 6, postgres: 4 } as const;
/** `npm run chaos -- --oracle order --outages short` runs more of these alone. */
const SEQUENCES_OF_ONE_INTAKE = { redis: 4, postgres: 3 } as const;

describe.each(['redis', 'postgres'] as const)('on %s', { timeout: 900_000 }, (broker) => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet(broker, {
      ...orderFleetOf(true),
      intakeClocksAheadMs: [60_000, -60_000],
    });
  }, 240_000);
  afterAll(() => fleet?.close());

  async function differences(
    firstSeed: number,
    options: RunOptions,
    count: number = SEQUENCES[broker],
  ): Promise<string[]> {
    const runs = Array.from({ length: count }, (_, index) => ({
      seed: firstSeed + index,
      run: 0,
      calls: sequenceOf(firstSeed + index),
    }));
    const judged = await runSequences(fleet, runs, options);
    return judged.flatMap(({ seed, differences: all }) =>
      all.map(({ kind, words }) => `seed ${seed}: ${kind}: ${words}`),
    );
  }

  test('wrong clocks do not change the result', async () => {
    expect(await differences(2_000, {})).toEqual([]);
  });

  test('calls on the disk of one intake take effect in the order of the answers of both', async () => {
    const outages = new IntakeOutages(fleet, 'short', 4_000);
    expect(await differences(4_000, outages, SEQUENCES_OF_ONE_INTAKE[broker])).toEqual([]);
    expect(outages.count).toBeGreaterThan(0);
  });

  test('batches on the disks of both intakes take effect in the order of their answers, and before later batches', async () => {
    let outageCount = 0;
    const whileSending = async (sent: Promise<unknown>): Promise<void> => {
      let isSending = true;
      const end = () => (isSending = false);
      void sent.then(end, end);
      while (isSending) {
        const target = broker;
        await fleet.suffer({
          of: 'process',
          kind: 'kill',
          target,
          atMs: 0,
          durationMs: OUTAGE_MS,
        });
        await sleep(BETWEEN_OUTAGES_MS[outageCount++ % BETWEEN_OUTAGES_MS.length]);
      }
    };
    expect(await differences(3_000, { whileSending })).toEqual([]);
    expect(outageCount).toBeGreaterThan(0);
  });
});
