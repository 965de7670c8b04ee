/**
 * Batches of 100 events through a real intake. Its Redis has `appendfsync always`. They are compared
 * with the same events one a request, and with a bare `JSON.parse` of the same bytes.
 *
 * The figure is intake's CPU time per event, not the rate: load generator and Redis share the machine's
 * cores and need less of them when requests are larger, so the rate would flatter batches.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Redis } from 'ioredis';
import type { ChildServer } from './child-server.ts';
import { loadWithWrk, requireWrk } from './load.ts';
import { countQueued, emptyQueues } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const SHARD_COUNT = 4;
const BATCH_SIZE = 100;
const PORT = 18_085;
const CONTENDERS = ['one', 'strict', 'permissive'] as const;
type Contender = (typeof CONTENDERS)[number];

/** The event of the intake benchmark, of 64 people. */
const call = (person: number) => ({
  userId: `user-${person}`,
  event: 'Order Placed',
  properties: { plan: 'pro', amount: 42.5, currency: 'EUR', items: ['sku-1', 'sku-2'] },
  timestamp: '2026-11-20T10:00:00.123Z',
  context: { library: { name: 'bench', version: '1.0.0' } },
});
const batchBody = (turn: number): string =>
  JSON.stringify({
    batch: Array.from({ length: BATCH_SIZE }, (_, index) => ({
      type: 'track',
      ...call((turn * 7 + index) % 64),
    })),
  });

const ones = Array.from({ length: 64 }, (_, person) => JSON.stringify(call(person)));
const batches = Array.from({ length: 16 }, (_, turn) => batchBody(turn));

interface Round {
  readonly eventsPerSecond: number;
  readonly eventsPerCpuSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export async function benchBatch(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      connections: { type: 'string', default: '64' },
    },
  });
  const durationSeconds = Number(values.seconds);
  const rounds = Number(values.rounds);
  await requireWrk();

  return withWorld('none', async (world) => {
    const { redis } = world;
    const intake = await world.startService('intake', PORT, {
      REDIS_URL: world.redisServer.url,
      SHARD_COUNT: String(SHARD_COUNT),
      INTAKE_SPILL_DIRECTORY: join(world.directory, 'spill'),
    });

    for (const contender of CONTENDERS) await checkCorrectness(intake, redis, contender);
    for (const contender of CONTENDERS)
      await runRound(intake, contender, 2, Number(values.connections));

    const results: Record<Contender, Round[]> = { one: [], strict: [], permissive: [] };
    const parses: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      for (const contender of CONTENDERS) {
        await emptyQueues(redis);
        const result = await runRound(
          intake,
          contender,
          durationSeconds,
          Number(values.connections),
        );
        results[contender].push(result);
        console.log(
          `${round}/${rounds} ${contender.padEnd(11)} ${perSecond(result.eventsPerSecond)}, ` +
            `${perSecond(result.eventsPerCpuSecond)} of intake's CPU, p50 ${result.p50Ms.toFixed(1)} ms, p99 ${result.p99Ms.toFixed(1)} ms`,
        );
      }
      parses.push(parseRate(1));
      console.log(`${round}/${rounds} JSON.parse  ${perSecond(parses.at(-1) as number)}`);
    }

    const ratio = (contender: Contender, to: (round: number) => number): number =>
      median(results[contender].map(({ eventsPerCpuSecond }, i) => eventsPerCpuSecond / to(i)));
    const toOne = (round: number): number => results.one[round]?.eventsPerCpuSecond ?? NaN;
    const toParse = (round: number): number => parses[round] ?? NaN;
    const rate = (contender: Contender): number =>
      median(results[contender].map(({ eventsPerCpuSecond }) => eventsPerCpuSecond));
    return {
      bench: 'batch',
      ratios: {
        'strict batch/one': ratio('strict', toOne),
        'permissive batch/one': ratio('permissive', toOne),
        'strict batch/JSON.parse': ratio('strict', toParse),
        'permissive batch/JSON.parse': ratio('permissive', toParse),
      },
      rates: {
        'one, events per CPU second': rate('one'),
        'strict batch, events per CPU second': rate('strict'),
        'permissive batch, events per CPU second': rate('permissive'),
        'JSON.parse, events per CPU second': median(parses),
        'one, events': median(results.one.map(({ eventsPerSecond }) => eventsPerSecond)),
        'strict batch, events': median(
          results.strict.map(({ eventsPerSecond }) => eventsPerSecond),
        ),
        'permissive batch, events': median(
          results.permissive.map(({ eventsPerSecond }) => eventsPerSecond),
        ),
      },
      latencyMs: Object.fromEntries(
        CONTENDERS.flatMap((contender) => [
          [`${contender} p50`, median(results[contender].map(({ p50Ms }) => p50Ms))],
          [`${contender} p99`, median(results[contender].map(({ p99Ms }) => p99Ms))],
        ]),
      ),
      details: {
        batch_size: BATCH_SIZE,
        batch_bytes: batches[0]?.length,
        body_bytes: ones[0]?.length,
        connections: Number(values.connections),
        shards: SHARD_COUNT,
        redis: 'appendonly yes, appendfsync always',
      },
      versions: world.versions,
    };
  });
}

const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString('en')} events/s`;
const pathOf = (contender: Contender): string => (contender === 'one' ? '/v1/track' : '/v1/batch');
const headersOf = (contender: Contender): Record<string, string> => ({
  'Content-Type': 'application/json',
  Authorization: `Basic ${Buffer.from('demo_write_key:').toString('base64')}`,
  // The one-event path as the intake benchmark has it: permissive.
  ...(contender === 'strict' ? { 'X-Strict-Mode': '1' } : {}),
});

async function runRound(
  intake: ChildServer,
  contender: Contender,
  durationSeconds: number,
  connections: number,
): Promise<Round> {
  const cpuBefore = await intake.cpuSeconds();
  const result = await loadWithWrk({
    url: `${intake.url}${pathOf(contender)}`,
    method: 'POST',
    headers: headersOf(contender),
    bodies: contender === 'one' ? ones : batches,
    connections: contender === 'one' ? connections * 8 : connections,
    durationSeconds,
  });
  const cpuSeconds = (await intake.cpuSeconds()) - cpuBefore;
  if (result.failures > 0) throw new Error(`${contender}: ${result.failures} failed requests`);
  const eventsPerSecond = result.requestsPerSecond * (contender === 'one' ? 1 : BATCH_SIZE);
  return {
    eventsPerSecond,
    // Intake is idle before and after the load, so all CPU in between belongs to it.
    eventsPerCpuSecond: (eventsPerSecond * durationSeconds) / cpuSeconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
  };
}

/** Bytes to text to value, of the same batches. */
function parseRate(seconds: number): number {
  const bodies = batches.map((body) => Buffer.from(body));
  const cpuBefore = process.cpuUsage();
  let parsed = 0;
  let kept: unknown;
  for (const endsAt = performance.now() + seconds * 1_000; performance.now() < endsAt;) {
    for (const body of bodies) kept = JSON.parse(body.toString('utf8'));
    parsed += bodies.length * BATCH_SIZE;
  }
  if (kept === undefined) throw new Error('the parser returned no body');
  const { user, system } = process.cpuUsage(cpuBefore);
  return parsed / ((user + system) / 1e6);
}

/** Checks that every event that was answered 200 is in the broker exactly once. */
async function checkCorrectness(
  intake: ChildServer,
  redis: Redis,
  contender: Contender,
): Promise<void> {
  await emptyQueues(redis);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, turn) =>
      fetch(`${intake.url}${pathOf(contender)}`, {
        method: 'POST',
        headers: headersOf(contender),
        body: (contender === 'one' ? ones[turn] : batches[turn % batches.length]) ?? '',
      }),
    ),
  );
  if (answers.some((answer) => answer.status !== 200)) throw new Error('a valid call was refused');
  const found = await countQueued(redis, 'Order Placed');
  const expected = contender === 'one' ? 20 : 20 * BATCH_SIZE;
  if (found !== expected) throw new Error(`${expected} events acknowledged, ${found} in Redis`);
}
