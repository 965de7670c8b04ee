/**
 * A running fleet for one runbook, with an operator's shell.
 *
 * It has intake, API and worker, a Postgres and a Redis, all real processes of its own, with traffic and an endpoint
 * for deliveries.
 *
 * Steps that depend on the place of the processes (`kubectl`, `docker compose`, `systemctl`) are words of the shell.
 * `roll SERVICE NAME=VALUE…` is `npm run roll`, as on one machine. `more worker` starts one more.
 * `docs/operations/runbooks/README.md` explains this to operators.
 */
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { migrate } from '@sluice/database/schema/migrate';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { startTcpProxy } from '@sluice/database/testing/tcp-proxy';
import { sql } from 'kysely';
import { CHECKOUT, Fleet, type FleetProcess, type Service } from './fleet.ts';
import { startInstalledPostgres } from './installed-postgres.ts';
import { startNginx, type Nginx } from './nginx.ts';
import { openOperatorShell, type OperatorShell } from './operator-shell.ts';
import { startEndpoint, Traffic, type Endpoint } from './traffic.ts';

export interface World {
  readonly database: Database;
  readonly redis: RedisServer;
  readonly redisDirectory: string;
  readonly traffic: Traffic;
  /** Of the API, through nginx if there is one. */
  readonly apiUrl: string;
  /** Set if `proxy` is wanted. */
  readonly nginx: Nginx | undefined;
  readonly endpoint: Endpoint;
  /** The webhook of the endpoint. */
  readonly webhookId: number;
  readonly shell: OperatorShell;
  /** Its processes, the newest last. */
  readonly processes: Readonly<Record<Service, readonly FleetProcess[]>>;
  /** Ends every service, and takes both stores away: there is an empty database then. */
  loseEverything(): Promise<void>;
  startServices(): Promise<void>;
  close(): Promise<void>;
}

export interface WorldOptions {
  /** The database is on a disk of this size; needs root. Absent: on the machine's. */
  readonly diskSizeMebibytes?: number;
  /** The machine's own Postgres, which has its tools beside it. Absent: the embedded one. */
  readonly postgres?: 'installed';
  /** Traffic goes through nginx, with `infra/proxy/nginx.conf`; needs nginx. */
  readonly proxy?: 'nginx' | undefined;
}

const run = promisify(execFile);
/** Of a disk of its own: room that is given up first. */
const BALLAST_MEBIBYTES = 32;
const DATABASE_NAME = 'runbook';

/** @param path - folders of the operator's programs, as in the variable of that name. */
export async function startWorld(path: string, options: WorldOptions = {}): Promise<World> {
  const closes: (() => unknown)[] = [];
  const close = async () => {
    for (const each of closes.toReversed()) await each();
  };
  try {
    return { ...(await openWorld(path, options, closes)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openWorld(
  path: string,
  { diskSizeMebibytes, postgres: kind, proxy }: WorldOptions,
  closes: (() => unknown)[],
): Promise<Omit<World, 'close'>> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-runbook-'));
  closes.push(() => rm(directory, { recursive: true, force: true }));
  // Postgres' account must pass through.
  await chmod(directory, 0o711);
  const postgres =
    kind === 'installed'
      ? await startInstalledPostgres(directory)
      : await startEmbeddedPostgres({ directory, durability: 'full', onProgress: () => {} });
  closes.push(() => ('remove' in postgres ? postgres.remove() : postgres.stop()));
  const server = openDatabase(postgres.url('postgres'));
  closes.push(() => server.destroy());
  if (diskSizeMebibytes === undefined || !('pid' in postgres)) {
    await sql`create database ${sql.ref(DATABASE_NAME)}`.execute(server);
  } else {
    const disk = join(directory, 'disk');
    await mountDisk(disk, diskSizeMebibytes, postgres.pid);
    closes.push(() => run('umount', ['--lazy', disk]));
    await run('fallocate', ['-l', `${BALLAST_MEBIBYTES}M`, join(disk, 'ballast')]);
    await sql`create tablespace small location ${sql.lit(join(disk, 'data'))}`.execute(server);
    await sql`create database ${sql.ref(DATABASE_NAME)} tablespace small`.execute(server);
  }
  const databaseUrl = postgres.url(DATABASE_NAME);
  const database = openDatabase(databaseUrl);
  closes.push(() => database.destroy());
  await migrate(database);
  await migrateQueues(databaseUrl);
  await seedDemoWorkspace(database);

  const redisDirectory = join(directory, 'redis');
  const redis = await startRedisServer({
    directory: redisDirectory,
    extraArguments: ['--include', join(CHECKOUT, 'infra/redis/redis.conf')],
  });
  closes.push(async () => {
    await redis.kill();
    // The operator may have started another one in its place.
    await run('redis-cli', ['-p', String(redis.port), 'shutdown', 'nosave']).catch(() => {});
  });

  const settings: Record<string, string> = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    SHARD_COUNT: '4',
    INTAKE_PORT: String(await findFreePort()),
    INTAKE_COMMIT_DEADLINE_MS: '500',
    INTAKE_SPILL_DIRECTORY: join(directory, 'spill'),
    API_PORT: '0',
    // nginx, if there is one.
    API_TRUSTED_PROXIES: '127.0.0.1',
    WORKER_PORT: '0',
    API_SECRET: 'the secret of this run, long enough for it',
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
    // The runbooks call through nginx, with the demo's tokens.
    DEMO_HOSTS: 'localhost,127.0.0.1',
    WEBHOOK_BACKOFF_BASE_MS: '600000',
    SEALING_KEYS: `1:${Buffer.alloc(32, 1).toString('base64')}`,
  };
  const fleet = new Fleet(settings, directory);
  closes.push(() => fleet.end());
  await fleet.startAll();

  const [api, worker] = await Promise.all(
    (['api', 'worker'] as const).map((service) =>
      startTcpProxy('127.0.0.1', () => fleet.portOf(service)),
    ),
  );
  closes.push(() => Promise.all([api?.close(), worker?.close()]));
  const control = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      const [, verb, service] = (request.url ?? '').split('/');
      answerShell(fleet, verb, service as Service, body.split('\n')).then(
        (answer) => response.end(answer),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  });
  await new Promise<void>((resolve) => void control.listen(0, '127.0.0.1', resolve));
  closes.push(() => void control.close());
  const controlUrl = `http://127.0.0.1:${(control.address() as AddressInfo).port}`;

  const intakeUrl = `http://127.0.0.1:${settings['INTAKE_PORT']}`;
  const apiUrl = `http://127.0.0.1:${api?.port}`;
  const endpoint = await startEndpoint();
  closes.push(() => endpoint.close());
  const webhookId = await makeWebhook(apiUrl, endpoint.url);
  const nginx =
    proxy &&
    (await startNginx(join(CHECKOUT, 'infra/proxy/nginx.conf'), directory, {
      intake: Number(settings['INTAKE_PORT']),
      api: api?.port ?? 0,
    }));
  closes.push(() => nginx?.stop());
  const traffic = new Traffic(
    nginx ? `http://127.0.0.1:${nginx.ports.intake}` : intakeUrl,
    database,
  );
  closes.push(() => traffic.stop());

  const shell = openOperatorShell(CHECKOUT, {
    PATH: `${CHECKOUT}:${CHECKOUT}node_modules/.bin:${path}`,
    HOME: directory,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    REDIS_PORT: String(redis.port),
    REDIS_DIRECTORY: redisDirectory,
    INTAKE: intakeUrl,
    API: apiUrl,
    WORKER: `http://127.0.0.1:${worker?.port}`,
    SLUICE_API_URL: apiUrl,
    SLUICE_INTAKE_URL: intakeUrl,
    SLUICE_KEY: DEMO.appKey,
    SLUICE_ACCOUNT_TOKEN: DEMO.accountToken,
    SEALING_KEYS: settings['SEALING_KEYS'] ?? '',
    WEBHOOK: String(webhookId),
    CONTROL: controlUrl,
    BACKUP: join(directory, 'backup'),
    BALLAST: join(directory, 'disk/ballast'),
  });
  closes.push(() => shell.close());
  await shell.run(SHELL_WORDS);
  return {
    database,
    redis,
    redisDirectory,
    traffic,
    apiUrl: nginx ? `http://127.0.0.1:${nginx.ports.api}` : apiUrl,
    nginx,
    endpoint,
    webhookId,
    shell,
    processes: fleet.processes,
    startServices: () => fleet.startAll(),
    async loseEverything() {
      await fleet.end();
      await redis.kill();
      await rm(redisDirectory, { recursive: true });
      await sql`drop database ${sql.ref(DATABASE_NAME)} with (force)`.execute(server);
      await sql`create database ${sql.ref(DATABASE_NAME)}`.execute(server);
    },
  };
}

/** The two words, and their messages to us. `roll` starts a service of which no process is there. */
const SHELL_WORDS = `
  tell() { curl -sS --fail-with-body --data-binary "$(printf '%s\\n' "\${@:2}")" "$CONTROL/$1"; }
  more() { tell "more/$1" "\${@:2}"; }
  roll() {
    if [ "$(tell "running/$1")" = 0 ]; then more "$@"; return; fi
    npm run --silent roll -- "$@" < /dev/null | while IFS= read -r line; do
      printf '%s\\n' "$line"
      tell "rolled/$1" "\${@:2}" "$line" || return
    done
  }`;

async function answerShell(
  fleet: Fleet,
  verb: string | undefined,
  service: Service,
  lines: readonly string[],
): Promise<string> {
  fleet.notice(service, lines);
  if (verb === 'more') await fleet.start(service);
  return verb === 'running' ? String(fleet.countRunning(service)) : '';
}

function openDatabase(url: string): Database {
  return createDatabase({ url, poolMax: 2, applicationName: 'runbook', onError: () => {} });
}

/** A disk that is really full, also for the account that Postgres runs as. */
async function mountDisk(path: string, sizeMebibytes: number, postgresPid: number): Promise<void> {
  const { uid, gid } = await stat(`/proc/${postgresPid}`);
  await mkdir(path);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMebibytes}m,mode=0711`, 'tmpfs', path]);
  await mkdir(join(path, 'data'), { mode: 0o700 });
  await chown(join(path, 'data'), uid, gid);
}

async function makeWebhook(apiUrl: string, endpoint: string): Promise<number> {
  const answer = await fetch(`${apiUrl}/v1/reporting_webhooks`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${DEMO.appKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      name: 'Endpoint',
      endpoint,
      events: ['customer_subscribed', 'customer_unsubscribed'],
      // A secret like the signing key: it must not be lost when keys are replaced.
      headers: { Authorization: 'Bearer of the endpoint' },
    }),
  });
  const made = (await answer.json()) as { id: number };
  if (answer.status !== 200) throw new Error(`no webhook: ${JSON.stringify(made)}`);
  return made.id;
}
