/**
 * The account API against a bare Fastify route. The route runs the same statement through `pg` and answers its
 * rows. Both run in turn, on one Postgres:
 *
 * - `account`: `GET /v1/accounts/{id}`.
 * - `page`: `GET /v1/accounts/{id}/audit_logs?limit=100&cursor=…`, at random places among 2,000,000 entries
 *
 * Ours also authenticates, checks path, query and role, counts the call, and shapes and checks the answer.
 *
 * The page is also timed alone, one request at a time, on a log of 10,000 entries (in its own database) and
 * on the one of 2,000,000: it must not get slower with the log.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { startChildServer, type ChildServer } from './child-server.ts';
import { loadWithWrk, requireWrk, type Load, type LoadResult } from './load.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const FEW_ENTRIES = 10_000;
const MANY_ENTRIES = 2_000_000;
const PAGE_SIZE = 100;
const URL_COUNT = 512;
const CONTENDERS = ['fastify', 'ours'] as const;
type Contender = (typeof CONTENDERS)[number];
const ROUTES = ['account', 'page'] as const;
type Route = (typeof ROUTES)[number];

const HEADERS = { Authorization: `Bearer ${DEMO.accountToken}` };
/** Calls are counted as always, with a limit that is never reached. */
const UNLIMITED = { API_RATE_LIMIT_PER_MINUTE: '10000000' };
const ACCOUNT_PATH = `/v1/accounts/${DEMO.accountId}`;

export async function benchApi(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '5' },
      connections: { type: 'string', default: '32' },
      entries: { type: 'string', default: String(MANY_ENTRIES) },
    },
  });
  const durationSeconds = Number(values.seconds);
  const rounds = Number(values.rounds);
  const connections = Number(values.connections);
  const entryCount = Number(values.entries);
  await requireWrk();

  return withWorld('none', async (world) => {
    const small = await world.addDatabase('few');
    await fillAuditLog(small.database, FEW_ENTRIES);
    await fillAuditLog(world.database, entryCount);

    const fastify = await startChildServer({
      file: join(import.meta.dirname, 'api-fastify-server.ts'),
      environment: { DATABASE_URL: world.databaseUrl, LOG_LEVEL: 'warn', PORT: '18094' },
      url: 'http://127.0.0.1:18094',
      readyPath: ACCOUNT_PATH,
    });
    world.onClose(() => fastify.stop());
    const servers: Record<Contender, ChildServer> = {
      fastify,
      ours: await world.startService('api', 18_093, UNLIMITED),
    };
    const ofFew = await world.startService('api', 18_095, {
      ...UNLIMITED,
      DATABASE_URL: small.databaseUrl,
    });
    const load = (
      route: Route,
      entries: number,
      seconds: number,
      clients: number,
    ): Omit<Load, 'url'> => ({
      method: 'GET',
      paths: route === 'account' ? [ACCOUNT_PATH] : pagePaths(entries),
      headers: HEADERS,
      bodies: [],
      connections: clients,
      durationSeconds: seconds,
    });
    const run = async (
      { url }: ChildServer,
      ...given: Parameters<typeof load>
    ): Promise<LoadResult> => {
      const result = await loadWithWrk({ ...load(...given), url });
      if (result.failures > 0) throw new Error(`${url}: ${result.failures} failed requests`);
      return result;
    };

    await checkCorrectness(servers, entryCount);
    // One client at a time, so that no queue is measured. Both databases are warm and take turns.
    const alone: Record<'few' | 'many', LoadResult[]> = { few: [], many: [] };
    for (let round = 0; round <= rounds; round++) {
      const few = await run(ofFew, 'page', FEW_ENTRIES, durationSeconds, 1);
      const many = await run(servers.ours, 'page', entryCount, durationSeconds, 1);
      if (round === 0) continue;
      alone.few.push(few);
      alone.many.push(many);
      console.log(describe(`${round}/${rounds} alone`, '10,000', few));
      console.log(describe(`${round}/${rounds} alone`, 'all', many));
    }
    const p99 = (which: 'few' | 'many') => median(alone[which].map((result) => result.p99Ms));
    const growth = median(
      alone.many.map((result, i) => result.p99Ms / (alone.few[i]?.p99Ms ?? NaN)),
    );

    const results: Record<Route, Record<Contender, LoadResult[]>> = {
      account: { fastify: [], ours: [] },
      page: { fastify: [], ours: [] },
    };
    for (const route of ROUTES) {
      for (const contender of CONTENDERS)
        await run(servers[contender], route, entryCount, 2, connections);
      for (let round = 1; round <= rounds; round++) {
        for (const contender of CONTENDERS) {
          const result = await run(
            servers[contender],
            route,
            entryCount,
            durationSeconds,
            connections,
          );
          results[route][contender].push(result);
          console.log(describe(`${round}/${rounds} ${route}`, contender, result));
        }
      }
    }
    const medianOf = (
      route: Route,
      contender: Contender,
      part: 'requestsPerSecond' | 'p50Ms' | 'p99Ms',
    ) => median(results[route][contender].map((result) => result[part]));
    const each = <Value>(make: (route: Route, contender: Contender) => [string, Value][]) =>
      Object.fromEntries(
        ROUTES.flatMap((route) => CONTENDERS.flatMap((contender) => make(route, contender))),
      );
    return {
      bench: 'api',
      ratios: {
        ...Object.fromEntries(
          ROUTES.map((route) => [
            `${route} ours/fastify`,
            median(
              results[route].ours.map(
                (result, i) =>
                  result.requestsPerSecond / (results[route].fastify[i]?.requestsPerSecond ?? NaN),
              ),
            ),
          ]),
        ),
        [`page p99 many/few entries`]: growth,
      },
      rates: each((route, contender) => [
        [`${route} ${contender}`, medianOf(route, contender, 'requestsPerSecond')],
      ]),
      latencyMs: {
        ...each((route, contender) => [
          [`${route} ${contender} p50`, medianOf(route, contender, 'p50Ms')],
          [`${route} ${contender} p99`, medianOf(route, contender, 'p99Ms')],
        ]),
        [`page alone p99, ${FEW_ENTRIES} entries`]: p99('few'),
        [`page alone p99, ${entryCount} entries`]: p99('many'),
      },
      details: {
        connections,
        page_size: PAGE_SIZE,
        entries: { many: entryCount, few: FEW_ENTRIES },
      },
      versions: world.versions,
    };
  });
}

/** Places spread over the whole log, in no order. */
function pagePaths(entries: number): string[] {
  return Array.from({ length: URL_COUNT }, (_, index) => {
    const place = (index * 0.618_033_988_75) % 1;
    const cursor = PAGE_SIZE + 2 + Math.floor(place * (entries - PAGE_SIZE - 2));
    return `${ACCOUNT_PATH}/audit_logs?limit=${PAGE_SIZE}&cursor=${cursor}`;
  });
}

/**
 * Adds entries up to number `until`, spread over a year, by users and service accounts. Indexes are made after
 * the rows, which is faster. The hashes are not real, because this benchmark does not verify them.
 */
async function fillAuditLog(database: Database, until: number): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    await sql`set local maintenance_work_mem = '512MB'`.execute(transaction);
    const { rows: indexes } = await sql<{ name: string; definition: string }>`
      select indexname as name, indexdef as definition from pg_indexes
       where tablename = 'audit_logs' and indexname <> 'audit_logs_pkey'`.execute(transaction);
    for (const { name } of indexes) await sql`drop index ${sql.id(name)}`.execute(transaction);
    await sql`
      insert into audit_logs
        (account_id, audit_log_id, occurred_at, actor_type, user_id, service_account_id, credential_id, environment_id,
         action, object_type, object_id, object_name, ip_addr, user_agent, request_id, changes, previous_hash, hash)
      select ${DEMO.accountId}, n, timestamptz '2026-01-01Z' + n * interval '15 seconds',
             case when n % 3 = 0 then 'service_account' else 'user' end,
             case when n % 3 > 0 then 1 end, case when n % 3 = 0 then 1 end, null, 1,
             (array['created', 'updated', 'updated', 'updated', 'deleted'])[1 + n % 5],
             (array['reporting_webhook', 'user', 'api_credential', 'account'])[1 + n % 4], (n % 1000)::text,
             'Object ' || n % 1000, '10.' || n % 4 || '.' || n % 250 || '.' || n % 13, 'Mozilla/5.0 (X11; Linux x86_64)',
             'req_' || n,
             jsonb_build_array(
               jsonb_build_object('attribute', 'name', 'from', 'A', 'to', 'B', 'redacted', false),
               jsonb_build_object('attribute', 'disabled', 'from', false, 'to', true, 'redacted', false)),
             sha256((n - 1)::text::bytea), sha256(n::text::bytea)
        from generate_series(
          (select coalesce(max(audit_log_id), 0) + 1 from audit_logs where account_id = ${DEMO.accountId}),
          ${until}::int) n`.execute(transaction);
    for (const { definition } of indexes) await sql.raw(definition).execute(transaction);
    await sql`
      insert into audit_chains (account_id, last_id) values (${DEMO.accountId}, ${until})
      on conflict (account_id) do update set last_id = excluded.last_id`.execute(transaction);
  });
  await sql`vacuum analyze audit_logs`.execute(database);
  await sql`analyze`.execute(database);
}

/** Both answer the same account and the same entries. */
async function checkCorrectness(
  servers: Record<Contender, ChildServer>,
  entryCount: number,
): Promise<void> {
  const read = async (contender: Contender, path: string) => {
    const answer = await fetch(servers[contender].url + path, { headers: HEADERS });
    if (answer.status !== 200) throw new Error(`${contender} ${path}: ${answer.status}`);
    return (await answer.json()) as {
      account?: { name: string };
      audit_logs: { id?: number; auditLogId?: number }[];
    };
  };
  const names = await Promise.all(
    CONTENDERS.map(async (contender) => (await read(contender, ACCOUNT_PATH)).account?.name),
  );
  if (names.some((name) => name !== 'Demo')) throw new Error(`other accounts: ${names.join()}`);
  for (const path of pagePaths(entryCount).slice(0, 8)) {
    const [fastify, ours] = await Promise.all(
      CONTENDERS.map(async (contender) =>
        (await read(contender, path)).audit_logs
          .map((entry) => entry.id ?? entry.auditLogId)
          .join(),
      ),
    );
    if (fastify !== ours || ours?.split(',').length !== PAGE_SIZE)
      throw new Error(`other entries: ${path}`);
  }
}

function describe(label: string, contender: string, result: LoadResult): string {
  return (
    `${label.padEnd(14)} ${contender.padEnd(8)} ${Math.round(result.requestsPerSecond).toLocaleString('en').padStart(8)} req/s  ` +
    `p50 ${result.p50Ms.toFixed(2)} ms  p99 ${result.p99Ms.toFixed(2)} ms  client ${(result.clientCpu * 100).toFixed(0)} % of a core`
  );
}
