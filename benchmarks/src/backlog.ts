/**
 * One dead endpoint and its blocked deliveries: 10⁴, 10⁵, 10⁶ (`--sizes` for more). At each size it
 * measures the time of every statement of the lane and of its readers, and the bytes in Redis.
 * Neither may grow with the backlog.
 */
import { parseArgs } from 'node:util';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { withDeliveryWorld, type DeliveryWorld } from './delivery-world.ts';
import { exerciseLane, makeFailingLane, type Meter } from './failing-lane.ts';
import { median, type Report } from './report.ts';

const REPETITIONS = 60;

export async function benchBacklog(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: { sizes: { type: 'string', default: '10000,100000,1000000' } },
  });
  const sizes = values.sizes.split(',').map(Number);
  return withDeliveryWorld(async (world) => {
    const latencyMs: Record<string, number> = {};
    const redisBytes: Record<string, number> = {};
    const curve: Record<string, number>[] = [];
    for (const size of sizes) {
      const lane = await makeFailingLane(world.database, size);
      const times = await timeStatements(world, lane);
      const bytes = await redisBytesOf(world, lane);
      redisBytes[String(size)] = bytes;
      curve.push(times);
      for (const [name, ms] of Object.entries(times)) latencyMs[`${name}, ${size} held back`] = ms;
      const text = Object.entries(times).map(([name, ms]) => `${name} ${ms.toFixed(2)}`);
      console.log(`${String(size).padStart(9)} blocked  ms: ${text.join(', ')}  Redis ${bytes} B`);
    }
    const [first = {}, last = {}] = [curve[0], curve.at(-1)];
    const [firstBytes = NaN, lastBytes = NaN] = [sizes[0], sizes.at(-1)].map(
      (size) => redisBytes[String(size)],
    );
    return {
      bench: 'backlog',
      ratios: {
        ...Object.fromEntries(
          Object.entries(last).map(([name, ms]) => [
            `${name}, most/least held back`,
            ms / (first[name] ?? NaN),
          ]),
        ),
        'Redis bytes, most/least held back': lastBytes / firstBytes,
      },
      rates: {},
      latencyMs,
      details: { redis_bytes: redisBytes },
      versions: world.versions,
    };
  });
}

/** The middle time of each statement, in ms. */
async function timeStatements(
  { database }: DeliveryWorld,
  lane: LaneKey,
): Promise<Record<string, number>> {
  const times: Record<string, number[]> = {};
  const time: Meter = async (name, run) => {
    const startedAtMs = performance.now();
    const result = await run();
    (times[name] ??= []).push(performance.now() - startedAtMs);
    return result;
  };
  for (let repetition = 0; repetition < REPETITIONS; repetition++)
    await exerciseLane(database, lane, String(repetition), time);
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}

/** Bytes of this lane in the queue: its wake-up for the next probe. */
export async function redisBytesOf(world: DeliveryWorld, lane: LaneKey): Promise<number> {
  await world.redis.flushall();
  for (let wakeUp = 0; wakeUp < 100; wakeUp++)
    await world.producer.wakeLaneAt(lane, Date.now() + 3_600_000, Date.now());
  let bytes = 0;
  for (const key of await world.redis.keys('*'))
    bytes += Number(await world.redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0'));
  return bytes;
}
