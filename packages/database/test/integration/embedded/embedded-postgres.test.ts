import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFile,
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rm,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '@sluice/database/embedded/embedded-postgres';
import { commandOfProcess } from '@sluice/database/embedded/process-command';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../support/run-embedded-postgres.ts', import.meta.url));
/** Creating a cluster is half a second, on a busy machine many more. */
const TEST_TIMEOUT_MS = 180_000;

let directory: string;
const started: EmbeddedPostgres[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-test-embedded-'));
  // The account that runs Postgres for root must pass through.
  await chmod(directory, 0o711);
});

afterEach(async () => {
  // Several of a test have the same data: all are stopped before it is removed.
  for (const server of started) await server.stop();
  for (const server of started.splice(0)) await server.remove();
  await rm(directory, { recursive: true, force: true });
});

async function start(
  folder = directory,
  settings: Record<string, string> = {},
): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({
    directory: folder,
    durability: 'none',
    settings,
    onProgress: () => {},
  });
  started.push(server);
  return server;
}

async function query<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

async function postmasterPid(folder = directory): Promise<number> {
  return Number(
    (await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0],
  );
}

async function untilGone(pid: number): Promise<void> {
  await expect.poll(() => commandOfProcess(pid), { timeout: 60_000 }).toBeUndefined();
}

test(
  'written data is there after a restart, on the same port',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const first = await start();
    await first.createDatabase('kept');
    await first.createDatabase('kept');
    await query(first.url('kept'), 'create table notes as select 1 as id');
    await first.stop();
    const second = await start();
    expect(second.port).toBe(first.port);
    expect(await query(second.url('kept'), 'select id from notes')).toEqual([{ id: 1 }]);
  },
);

test(
  'it is a Postgres 18 that asks for its password, sorts the same on every machine and takes settings of the caller',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const server = await start(directory, { shared_buffers: '24MB' });
    const wrong = server.url('postgres').replace(/:[^:@]+@/, ':wrong@');
    await expect(query(wrong, 'select 1')).rejects.toThrow('password authentication failed');
    const [found] = await query<{ version: string; locale: string; provider: string }>(
      server.url('postgres'),
      `select current_setting('server_version') as version, datlocale as locale, datlocprovider as provider
     from pg_database where datname = 'postgres'`,
    );
    expect(await query(server.url('postgres'), 'show shared_buffers')).toEqual([
      { shared_buffers: '24MB' },
    ]);
    expect(found).toMatchObject({
      version: expect.stringMatching(/^18\./),
      locale: 'C.UTF-8',
      provider: 'b',
    });
  },
);

test(
  'the server works in a folder that only its owner can enter, and its removal deletes the data',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const closed = join(directory, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const server = await start(closed);
    expect(await query(server.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }]);
    const dataPath = await realpath(join(closed, 'postgres'));
    await server.remove();
    await expect(lstat(dataPath)).rejects.toThrow('ENOENT');
  },
);

test(
  'a server that an earlier run left behind is stopped, and a new one started on its data',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const leftBehind = await start();
    await query(leftBehind.url('postgres'), 'create table notes as select 1 as id');
    const server = await start();
    await leftBehind.ended;
    expect(await query(server.url('postgres'), 'select id from notes')).toEqual([{ id: 1 }]);
  },
);

test(
  'a process that has the id of a server of before does not keep it from starting',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const first = await start();
    const lockFile = join(directory, 'postgres', 'postmaster.pid');
    const lock = await readFile(lockFile, 'utf8');
    await first.stop();
    await writeFile(lockFile, lock.replace(/^\d+/, String(process.pid)));
    const second = await start();
    expect(await query(second.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }]);
  },
);

test(
  'files of a creation that was cut short are replaced',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    await mkdir(join(directory, 'postgres.new'));
    await writeFile(join(directory, 'postgres.new', 'PG_VERSION'), '18\n');
    const server = await start();
    expect(await query(server.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }]);
  },
);

test(
  'if Postgres does not start, the error has the words of Postgres',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    await (await start()).stop();
    await appendFile(join(directory, 'postgres', 'postgresql.conf'), '\nshared_bufers = 1\n');
    await expect(start()).rejects.toMatchObject({
      code: 'DATABASE_START_FAILED',
      message: expect.stringContaining('unrecognized configuration parameter "shared_bufers"'),
    });
  },
);

test(
  'it ends when the process that started it is killed',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const supervisor = spawn(process.execPath, [PROGRAM, directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(supervisor.stdout, 'data');
    const pid = await postmasterPid();
    expect(await commandOfProcess(pid)).toContain('postgres');
    supervisor.kill('SIGKILL');
    await untilGone(pid);
  },
);

test('Ctrl-C in the terminal does not reach it', { timeout: TEST_TIMEOUT_MS }, async () => {
  // In a terminal every process of the foreground group gets the signal; the supervisor here ignores its own.
  const supervisor = spawn(process.execPath, [PROGRAM, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  await once(supervisor.stdout, 'data');
  const pid = await postmasterPid();
  process.kill(-(supervisor.pid as number), 'SIGINT');
  const [said] = (await once(supervisor.stdout, 'data')) as [Buffer];
  expect(said.toString()).toContain('interrupted; still answering');
  supervisor.kill('SIGKILL');
  await untilGone(pid);
});
