/**
 * Ordinary rates: the time from before a call until a receiver has its delivery, and the cost of an event. The comparator
 * is a floor that only keeps the same promise (`ordinary-floor-server.ts`). Group commit pays if there is a group; here
 * most events are alone.
 *
 * The floor is measured before ours is started and after it has ended, so neither pays for the other's idling; its figure
 * is the mean of both. CPU is the sum of all processes, the stores' too, but sender and receiver. Each event is a report
 * of a message (`POST /api/v1/metrics`).
 */
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import type { Bars } from './bars.ts';
import { endpointOf, replaceWebhooks } from './delivery-world.ts';
import {
  RECEIVER_PORT,
  startFloor,
  startOurs,
  type Contender,
  type Installation,
} from './ordinary-contenders.ts';
import { PacedDeliveries } from './paced-deliveries.ts';
import {
  COUNTING_SETTINGS,
  familyCpuSeconds,
  familyMemoryBytes,
  findPostmaster,
  readCounters,
  type Counters,
} from './process-costs.ts';
import type { Report } from './report.ts';
import { withWorld, type World } from './world.ts';

const WARM_UP_SECONDS = 3;

export const ORDINARY_BARS: Bars = {
  'p50 20/s ours/floor': { atMost: 2 },
  'p50 150/s ours/floor': { atMost: 2 },
  'p50 500/s ours/floor': { atMost: 3 },
  'p99 20/s ours/floor': { atMost: 2.5 },
  'p99 150/s ours/floor': { atMost: 2.5 },
  'p99 500/s ours/floor': { atMost: 2.5 },
  'cpu 20/s ours/floor': { atMost: 2 },
  'cpu 150/s ours/floor': { atMost: 2 },
  'cpu 500/s ours/floor': { atMost: 1.5 },
};

interface Measured {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all processes but sender and receiver. */
  readonly cpuMsPerEvent: number;
  readonly perEvent: Counters;
  /** PSS, without the stores. */
  readonly memoryBytes: number;
}

interface Shape extends Installation {
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly webhookCount: number;
  readonly peopleCount: number;
}

export async function benchOrdinary(arguments_: string[]): Promise<Report> {
  const shape = shapeOf(arguments_);
  return withWorld(
    'full',
    async (world) => {
      await sql`create extension pg_stat_statements`.execute(world.database);
      const deliveries = await PacedDeliveries.listen(RECEIVER_PORT, shape.peopleCount);
      world.onClose(() => deliveries.close());
      const endpoints = Array.from({ length: shape.webhookCount }, (_, place) =>
        endpointOf(place, RECEIVER_PORT),
      );
      await replaceWebhooks(world.database, endpoints);
      const measureWhole = async (label: string, start: () => Promise<Contender>) => {
        const contender = await start();
        await deliveries.send(contender.target, 50, WARM_UP_SECONDS, shape.webhookCount);
        const measured: Measured[] = [];
        for (const rate of shape.rates) {
          const found = await measure(world, deliveries, contender, rate, shape);
          measured.push(found);
          console.log(
            `${label.padEnd(6)} ${String(rate).padStart(4)}/s  p50 ${found.p50Ms.toFixed(1)} p99 ${found.p99Ms.toFixed(1)} ms, CPU ${found.cpuMsPerEvent.toFixed(2)} ms an event, ${Math.round(found.memoryBytes / 2 ** 20)} MB; ` +
              Object.entries(found.perEvent)
                .map(([name, count]) => `${(count as number).toFixed(1)} ${name}`)
                .join(', '),
          );
        }
        await contender.stop();
        return measured;
      };
      const before = await measureWhole('floor', () => startFloor(world, endpoints));
      const ours = await measureWhole('ours', () => startOurs(world, shape));
      const after = await measureWhole('floor', () => startFloor(world, endpoints));
      return reportOf(shape, ours, before, after, world.versions);
    },
    { postgresSettings: COUNTING_SETTINGS },
  );
}

function shapeOf(arguments_: string[]): Shape {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rates: { type: 'string', default: '5,20,150,500' },
      seconds: { type: 'string', default: '20' },
      webhooks: { type: 'string', default: '1' },
      shards: { type: 'string', default: '4' },
      people: { type: 'string', default: '1000' },
      broker: { type: 'string', default: 'redis' },
      embedded: { type: 'boolean', default: false },
    },
  });
  if (values.broker !== 'redis' && values.broker !== 'postgres')
    throw new Error('--broker is redis or postgres');
  return {
    rates: values.rates.split(',').map(Number),
    seconds: Number(values.seconds),
    webhookCount: Number(values.webhooks),
    shardCount: Number(values.shards),
    peopleCount: Number(values.people),
    broker: values.broker,
    isEmbedded: values.embedded,
  };
}

async function measure(
  world: World,
  deliveries: PacedDeliveries,
  { target, processes }: Contender,
  rate: number,
  { seconds, webhookCount }: Shape,
): Promise<Measured> {
  const { database, redis, redisServer } = world;
  const pids = processes.flatMap((each) => each.pids);
  const all = [...pids, await findPostmaster(database), redisServer.pid];
  const [counted, cpu] = [await readCounters(database, redis), await familyCpuSeconds(all)];
  const { latenciesMs, eventCount } = await deliveries.send(target, rate, seconds, webhookCount);
  const [countedAfter, cpuAfter] = [
    await readCounters(database, redis),
    await familyCpuSeconds(all),
  ];
  const sorted = latenciesMs.toSorted((one, other) => one - other);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? NaN;
  const perEvent = Object.fromEntries(
    Object.entries(countedAfter).map(([name, count]) => [
      name,
      (count - counted[name as keyof Counters]) / eventCount,
    ]),
  ) as unknown as Counters;
  return {
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMsPerEvent: ((cpuAfter - cpu) * 1_000) / eventCount,
    perEvent,
    memoryBytes: await familyMemoryBytes(pids),
  };
}

function reportOf(
  shape: Shape,
  ours: readonly Measured[],
  before: readonly Measured[],
  after: readonly Measured[],
  versions: World['versions'],
): Report {
  const ratios: Record<string, number> = {};
  const latencyMs: Record<string, number> = {};
  for (const [place, rate] of shape.rates.entries()) {
    const [own, one, other] = [ours[place], before[place], after[place]];
    if (!own || !one || !other) continue;
    const toFloor = (of: (measured: Measured) => number) => of(own) / ((of(one) + of(other)) / 2);
    ratios[`p50 ${rate}/s ours/floor`] = toFloor(({ p50Ms }) => p50Ms);
    ratios[`p99 ${rate}/s ours/floor`] = toFloor(({ p99Ms }) => p99Ms);
    ratios[`cpu ${rate}/s ours/floor`] = toFloor(({ cpuMsPerEvent }) => cpuMsPerEvent);
    latencyMs[`p50 ${rate}/s`] = own.p50Ms;
    latencyMs[`p99 ${rate}/s`] = own.p99Ms;
    latencyMs[`floor p50 ${rate}/s`] = (one.p50Ms + other.p50Ms) / 2;
    latencyMs[`floor p99 ${rate}/s`] = (one.p99Ms + other.p99Ms) / 2;
  }
  return {
    bench: 'ordinary',
    ratios,
    rates: {},
    latencyMs,
    details: { ...shape, ours, floor_before: before, floor_after: after },
    versions,
  };
}
