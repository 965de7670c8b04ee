/**
 * What a fleet costs that has nothing to do: CPU of each process, commands to Redis and transactions of
 * Postgres a second. One intake, one worker, one API, the default 16 shards, some hundred idle webhooks;
 * once with the queues in Redis and once in Postgres.
 *
 * `ours/limit` is what was measured over the limit of issue F: below 1 is within.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { cpuSecondsOf, type ChildServer } from './child-server.ts';
import { endpointOf, replaceWebhooks } from './delivery-world.ts';
import type { Report } from './report.ts';
import { withWorld, type Service, type World } from './world.ts';

const SERVICES = ['intake', 'worker', 'api'] as const satisfies readonly Service[];
const PORTS = { intake: 18_110, worker: 18_111, api: 18_112 };
const BROKERS = ['redis', 'postgres'] as const;
const WEBHOOKS = 300;
const SETTLING_MS = 10_000;
/** Of one core, and of commands to Redis a second and process. */
const CPU_SHARE_LIMIT = 0.01;
const COMMANDS_LIMIT = 5;

interface Idleness {
  readonly cpuShares: Record<string, number>;
  readonly postgresCpuShare: number;
  readonly redisCommandsPerSecond: number;
  readonly transactionsPerSecond: number;
}

export async function benchIdle(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: { seconds: { type: 'string', default: '30' } },
  });
  const seconds = Number(values.seconds);
  return withWorld('full', async (world) => {
    await replaceWebhooks(
      world.database,
      Array.from({ length: WEBHOOKS }, (_, place) => endpointOf(place, 9)),
    );
    const measured = {} as Record<(typeof BROKERS)[number], Idleness>;
    for (const broker of BROKERS) {
      measured[broker] = await measure(world, broker === 'redis', seconds);
      const { cpuShares, postgresCpuShare, ...rates } = measured[broker];
      const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
      const shares = Object.entries({ ...cpuShares, postgres: postgresCpuShare });
      console.log(
        `queues in ${broker.padEnd(9)} of a core: ${shares.map(([name, share]) => `${name} ${percent(share)}`).join(', ')}; ` +
          `${rates.redisCommandsPerSecond.toFixed(1)} Redis commands/s, ${rates.transactionsPerSecond.toFixed(1)} transactions/s`,
      );
    }
    const sum = (shares: Record<string, number>) =>
      Object.values(shares).reduce((total, share) => total + share, 0);
    return {
      bench: 'idle',
      ratios: {
        'fleet cpu ours/limit': sum(measured.redis.cpuShares) / CPU_SHARE_LIMIT,
        'fleet cpu ours/limit, postgres backend':
          sum(measured.postgres.cpuShares) / CPU_SHARE_LIMIT,
        'redis commands a process ours/limit':
          measured.redis.redisCommandsPerSecond / SERVICES.length / COMMANDS_LIMIT,
      },
      rates: {
        'redis commands': measured.redis.redisCommandsPerSecond,
        transactions: measured.redis.transactionsPerSecond,
        'transactions, postgres backend': measured.postgres.transactionsPerSecond,
      },
      latencyMs: {},
      details: { seconds, webhooks: WEBHOOKS, ...measured },
      versions: world.versions,
    };
  });
}

async function measure(world: World, isRedis: boolean, seconds: number): Promise<Idleness> {
  const environment: Record<string, string> = {
    QUEUE_PREFIX: 'idle',
    ...(isRedis ? { REDIS_URL: world.redisServer.url } : {}),
  };
  const servers: ChildServer[] = [];
  for (const service of SERVICES)
    servers.push(await world.startService(service, PORTS[service], environment));
  await sleep(SETTLING_MS);
  const before = await read(world, servers);
  const startedAtMs = performance.now();
  await sleep(seconds * 1_000);
  const after = await read(world, servers);
  const elapsed = (performance.now() - startedAtMs) / 1_000;
  await Promise.all(servers.map((server) => server.stop()));
  const rate = (of: (reading: typeof before) => number) => (of(after) - of(before)) / elapsed;
  return {
    cpuShares: Object.fromEntries(
      SERVICES.map((service, index) => [service, rate(({ cpu }) => cpu[index] ?? NaN)]),
    ),
    postgresCpuShare: rate(({ postgresCpu }) => postgresCpu),
    // What this benchmark asks itself: INFO once.
    redisCommandsPerSecond: rate(({ commands }) => commands) - 1 / elapsed,
    transactionsPerSecond: rate(({ transactions }) => transactions),
  };
}

async function read({ database, redis }: World, servers: readonly ChildServer[]) {
  const cpu = await Promise.all(servers.map((server) => server.cpuSeconds()));
  const stats = await redis.info('stats');
  const { rows } = await sql<{ transactions: number; pids: number[] }>`
    select (select sum(xact_commit + xact_rollback)::float8 from pg_stat_database) as transactions,
           (select array_agg(pid) from pg_stat_activity where backend_type = 'client backend') as pids`.execute(
    database,
  );
  const { transactions = NaN, pids = [] } = rows[0] ?? {};
  const seconds = await Promise.all(pids.map((pid) => cpuSecondsOf(pid).catch(() => 0)));
  return {
    cpu,
    commands: Number(/total_commands_processed:(\d+)/.exec(stats)?.[1]),
    transactions,
    postgresCpu: seconds.reduce((sum, value) => sum + value, 0),
  };
}
