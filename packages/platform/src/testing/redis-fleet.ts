/**
 * Several real `redis-server` processes with failover, for tests and chaos runs: a Cluster of three masters with a
 * replica each, and a master with two replicas watched by three Sentinels. On free ports, with the settings that
 * `infra/redis` names, but with shorter times.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { findFreePort } from './free-port.ts';
import { runRedisServer, startRedisServer, type RedisServer } from './redis-server.ts';

export interface RedisFleet {
  /** For `REDIS_URL`. */
  readonly url: string;
  /** Every server that holds data, in any role. */
  readonly nodes: readonly RedisNode[];
  /** The others of them are replicas. */
  readonly masterCount: number;
  /** Empty for a Cluster. */
  readonly sentinels: readonly Pick<RedisNode, 'pid' | 'command'>[];
  /** Nodes that are master of some slots at present, by their own answers. */
  masters(): Promise<RedisNode[]>;
  /** Attached to this master, by its own answer. */
  replicasOf(master: RedisNode): Promise<RedisNode[]>;
  close(): Promise<void>;
}

export interface RedisNode {
  readonly port: number;
  readonly pid: number;
  command(...words: string[]): Promise<unknown>;
  kill(): Promise<void>;
  /** On the same port and data, in the role that the others give it. */
  restart(): Promise<void>;
}

/** A master counts as gone after so long; real ones have 5 s. */
const NODE_TIMEOUT_MS = 1_000;
const SLOT_COUNT = 16_384;
const CLUSTER_MASTERS = 3;
const SENTINELS = 3;
const SENTINEL_MASTER = 'sluice';
const READY_DEADLINE_MS = 60_000;
const POLL_INTERVAL_MS = 50;

/** @param goneAfterMs - silence of a master after which a replica takes its place. */
export async function startRedisCluster(
  directory: string,
  goneAfterMs = NODE_TIMEOUT_MS,
): Promise<RedisFleet> {
  const nodes = await Promise.all(
    Array.from({ length: 2 * CLUSTER_MASTERS }, (_, index) =>
      startClusterNode(directory, index, goneAfterMs),
    ),
  );
  const masters = nodes.slice(0, CLUSTER_MASTERS);
  const [first] = nodes as [ClusterNode, ...ClusterNode[]];
  for (const [index, node] of masters.entries()) {
    const from = Math.floor((index * SLOT_COUNT) / CLUSTER_MASTERS);
    const to = Math.floor(((index + 1) * SLOT_COUNT) / CLUSTER_MASTERS) - 1;
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
  }
  for (const { port, busPort } of nodes.slice(1))
    await first.command('CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPort));
  for (const [index, replica] of nodes.slice(CLUSTER_MASTERS).entries()) {
    const id = String(await (masters[index] as ClusterNode).command('CLUSTER', 'MYID'));
    // Refused until all nodes know of each other.
    await until(() => replica.command('CLUSTER', 'REPLICATE', id));
  }
  await until(async () => {
    for (const node of nodes) {
      const state = String(await node.command('CLUSTER', 'INFO'));
      if (!state.includes('cluster_state:ok') || !state.includes('cluster_known_nodes:6'))
        throw new Error(state);
    }
    for (const master of masters) await expectReplicas(master, 1);
  });
  const hosts = masters.map(({ port }) => `127.0.0.1:${port}`).join();
  return fleetOf(`redis-cluster://${hosts}`, nodes, CLUSTER_MASTERS, []);
}

/** @param goneAfterMs - as for `startRedisCluster`. */
export async function startRedisSentinels(
  directory: string,
  goneAfterMs = NODE_TIMEOUT_MS,
): Promise<RedisFleet> {
  const first = await startNode(join(directory, 'redis-0'), []);
  const others = await Promise.all(
    [1, 2].map((index) =>
      startNode(join(directory, `redis-${index}`), ['--replicaof', `127.0.0.1 ${first.port}`]),
    ),
  );
  await until(() => expectReplicas(first, others.length));
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, (_, index) =>
      startSentinel(join(directory, `sentinel-${index}`), first.port, goneAfterMs),
    ),
  );
  await until(() => Promise.all(sentinels.map(expectFullView)));
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join();
  return fleetOf(
    `redis-sentinel://${hosts}?master=${SENTINEL_MASTER}`,
    [first, ...others],
    1,
    sentinels,
  );
}

interface ClusterNode extends RedisNode {
  readonly busPort: number;
}

async function startClusterNode(
  directory: string,
  index: number,
  goneAfterMs: number,
): Promise<ClusterNode> {
  const busPort = await findFreePort();
  const node = await startNode(join(directory, `redis-${index}`), [
    ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
    ...['--cluster-node-timeout', String(goneAfterMs)],
    ...['--cluster-require-full-coverage', 'no'],
  ]);
  return Object.assign(node, { busPort });
}

async function startNode(directory: string, extraArguments: readonly string[]): Promise<RedisNode> {
  let server = await startRedisServer({
    directory,
    extraArguments: [...extraArguments, '--repl-diskless-sync-delay', '0'],
  });
  const { port } = server;
  return {
    port,
    get pid() {
      return server.pid;
    },
    command: (...words) => commandOn(port, words),
    kill: () => server.kill(),
    async restart() {
      server = await startRedisServer({ directory, port, extraArguments });
    },
  };
}

async function startSentinel(
  directory: string,
  masterPort: number,
  goneAfterMs: number,
): Promise<RedisServer> {
  await mkdir(directory, { recursive: true });
  const port = await findFreePort();
  const file = join(directory, 'sentinel.conf');
  // A file, because a Sentinel writes its findings there.
  await writeFile(
    file,
    `port ${port}
bind 127.0.0.1
dir ${directory}
sentinel monitor ${SENTINEL_MASTER} 127.0.0.1 ${masterPort} 2
sentinel down-after-milliseconds ${SENTINEL_MASTER} ${goneAfterMs}
sentinel failover-timeout ${SENTINEL_MASTER} ${5 * NODE_TIMEOUT_MS}
ignore-warnings ARM64-COW-BUG
`,
  );
  return runRedisServer([file, '--sentinel'], port);
}

function fleetOf(
  url: string,
  nodes: readonly RedisNode[],
  masterCount: number,
  sentinels: readonly RedisServer[],
): RedisFleet {
  return {
    url,
    nodes,
    masterCount,
    sentinels: sentinels.map(({ pid, port }) => ({
      pid,
      command: (...words) => commandOn(port, words),
    })),
    async masters() {
      const roles = await Promise.all(nodes.map((node) => roleOf(node)));
      return nodes.filter((_, index) => roles[index] === 'master');
    },
    async replicasOf(master) {
      const ports = new Set(await replicaPorts(master));
      return nodes.filter(({ port }) => ports.has(port));
    },
    async close() {
      await Promise.all([...nodes, ...sentinels].map((server) => server.kill()));
    },
  };
}

/** Undefined for one that does not answer, or that is a master without slots. */
async function roleOf(node: RedisNode): Promise<string | undefined> {
  const answer = await node.command('ROLE').catch(() => undefined);
  if (!Array.isArray(answer)) return undefined;
  if (answer[0] !== 'master') return String(answer[0]);
  // An old master that has come back reports that role until it has heard of the new one.
  const slots = await node.command('CLUSTER', 'SLOTS').catch(() => undefined);
  const isOwner = ([, , [, port]]: readonly [number, number, [string, number]]) =>
    port === node.port;
  return slots === undefined || (slots as Parameters<typeof isOwner>[0][]).some(isOwner)
    ? 'master'
    : undefined;
}

async function replicaPorts(node: RedisNode): Promise<number[]> {
  const [, , replicas] = (await node.command('ROLE')) as [string, number, [string, string][]];
  return replicas.map(([, port]) => Number(port));
}

async function expectReplicas(node: RedisNode, count: number): Promise<void> {
  const found = await replicaPorts(node);
  if (found.length < count) throw new Error(`${found.length} of ${count} replicas`);
}

async function expectFullView({ port }: RedisServer): Promise<void> {
  const answer = await commandOn(port, ['SENTINEL', 'CKQUORUM', SENTINEL_MASTER]);
  if (!String(answer).startsWith(`OK ${SENTINELS} usable`)) throw new Error(String(answer));
  const replicas = await commandOn(port, ['SENTINEL', 'REPLICAS', SENTINEL_MASTER]);
  if ((replicas as unknown[]).length < 2) throw new Error('a Sentinel does not know both replicas');
}

async function commandOn(port: number, [name = '', ...words]: readonly string[]): Promise<unknown> {
  const redis = new Redis({ port, lazyConnect: true, retryStrategy: null, commandTimeout: 5_000 });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return await redis.call(name, ...words);
  } finally {
    redis.disconnect();
  }
}

/** Repeats `work` until it does not fail. */
async function until(step: () => Promise<unknown>): Promise<void> {
  const deadlineMs = performance.now() + READY_DEADLINE_MS;
  for (;;) {
    try {
      await step();
      return;
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
      await sleep(POLL_INTERVAL_MS);
    }
  }
}
