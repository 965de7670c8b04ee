/**
 * The fleet that suffers: two intakes, two workers, a Postgres and a Redis of their own, all real
 * processes, with a TCP way between each intake, or all workers, and each server.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { updateEnvironment } from '@sluice/database/accounts/environments';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { migrate } from '@sluice/database/schema/migrate';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import {
  insertTestKeys,
  insertTestWebhook,
  insertTestWorkspace,
  type WorkspaceKeys,
} from '@sluice/database/testing/test-tenants';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { migrateQueues } from '@sluice/platform/queue/queue';
import {
  startRedisCluster,
  startRedisSentinels,
  type RedisFleet,
} from '@sluice/platform/testing/redis-fleet';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { startTcpProxy, type TcpProxy } from '@sluice/database/testing/tcp-proxy';
import {
  type Broker,
  type Fault,
  type OneWayName,
  type ProcessName,
  type WayName,
} from './fault-plan.ts';
import { signal, SupervisedProcesses, type Running } from './processes-under-test.ts';

export interface Fleet {
  readonly broker: Broker;
  /** Straight to Postgres. */
  readonly database: Database;
  /** The two intakes; the same for the whole life of the fleet. */
  readonly intakeUrls: readonly [string, string];
  /** The API's address; `undefined` in a fleet without an API. */
  readonly apiUrl: string | undefined;
  /** The demo's first, then the ones that the shape asks for. */
  readonly workspaces: readonly [WorkspaceKeys, ...WorkspaceKeys[]];
  /** `/readyz` of every service: undefined if it does not answer. */
  readiness(): Promise<{ readonly name: string; readonly body: ReadinessBody | undefined }[]>;
  /** Does it, waits, undoes it. */
  suffer(fault: Fault): Promise<void>;
  /** The last lines that a service logged, to find the reason of a failure. */
  lastLines(name: ProcessName): readonly string[];
  close(): Promise<void>;
}

/** The size of a fleet. */
export interface FleetShape {
  readonly workerCount: 2 | 4;
  readonly shardCount: number;
  /** For reading people back; phone numbers identify them then. */
  readonly hasApi: boolean;
  /** One imports one file at a time. */
  readonly workspaceCount: number;
  /** Time after which an intake writes a call to its local disk buffer instead of the broker. */
  readonly commitDeadlineMs: number;
  /** Time by which the clock of each intake is ahead of the machine's; 0 if absent. */
  readonly intakeClocksAheadMs?: readonly [number, number];
  /** A worker ends whose try takes so long. */
  readonly hungAfterMs: number;
  /**
   * Whether servers are killed and connections cut. If not, the services reach the servers without a proxy, and leases
   * last as installed: on a busy machine a short one ended between two steps of an import, and workers took it from
   * one another.
   */
  readonly hasFaults: boolean;
  /** All events and published messages of the first workspace go there. If absent, no webhook exists. */
  readonly deliversTo?: string;
}

type ServiceName = Exclude<ProcessName, 'postgres' | 'redis'>;
/** All workers share a way to a server. */
type WayUser = 'intake-0' | 'intake-1' | 'worker';

export const SMALL_FLEET: FleetShape = {
  workerCount: 2,
  shardCount: 4,
  hasApi: false,
  workspaceCount: 1,
  commitDeadlineMs: 400,
  hungAfterMs: 6_000,
  hasFaults: true,
};

export interface ReadinessBody {
  readonly ready: boolean;
  readonly [detail: string]: unknown;
}

/** Run before a service: its `Date` is ahead. */
const CLOCK_AHEAD = (aheadMs: number) => `
  const right = Date;
  globalThis.Date = class extends right {
    constructor(...given) { given.length === 0 ? super(right.now() + ${aheadMs}) : super(...given); }
    static now() { return right.now() + ${aheadMs}; }
  };`;

/** A seed lasts seconds: so do the pauses after a delivery that failed. */
const QUICK_RETRIES = {
  WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
  WEBHOOK_TIMEOUT_MS: '1000',
  WEBHOOK_LISTED_FAILURE_WAIT_MS: '100',
  WEBHOOK_BACKOFF_BASE_MS: '100',
  WEBHOOK_BACKOFF_CAP_MS: '400',
};

const READINESS_DEADLINE_MS = 3_000;
const LINES_SHOWN = 15;

const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../${service}/src/main.ts`, import.meta.url));

export async function startFleet(broker: Broker, shape: FleetShape = SMALL_FLEET): Promise<Fleet> {
  const { workerCount, shardCount, hasApi, commitDeadlineMs, hungAfterMs, intakeClocksAheadMs } =
    shape;
  const { deliversTo, hasFaults } = shape;
  const workspaces = workspacesOf(shape.workspaceCount);
  const directory = await mkdtemp(join(tmpdir(), 'sluice-chaos-'));
  // Postgres' account must pass through.
  await chmod(directory, 0o711);
  const postgresOptions = {
    directory,
    durability: 'full',
    settings: { max_connections: String(100 + workerCount * 40) },
    onProgress: () => {},
  } as const;
  let postgres = await startEmbeddedPostgres(postgresOptions);
  await postgres.createDatabase('chaos');
  const directUrl = postgres.url('chaos');
  const database = createDatabase({
    url: directUrl,
    poolMax: 4,
    applicationName: 'chaos',
    onError: () => {},
  });
  await migrate(database);
  await migrateQueues(directUrl);
  await seedDemoWorkspace(database);
  for (const workspace of workspaces) {
    const { environmentId } = workspace;
    if (environmentId !== DEMO.environmentId) {
      await insertTestWorkspace(database, environmentId);
      await insertTestKeys(database, workspace);
    }
    if (hasApi)
      await updateEnvironment(
        database,
        DEMO.accountId,
        environmentId,
        { phoneIdentifies: true },
        { actor: { type: 'system' } },
        Date.now(),
      );
  }

  if (deliversTo !== undefined)
    for (const type of ['event', 'message'])
      await insertTestWebhook(database, DEMO.environmentId, {
        name: type,
        endpoint: `${deliversTo}/${type}`,
        events: [type],
      });

  const redisOptions = { directory: join(directory, 'redis'), port: await findFreePort() };
  const servers = await startRedisSet(broker, redisOptions.directory);
  const ways = new Map<OneWayName, TcpProxy>();
  for (const user of ['intake-0', 'intake-1', 'worker'] as const) {
    ways.set(`${user} to postgres`, await startTcpProxy('127.0.0.1', () => postgres.port));
    ways.set(`${user} to redis`, await startTcpProxy('127.0.0.1', redisOptions.port));
  }
  const waysOf = (name: WayName): TcpProxy[] =>
    [...ways].flatMap(([own, way]) =>
      own === name || own.replace(/^intake-\d/, 'intake') === name ? [way] : [],
    );
  const redisUrlFor = (user: WayUser): string | undefined => {
    if (servers) return servers.url;
    return broker === 'redis' ? `redis://127.0.0.1:${portOf(`${user} to redis`)}` : undefined;
  };
  const portOf = (way: OneWayName) => {
    if (hasFaults) return (ways.get(way) as TcpProxy).port;
    return way.endsWith('postgres') ? postgres.port : redisOptions.port;
  };
  const workers = (['worker-0', 'worker-1', 'worker-2', 'worker-3'] as const).slice(0, workerCount);
  const ports = new Map<ServiceName, number>();
  for (const name of [
    'intake-0',
    'intake-1',
    ...workers,
    ...(hasApi ? (['api'] as const) : []),
  ] as const)
    ports.set(name, await findFreePort());
  const urlOf = (name: ServiceName) => `http://127.0.0.1:${ports.get(name)}`;

  const settingsOf = (service: 'intake' | 'worker', name: ServiceName): Record<string, string> => {
    const user = name === 'intake-0' || name === 'intake-1' ? name : 'worker';
    const databaseUrl = new URL(directUrl);
    databaseUrl.host = `127.0.0.1:${portOf(`${user} to postgres`)}`;
    const redisUrl = redisUrlFor(user);
    const aheadMs = intakeClocksAheadMs?.[['intake-0', 'intake-1'].indexOf(name)];
    return {
      ...(aheadMs !== undefined && {
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(CLOCK_AHEAD(aheadMs))}`,
      }),
      DATABASE_URL: databaseUrl.href,
      ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
      REDIS_REPLICA_GRACE_MS: '4000',
      SHARD_COUNT: String(shardCount),
      ...(hasFaults && { QUEUE_STALLED_AFTER_MS: '1500' }),
      INTAKE_COMMIT_DEADLINE_MS: String(commitDeadlineMs),
      // One folder each: these runs do not try the take-over of a dead intake's folder.
      INTAKE_SPILL_DIRECTORY: join(directory, `spill-${name}`),
      [service === 'intake' ? 'INTAKE_PORT' : 'WORKER_PORT']: String(ports.get(name)),
      WORKER_HUNG_AFTER_MS: String(hungAfterMs),
      ...(deliversTo !== undefined && QUICK_RETRIES),
    };
  };
  /** The API is no target of faults: it reads Postgres directly. */
  const apiRedisUrl =
    servers?.url ?? (broker === 'redis' ? `redis://127.0.0.1:${redisOptions.port}` : undefined);
  const apiSettings = () => ({
    DATABASE_URL: directUrl,
    ...(apiRedisUrl !== undefined && { REDIS_URL: apiRedisUrl }),
    SHARD_COUNT: String(shardCount),
    API_PORT: String(ports.get('api')),
  });
  const startService = async (name: ServiceName): Promise<Running> => {
    const service = name.replace(/-\d$/, '') as 'intake' | 'worker' | 'api';
    const started = await startServiceUnderTest(
      mainOf(service),
      service === 'api' ? apiSettings() : settingsOf(service, name),
    );
    const lines = () => started.logs.slice(-LINES_SHOWN).map((line) => JSON.stringify(line));
    return { pid: started.pid, ended: started.ended, lines };
  };

  const processes = new SupervisedProcesses();
  const startPostgres = async () => (postgres = await startEmbeddedPostgres(postgresOptions));
  await processes.add('postgres', startPostgres, postgres);
  if (broker === 'redis') await processes.add('redis', () => startRedisServer(redisOptions));
  await Promise.all([...ports.keys()].map((name) => processes.add(name, () => startService(name))));
  processes.supervise();

  /** Harms the server that is the master now. */
  async function sufferMaster(kind: 'kill' | 'stop', durationMs: number): Promise<void> {
    const [master] = (await servers?.masters()) ?? [];
    if (!master) throw new Error('no server is master');
    if (kind === 'stop') signal([master.pid], 'SIGSTOP');
    else await master.kill();
    await sleep(durationMs);
    if (kind === 'stop') signal([master.pid], 'SIGCONT');
    else await master.restart();
  }

  return {
    broker,
    database,
    intakeUrls: [urlOf('intake-0'), urlOf('intake-1')],
    apiUrl: hasApi ? urlOf('api') : undefined,
    workspaces,
    readiness: () =>
      Promise.all(
        [...ports.keys()].map(async (name) => ({
          name,
          body: await fetch(`${urlOf(name)}/readyz`, {
            signal: AbortSignal.timeout(READINESS_DEADLINE_MS),
          })
            .then((answer) => answer.json() as Promise<ReadinessBody>)
            .catch(() => undefined),
        })),
      ),
    async suffer(fault) {
      if (fault.of === 'process')
        return servers && fault.target === 'redis'
          ? sufferMaster(fault.kind, fault.durationMs)
          : processes.suffer(fault);
      const harmed = waysOf(fault.target);
      for (const way of harmed) {
        if (fault.kind === 'cut') way.cut();
        else if (fault.kind === 'hold') way.hold();
        else way.holdAnswers();
      }
      await sleep(fault.durationMs);
      for (const way of harmed) {
        if (fault.kind === 'mute') way.cut();
        way.restore();
      }
    },
    lastLines: (name) => processes.lastLines(name),
    async close() {
      await database.destroy();
      await processes.close();
      await servers?.close();
      await Promise.all([...ways.values()].map((way) => way.close()));
      await postgres.remove();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Beyond the workspaces of the demo. */
const FIRST_ENVIRONMENT_ID = 101;

const workspacesOf = (count: number): Fleet['workspaces'] => [
  DEMO,
  ...Array.from({ length: count - 1 }, (_, index) => ({
    environmentId: FIRST_ENVIRONMENT_ID + index,
    writeKey: `write_key_${index}`,
    siteId: `site_${index}`,
    apiKey: `api_key_${index}`,
    appKey: `app_key_${index}`,
  })),
];

/** Several Redis servers that stand in for one another; undefined if the broker is one server. */
function startRedisSet(broker: Broker, directory: string): Promise<RedisFleet> | undefined {
  if (broker === 'cluster') return startRedisCluster(directory);
  return broker === 'sentinels' ? startRedisSentinels(directory) : undefined;
}
