/**
 * Cost of an idle fleet: CPU of each process, commands to Redis and transactions of Postgres a second. One intake, one
 * worker, one API, the default 16 shards, some hundred idle webhooks; two fleets at the same time, one with its queues
 * in Redis and one in Postgres, each with a database of its own.
 *
 * A process is idle once V8 has given back the memory of its start. V8 does that once, up to 100 s after the last work,
 * for 0.2 s of CPU. A window that holds it shows 1 % of a core more.
 *
 * `ours/limit` is the measured value over the limit of issue F: below 1 is within.
 *
 * `--webhooks 100000`: so many endpoints of applications against 0, with the queues of both fleets in Redis, and the times
 * of list pages with them (`idle-lists.ts`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';
import { cpuSecondsOf, type ChildServer } from './child-server.ts';
import { ENDPOINTS_EACH, endpointOf, replaceWebhooks } from './delivery-world.ts';
import { timeLists } from './idle-lists.ts';
import type { Report } from './report.ts';
import { withWorld, type Service, type World } from './world.ts';

const SERVICES = ['intake', 'worker', 'api'] as const satisfies readonly Service[];
/** Of the fleets, in their order. */
const FIRST_PORTS = [18_110, 18_113] as const;
const WEBHOOKS = 300;
/** V8 collects in a process that does little after so long at the latest (`kWatchdogDelayMs`), in rounds of seconds. */
const SETTLING_MS = 110_000;
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
    options: { seconds: { type: 'string', default: '30' }, webhooks: { type: 'string' } },
  });
  const seconds = Number(values.seconds);
  if (values.webhooks !== undefined) return benchIdleWebhooks(Number(values.webhooks), seconds);
  return withWorld('full', async (world) => {
    const [redis, postgres] = await measureAll(world, seconds, [
      { broker: 'redis', webhooks: WEBHOOKS },
      { broker: 'postgres', webhooks: WEBHOOKS },
    ]);
    const measured = { redis, postgres };
    return {
      bench: 'idle',
      ratios: {
        'fleet cpu ours/limit': sumOf(measured.redis.cpuShares) / CPU_SHARE_LIMIT,
        'fleet cpu ours/limit, postgres backend':
          sumOf(measured.postgres.cpuShares) / CPU_SHARE_LIMIT,
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

/** So many endpoints of applications against 0, both with their queues in one Redis. */
async function benchIdleWebhooks(webhooks: number, seconds: number): Promise<Report> {
  return withWorld('full', async (world) => {
    const [none, many] = await measureAll(world, seconds, [
      { broker: 'redis', webhooks: 0 },
      { broker: 'redis', webhooks },
    ]);
    const apiUrl = `http://127.0.0.1:${FIRST_PORTS[1] + SERVICES.indexOf('api')}`;
    const lists = await timeLists(apiUrl, Math.ceil(webhooks / ENDPOINTS_EACH));
    const ratio = (of: (idleness: Idleness) => number): number => of(many) / of(none);
    const name = `${webhooks} webhooks/none`;
    return {
      bench: `idle-${webhooks}-webhooks`,
      ratios: {
        [`fleet cpu, ${name}`]: ratio(({ cpuShares }) => sumOf(cpuShares)),
        [`fleet and postgres cpu, ${name}`]: ratio(
          ({ cpuShares, postgresCpuShare }) => sumOf(cpuShares) + postgresCpuShare,
        ),
        [`transactions, ${name}`]: ratio(({ transactionsPerSecond }) => transactionsPerSecond),
        ...lists.ratios,
      },
      rates: {
        'transactions, none': none.transactionsPerSecond,
        [`transactions, ${webhooks} webhooks`]: many.transactionsPerSecond,
      },
      latencyMs: lists.latencyMs,
      details: { seconds, webhooks, none, many },
      versions: world.versions,
    };
  });
}

const sumOf = (shares: Record<string, number>): number =>
  Object.values(shares).reduce((total, share) => total + share, 0);

interface FleetSettings {
  readonly broker: 'redis' | 'postgres';
  readonly webhooks: number;
}

/** Two fleets at the same time, each with a database of its own. */
async function measureAll(
  world: World,
  seconds: number,
  [first, second]: readonly [FleetSettings, FleetSettings],
): Promise<[Idleness, Idleness]> {
  const own = { database: world.database, databaseUrl: world.databaseUrl };
  const other = await world.addDatabase('queues');
  const fleets = await Promise.all([
    startFleet(world, FIRST_PORTS[0], first, own),
    startFleet(world, FIRST_PORTS[1], second, other),
  ]);
  await sleep(SETTLING_MS);
  const measured = await Promise.all([
    measure(world, fleets[0], seconds),
    measure(world, fleets[1], seconds),
  ]);
  for (const [place, { broker, webhooks }] of [first, second].entries())
    console.log(lineOf(`${webhooks} webhooks, queues in ${broker}`, measured[place] as Idleness));
  return measured;
}

function lineOf(name: string, { cpuShares, postgresCpuShare, ...rates }: Idleness): string {
  const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
  const shares = Object.entries({ ...cpuShares, postgres: postgresCpuShare });
  return (
    `${name.padEnd(36)} of a core: ${shares.map(([each, share]) => `${each} ${percent(share)}`).join(', ')}; ` +
    `${rates.redisCommandsPerSecond.toFixed(1)} Redis commands/s, ${rates.transactionsPerSecond.toFixed(1)} transactions/s`
  );
}

interface Fleet {
  readonly database: Database;
  readonly servers: readonly ChildServer[];
}

async function startFleet(
  world: World,
  firstPort: number,
  { broker, webhooks }: FleetSettings,
  { database, databaseUrl }: Pick<World, 'database' | 'databaseUrl'>,
): Promise<Fleet> {
  // More than a workspace may have of its own: endpoints of applications.
  await replaceWebhooks(
    database,
    Array.from({ length: webhooks }, (_, place) => endpointOf(place, 9)),
    webhooks > WEBHOOKS ? 'published' : 'reports',
  );
  await sql`vacuum analyze`.execute(database);
  const environment: Record<string, string> = {
    DATABASE_URL: databaseUrl,
    QUEUE_PREFIX: `idle-${firstPort}`,
    ...(broker === 'redis' ? { REDIS_URL: world.redisServer.url } : {}),
  };
  const servers: ChildServer[] = [];
  for (const [place, service] of SERVICES.entries())
    servers.push(await world.startService(service, firstPort + place, environment));
  return { database, servers };
}

async function measure(world: World, fleet: Fleet, seconds: number): Promise<Idleness> {
  const before = await read(world, fleet);
  const startedAtMs = performance.now();
  await sleep(seconds * 1_000);
  const after = await read(world, fleet);
  const elapsed = (performance.now() - startedAtMs) / 1_000;
  const rate = (of: (reading: typeof before) => number) => (of(after) - of(before)) / elapsed;
  return {
    cpuShares: Object.fromEntries(
      SERVICES.map((service, index) => [service, rate(({ cpu }) => cpu[index] ?? NaN)]),
    ),
    postgresCpuShare: cpuBetween(before.backends, after.backends) / elapsed,
    // The other fleet sends no command to this Redis, unless both have their queues in it. INFO is sent once a fleet.
    redisCommandsPerSecond: rate(({ commands }) => commands) - FIRST_PORTS.length / elapsed,
    transactionsPerSecond: rate(({ transactions }) => transactions),
  };
}

async function read({ redis }: World, { database, servers }: Fleet) {
  const cpu = await Promise.all(servers.map((server) => server.cpuSeconds()));
  const stats = await redis.info('stats');
  const { rows } = await sql<{ transactions: number; pids: number[] }>`
    select (select xact_commit + xact_rollback from pg_stat_database where datname = current_database())::float8 as transactions,
           (select array_agg(pid) from pg_stat_activity
             where backend_type = 'client backend' and datname = current_database()) as pids`.execute(
    database,
  );
  const { transactions = NaN, pids = [] } = rows[0] ?? {};
  const backends = new Map(
    await Promise.all(
      pids.map(async (pid) => [pid, await cpuSecondsOf(pid).catch(() => 0)] as const),
    ),
  );
  return {
    cpu,
    commands: Number(/total_commands_processed:(\d+)/.exec(stats)?.[1]),
    transactions,
    backends,
  };
}

/** In seconds. Leaves out backends that ended meanwhile: their CPU time is not known any more. */
function cpuBetween(
  before: ReadonlyMap<number, number>,
  after: ReadonlyMap<number, number>,
): number {
  return [...after].reduce((sum, [pid, seconds]) => sum + seconds - (before.get(pid) ?? 0), 0);
}
