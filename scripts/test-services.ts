/**
 * Starts the services of a test run, once: a real Postgres and a real Redis on free ports. TEST_DATABASE_URL and
 * TEST_REDIS_URL name other ones. Makes a migrated template database for `createTestDatabase` to clone. If the Postgres
 * is the coordinator of Citus, the template is distributed (`npm run test:distributed`).
 *
 * Both servers end with this process, on every kind of end.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '@sluice/database/connection/connection';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { grantDatabaseRoles } from '@sluice/database/schema/database-roles';
import { distribute } from '@sluice/database/schema/distribute';
import { migrate } from '@sluice/database/schema/migrate';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import type {} from '@sluice/database/testing/testing';
import type {} from '@sluice/platform/testing/testing';

type Close = () => Promise<void>;

const FOLDER_PREFIX = 'sluice-test-';
/** For a look at the remains of a test. If the folder is memory, a day of tests took 15 of 24 GB. */
const KEPT_MS = 3_600_000;

/** @public vitest calls it. */
export default async function setup(project: TestProject): Promise<Close> {
  const closes: Close[] = [];
  const closeAll: Close = async () => {
    for (let close = closes.pop(); close; close = closes.pop()) await close();
  };
  try {
    await removeAgedFolders();
    const directory = await mkdtemp(join(tmpdir(), FOLDER_PREFIX));
    // Postgres' account must pass through.
    await chmod(directory, 0o711);
    closes.push(() => rm(directory, { recursive: true, force: true }));

    const redisUrl = process.env['TEST_REDIS_URL'] ?? (await startRedis(directory, closes));
    const serverUrl = process.env['TEST_DATABASE_URL'] ?? (await startPostgres(directory, closes));
    const nodeUrls = await listNodeUrls(serverUrl);
    const templateName = await createTemplate(nodeUrls, closes);
    // For the processes of test files, which begin later (`platform/src/testing/service-under-test.ts`).
    if (nodeUrls.length > 1) process.env['TEST_QUEUES_REDIS_URL'] = redisUrl;
    project.provide('testRedisUrl', redisUrl);
    project.provide('testServerUrl', serverUrl);
    project.provide('testNodeUrls', nodeUrls);
    project.provide('testTemplateName', templateName);
    return closeAll;
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Folders of runs that were killed, or whose tests failed, once no process has them open. */
async function removeAgedFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(FOLDER_PREFIX)) continue;
    const folder = join(tmpdir(), name);
    const found = await stat(folder).catch(() => undefined);
    if (!found || Date.now() - found.mtimeMs < KEPT_MS || (await isServed(folder))) continue;
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Whether a Postgres runs on it. */
async function isServed(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return pid > 0 && existsSync(`/proc/${pid}`);
}

async function startRedis(directory: string, closes: Close[]): Promise<string> {
  const redis = await startRedisServer({ directory: join(directory, 'redis') });
  closes.push(redis.stop);
  return redis.url;
}

async function startPostgres(directory: string, closes: Close[]): Promise<string> {
  const postgres = await startEmbeddedPostgres({
    directory,
    durability: 'none',
    onProgress: () => {},
  });
  closes.push(async () => {
    const kept = await listKept(postgres.url('postgres'));
    if (kept.length === 0 || process.env['CI']) return postgres.remove();
    // Held by a file that failed: stays up until it was looked at, unless it runs without a person.
    console.error(`kept ${kept.join(', ')}; to look: npm run database:open -- ${directory}`);
    closes.splice(0, 1);
    return postgres.stop();
  });
  return postgres.url('postgres');
}

async function createTemplate(nodeUrls: readonly string[], closes: Close[]): Promise<string> {
  const name = `sluice_template_${randomBytes(6).toString('hex')}`;
  const onEachNode = (statement: string) =>
    Promise.all(nodeUrls.map((nodeUrl) => query(nodeUrl, statement)));
  await onEachNode(`create database ${name}`);
  closes.push(async () => {
    await onEachNode(`alter database ${name} is_template false`);
    await onEachNode(`drop database ${name} with (force)`);
  });
  const urls = nodeUrls.map((nodeUrl) => databaseUrl(nodeUrl, name));
  const [url = ''] = urls;
  if (nodeUrls.length > 1) await joinNodes(urls);
  const database = createDatabase({
    url,
    poolMax: 1,
    applicationName: 'test set-up',
    onError: () => {},
  });
  try {
    await migrate(database);
    await distribute(database);
    await migrateQueues(url);
    await grantDatabaseRoles(database);
  } finally {
    await database.destroy();
  }
  // Cloning needs it without clients, Citus' own sessions among them.
  await onEachNode(`alter database ${name} is_template true allow_connections false`);
  if (nodeUrls.length > 1)
    await onEachNode(
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}'`,
    );
  return name;
}

/** A row a shard and table: enough that tenants are apart, and few, since each test copies them all. */
const SHARDS_A_NODE = 1;

/** Makes Citus of databases that are empty yet, the coordinator's first. */
async function joinNodes(urls: readonly string[]): Promise<void> {
  for (const url of urls) await query(url, 'create extension citus');
  const [coordinator = '', ...workers] = urls;
  const { host, port, name } = partsOf(coordinator);
  await query(
    coordinator,
    `alter database ${name} set citus.shard_count = ${SHARDS_A_NODE * workers.length}`,
  );
  await query(coordinator, `select citus_set_coordinator_host('${host}', ${port})`);
  for (const worker of workers) {
    const node = partsOf(worker);
    await query(coordinator, `select citus_add_node('${node.host}', ${node.port})`);
  }
}

const partsOf = (url: string) => {
  const { hostname, port, pathname } = new URL(url);
  return { host: hostname, port: Number(port || 5432), name: pathname.slice(1) };
};

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** The server, and on the coordinator of Citus also each node that it keeps rows on. */
async function listNodeUrls(serverUrl: string): Promise<string[]> {
  const found = await query(serverUrl, `select from pg_extension where extname = 'citus'`);
  if (found.length === 0) return [serverUrl];
  const nodes = await query(
    serverUrl,
    `select nodename as host, nodeport as port from pg_dist_node
      where noderole = 'primary' and isactive and groupid <> 0 order by nodeid`,
  );
  const workers = nodes.map(({ host, port }) => {
    const url = new URL(serverUrl);
    url.hostname = String(host);
    url.port = String(port);
    return url.href;
  });
  return [serverUrl, ...workers];
}

async function listKept(serverUrl: string): Promise<string[]> {
  const rows = await query(
    serverUrl,
    `select datname from pg_database where datname like 'test\\_%' order by 1`,
  );
  return rows.map((row) => String(row['datname']));
}

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}
