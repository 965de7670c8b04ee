/**
 * Cost of a lone event: counters of the stores, CPU of each process, and the time of each stage. The counters do not
 * depend on other work on the machine, so they compare two commits if latencies cannot.
 *
 * It runs twice: without traces for the counters, then with them for the stages, since a trace costs statements of its
 * own. Each event is a report of a message, as in `ordinary.ts`.
 */
import { parseArgs } from 'node:util';
import {
  startCollectorUnderTest,
  type CollectedSpan,
  type CollectorUnderTest,
} from '@sluice/platform/testing/collector-under-test';
import { sql } from 'kysely';
import { endpointOf, replaceWebhooks } from './delivery-world.ts';
import {
  RECEIVER_PORT,
  startOurs,
  type Contender,
  type Installation,
} from './ordinary-contenders.ts';
import { PacedDeliveries, type Paced } from './paced-deliveries.ts';
import {
  COUNTING_SETTINGS,
  familyCpuSeconds,
  findPostmaster,
  readCalls,
  readCounters,
  type Counters,
} from './process-costs.ts';
import { median, type Report } from './report.ts';
import { withWorld, type World } from './world.ts';

const PEOPLE_COUNT = 1_000;
const WARM_UP_RATE = 50;
const WARM_UP_SECONDS = 3;
/** Of those calls there is a line each. */
const SHOWN_FROM_CALLS = 0.05;
/** The SDK sends spans each second. */
const SPANS_WITHIN_MS = 5_000;

interface Lone {
  readonly rate: number;
  readonly perEvent: Counters;
  readonly cpuMsPerEvent: Readonly<Record<string, number>>;
  readonly callsPerEvent: Readonly<Record<string, number>>;
  readonly p50Ms: number;
}

export async function benchLone(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rates: { type: 'string', default: '10,50' },
      seconds: { type: 'string', default: '10' },
      shards: { type: 'string', default: '16' },
      broker: { type: 'string', default: 'redis' },
      calls: { type: 'boolean', default: false },
      'no-stages': { type: 'boolean', default: false },
    },
  });
  if (values.broker !== 'redis' && values.broker !== 'postgres')
    throw new Error('--broker is redis or postgres');
  const installation: Installation = {
    shardCount: Number(values.shards),
    broker: values.broker,
    isEmbedded: false,
  };
  const [rates, seconds] = [values.rates.split(',').map(Number), Number(values.seconds)];
  return withWorld(
    'full',
    async (world) => {
      await sql`create extension pg_stat_statements`.execute(world.database);
      const deliveries = await PacedDeliveries.listen(RECEIVER_PORT, PEOPLE_COUNT);
      world.onClose(() => deliveries.close());
      await replaceWebhooks(world.database, [endpointOf(0, RECEIVER_PORT)]);
      const counted = await startOurs(world, installation);
      await deliveries.send(counted.target, WARM_UP_RATE, WARM_UP_SECONDS, 1);
      const lone: Lone[] = [];
      for (const rate of rates)
        lone.push(await count(world, counted, rate, seconds, deliveries, values.calls));
      await counted.stop();
      const stages = values['no-stages']
        ? {}
        : await timeStages(world, installation, deliveries, rates, seconds);
      return {
        bench: 'lone',
        ratios: {},
        rates: {},
        latencyMs: Object.fromEntries(lone.map(({ rate, p50Ms }) => [`p50 ${rate}/s`, p50Ms])),
        details: { ...installation, seconds, lone, stages_ms: stages },
        versions: world.versions,
      };
    },
    { postgresSettings: COUNTING_SETTINGS },
  );
}

async function count(
  world: World,
  { target, processes }: Contender,
  rate: number,
  seconds: number,
  deliveries: PacedDeliveries,
  showsCalls: boolean,
): Promise<Lone> {
  const { database, redis, redisServer } = world;
  const families = [
    ...processes,
    { name: 'postgres', pids: [await findPostmaster(database)] },
    { name: 'redis', pids: [redisServer.pid] },
  ];
  const readCpu = () => Promise.all(families.map(({ pids }) => familyCpuSeconds(pids)));
  const callsBefore = await readCalls(database, redis);
  const [counters, cpu] = [await readCounters(database, redis), await readCpu()];
  const { latenciesMs, eventCount } = await deliveries.send(target, rate, seconds, 1);
  const [countersAfter, cpuAfter] = [await readCounters(database, redis), await readCpu()];
  const perEvent = Object.fromEntries(
    Object.entries(countersAfter).map(([name, after]) => [
      name,
      (after - counters[name as keyof Counters]) / eventCount,
    ]),
  ) as unknown as Counters;
  const cpuMsPerEvent = Object.fromEntries(
    families.map(({ name }, place) => [
      name,
      (((cpuAfter[place] as number) - (cpu[place] as number)) * 1_000) / eventCount,
    ]),
  );
  const callsPerEvent = Object.fromEntries(
    [...(await readCalls(database, redis))]
      .map(([call, after]) => [call, (after - (callsBefore.get(call) ?? 0)) / eventCount] as const)
      .filter(([, calls]) => calls >= SHOWN_FROM_CALLS)
      .toSorted(([, one], [, other]) => other - one),
  );
  const p50Ms = median(latenciesMs);
  console.log(`${rate}/s  p50 ${p50Ms.toFixed(1)} ms, an event: ${textOf({ ...perEvent })}`);
  console.log(`      CPU ms an event: ${textOf(cpuMsPerEvent)}`);
  if (showsCalls)
    for (const [call, calls] of Object.entries(callsPerEvent))
      console.log(`      ${calls.toFixed(2)} ${call}`);
  return { rate, perEvent, cpuMsPerEvent, callsPerEvent, p50Ms };
}

const textOf = (values: Readonly<Record<string, number>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${value.toFixed(2)} ${name}`)
    .join(', ');

/** By rate, the middle time of each stage of an event's way. */
async function timeStages(
  world: World,
  installation: Installation,
  deliveries: PacedDeliveries,
  rates: readonly number[],
  seconds: number,
): Promise<Record<string, Record<string, number>>> {
  const collector = await startCollectorUnderTest();
  world.onClose(() => collector.close());
  const traced = await startOurs(world, installation, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  await deliveries.send(traced.target, WARM_UP_RATE, WARM_UP_SECONDS, 1);
  const stages: Record<string, Record<string, number>> = {};
  for (const rate of rates) {
    const paced = await deliveries.send(traced.target, rate, seconds, 1);
    const found = await stagesOf(collector, paced);
    stages[`${rate}/s`] = found;
    console.log(`${rate}/s  stages, ms, traced: ${textOf(found)}`);
  }
  await traced.stop();
  return stages;
}

async function stagesOf(
  { spans }: CollectorUnderTest,
  { times }: Paced,
): Promise<Record<string, number>> {
  const first = Math.min(...times.map(({ sentAtMs }) => sentAtMs));
  const posts = (): CollectedSpan[] =>
    spans.filter(({ name, startedAtMs }) => name === 'POST {endpoint}' && startedAtMs >= first);
  const deadlineMs = performance.now() + SPANS_WITHIN_MS;
  while (posts().length < times.length && performance.now() < deadlineMs)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const ways = posts().flatMap((post) => {
    const processing = byId.get(post.parentSpanId);
    const adding = processing && byId.get(processing.parentSpanId);
    const call = adding && (byId.get(adding.parentSpanId) ?? adding);
    return processing && adding && call ? [{ post, processing, adding, call }] : [];
  });
  return {
    'intake until it adds': median(
      ways.map(({ call, adding }) => adding.startedAtMs - call.startedAtMs),
    ),
    'into the broker': median(ways.map(({ adding }) => adding.endedAtMs - adding.startedAtMs)),
    'added until a worker begins': median(
      ways.map(({ adding, processing }) => processing.startedAtMs - adding.endedAtMs),
    ),
    'the transaction': median(
      ways.map(({ processing }) => processing.endedAtMs - processing.startedAtMs),
    ),
    'until the request begins': median(
      ways.map(({ processing, post }) => post.startedAtMs - processing.endedAtMs),
    ),
    'the request': median(ways.map(({ post }) => post.endedAtMs - post.startedAtMs)),
    'from sent until arrived': median(
      times.map(({ sentAtMs, arrivedAtMs }) => arrivedAtMs - sentAtMs),
    ),
  };
}
