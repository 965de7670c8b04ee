/** A database on a running Citus; a proxy can cut one node off. */
import { randomBytes } from 'node:crypto';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { distribute } from '@sluice/database/schema/distribute';
import { migrate } from '@sluice/database/schema/migrate';
import { startTcpProxy, type TcpProxy } from '@sluice/database/testing/tcp-proxy';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { sql } from 'kysely';

export interface CitusUnderTest {
  readonly url: string;
  readonly database: Database;
  /** To the node that may be away, from all others. */
  readonly way: TcpProxy;
  /** Workspaces of that node, among these. */
  listBehindWay(environmentIds: readonly number[]): Promise<ReadonlySet<number>>;
  close(): Promise<void>;
}

/** Each has a table for each distributed one, and the drill needs few. */
const SHARD_COUNT = 8;

/** @param serverUrl - a database of a superuser on the coordinator, with the extension and at least two nodes. */
export async function openCitus(serverUrl: string): Promise<CitusUnderTest> {
  const name = `drill_${randomBytes(6).toString('hex')}`;
  const server = open(serverUrl);
  const { rows: nodes } = await sql<{ host: string; port: number }>`
    select nodename as host, nodeport as port from pg_dist_node
     where noderole = 'primary' and isactive and groupid <> 0 order by nodeid`.execute(server);
  const last = nodes.at(-1);
  if (!last || nodes.length < 2) throw new Error('the database names no Citus with two nodes');
  const servers = [
    serverUrl,
    ...nodes.map(({ host, port }) => withPlace(serverUrl, { host, port })),
  ];
  const onServers = async (run: (each: Database) => Promise<unknown>): Promise<void> => {
    for (const each of servers) await using(each, run);
  };
  await onServers((each) => sql`create database ${sql.ref(name)}`.execute(each));
  for (const each of servers)
    await using(withPlace(each, { name }), (own) => sql`create extension citus`.execute(own));
  const way = await startTcpProxy(last.host, last.port);
  const url = withPlace(serverUrl, { name });
  const database = open(url);
  const { hostname, port } = new URL(serverUrl);
  await sql`alter database ${sql.ref(name)} set citus.shard_count = ${sql.lit(SHARD_COUNT)}`.execute(
    server,
  );
  await sql`select citus_set_coordinator_host(${hostname}, ${Number(port || 5432)})`.execute(
    database,
  );
  const reached = [...nodes.slice(0, -1), { host: '127.0.0.1', port: way.port }];
  for (const node of reached)
    await sql`select citus_add_node(${node.host}, ${node.port})`.execute(database);
  // A session of its own: the setting counts from the next one on.
  await using(url, async (own) => {
    await migrate(own);
    await distribute(own);
  });
  await migrateQueues(url);
  return {
    url,
    database,
    way,
    async listBehindWay(environmentIds) {
      const { rows } = await sql<{ id: number }>`
        select id from unnest(${[...environmentIds]}::int[]) as t (id)
          join pg_dist_shard_placement p
            on p.shardid = get_shard_id_for_distribution_column('people', id)
         where p.nodeport = ${way.port}`.execute(database);
      return new Set(rows.map(({ id }) => id));
    },
    async close() {
      way.restore();
      await database.destroy();
      await server.destroy();
      await onServers((each) =>
        sql`drop database ${sql.ref(name)} with (force)`.execute(each).catch(() => undefined),
      );
      await way.close();
    },
  };
}

const open = (url: string): Database =>
  createDatabase({ url, poolMax: 8, applicationName: 'chaos', onError: () => undefined });

async function using(url: string, run: (database: Database) => Promise<unknown>): Promise<void> {
  const database = open(url);
  try {
    await run(database);
  } finally {
    await database.destroy();
  }
}

function withPlace(
  url: string,
  place: { readonly host?: string; readonly port?: number; readonly name?: string },
): string {
  const changed = new URL(url);
  if (place.host !== undefined) changed.hostname = place.host;
  if (place.port !== undefined) changed.port = String(place.port);
  if (place.name !== undefined) changed.pathname = `/${place.name}`;
  return changed.href;
}
