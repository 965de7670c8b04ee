/**
 * Servers that take events at ordinary rates (`ordinary.ts`, `lone.ts`): the floor, and ours with a process a
 * role or as `npm start` runs it.
 */
import { join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { QUICK_START, startChildServer } from './child-server.ts';
import type { Target } from './paced-deliveries.ts';
import type { World } from './world.ts';

const PORTS = { intake: 18_140, worker: 18_141, api: 18_142, floor: 18_143, simulator: 18_145 };
export const RECEIVER_PORT = 18_144;

export interface Contender {
  readonly target: Target;
  readonly processes: readonly { readonly name: string; readonly pids: readonly number[] }[];
  stop(): Promise<void>;
}

export interface Installation {
  readonly shardCount: number;
  readonly broker: 'redis' | 'postgres';
  /** As `npm start` runs it: all roles under one supervisor. */
  readonly isEmbedded: boolean;
}

export async function startFloor(world: World, endpoints: readonly string[]): Promise<Contender> {
  const url = `http://127.0.0.1:${PORTS.floor}`;
  const server = await startChildServer({
    file: join(import.meta.dirname, 'ordinary-floor-server.ts'),
    environment: {
      PORT: String(PORTS.floor),
      DATABASE_URL: world.databaseUrl,
      ENDPOINTS: endpoints.join(' '),
    },
    url,
    readyPath: '/',
  });
  world.onClose(() => server.stop());
  return {
    target: { url, headers: {} },
    processes: [{ name: 'floor', pids: server.pids }],
    stop: () => server.stop(),
  };
}

export async function startOurs(
  world: World,
  installation: Installation,
  settings: Readonly<Record<string, string>> = {},
): Promise<Contender> {
  const { broker, isEmbedded, shardCount } = installation;
  const environment: Record<string, string> = {
    ...(broker === 'redis' && { REDIS_URL: world.redisServer.url }),
    SHARD_COUNT: String(shardCount),
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
    INTAKE_SPILL_DIRECTORY: join(world.directory, 'spill'),
    ...settings,
  };
  const servers = isEmbedded
    ? [{ name: 'npm start', server: await startWhole(world, environment) }]
    : [
        { name: 'api', server: await world.startService('api', PORTS.api, environment) },
        { name: 'worker', server: await world.startService('worker', PORTS.worker, environment) },
        { name: 'intake', server: await world.startService('intake', PORTS.intake, environment) },
      ];
  const key = Buffer.from(`${DEMO.siteId}:${DEMO.apiKey}`).toString('base64');
  return {
    target: {
      url: `http://127.0.0.1:${PORTS.intake}/api/v1/metrics`,
      headers: { Authorization: `Basic ${key}` },
    },
    processes: servers.map(({ name, server }) => ({ name, pids: server.pids })),
    async stop() {
      for (const { server } of servers.toReversed()) await server.stop();
    },
  };
}

/** As `npm start` runs it, without npm. */
async function startWhole(world: World, environment: Record<string, string>) {
  const server = await startChildServer({
    file: join(import.meta.dirname, '../../packages/standalone/src/main.ts'),
    environment: {
      ...environment,
      MALLOC_ARENA_MAX: '1',
      DATABASE_URL: world.databaseUrl,
      SLUICE_DIRECTORY: join(world.directory, 'standalone'),
      LOG_LEVEL: 'warn',
      INTAKE_PORT: String(PORTS.intake),
      WORKER_PORT: String(PORTS.worker),
      API_PORT: String(PORTS.api),
      SIMULATOR_PORT: String(PORTS.simulator),
    },
    url: `http://127.0.0.1:${PORTS.intake}`,
    readyPath: '/livez',
    nodeArguments: ['--max-semi-space-size=2', '--v8-pool-size=1', QUICK_START],
  });
  world.onClose(() => server.stop());
  return server;
}
