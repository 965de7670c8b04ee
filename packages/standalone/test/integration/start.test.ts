import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandOfProcess } from '@sluice/database/embedded/process-command';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { isOfAWait } from '@sluice/platform/testing/lines-of-a-wait';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { linesToPaste, openShell } from './pasted-lines.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const SLUICE = fileURLToPath(new URL('../../../../sluice', import.meta.url));
const FLAGS = ['--disable-warning=ExperimentalWarning'];
/** A start is about two seconds, on a busy machine many more. */
const TEST_TIMEOUT_MS = 400_000;

let directory: string;
let environment: Record<string, string | undefined>;
const running = new Set<ChildProcess>();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-test-standalone-'));
  await chmod(directory, 0o711);
  const [intake, api, worker, simulator] = await Promise.all([
    findFreePort(),
    findFreePort(),
    findFreePort(),
    findFreePort(),
  ]);
  environment = {
    ...process.env,
    NODE_ENV: 'test',
    SLUICE_DIRECTORY: directory,
    INTAKE_PORT: String(intake),
    API_PORT: String(api),
    WORKER_PORT: String(worker),
    SIMULATOR_PORT: String(simulator),
  };
});

// One that failed must not hold the data of the next.
afterEach(async () => {
  for (const child of running) {
    child.kill('SIGTERM');
    await once(child, 'close');
  }
});

afterAll(async () => {
  const data = await realpath(join(directory, 'postgres')).catch(() => directory);
  for (const path of [data, directory]) await rm(path, { recursive: true, force: true });
});

interface Start {
  readonly child: ChildProcess;
  /** Resolves when the output has the text, or the process ended. */
  readonly says: (text: string) => Promise<string>;
  readonly output: () => string;
}

function start(extra: Record<string, string> = {}): Start {
  const child = spawn(process.execPath, [...FLAGS, MAIN], {
    env: { ...environment, ...extra },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('close', () => running.delete(child));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => void (output += chunk.toString()));
  child.stderr.resume();
  const says = async (text: string): Promise<string> => {
    while (!output.includes(text) && child.exitCode === null && child.signalCode === null) {
      await Promise.race([once(child.stdout, 'data'), once(child, 'close')]);
    }
    expect(output).toContain(text);
    return output;
  };
  return { child, says, output: () => output };
}

/** Everything that a start has begun: the services, in as many processes, and Postgres. */
async function processIds(serviceProcessCount = 1): Promise<number[]> {
  const holder = JSON.parse(await readFile(join(directory, 'held-by.json'), 'utf8')) as {
    services: { pid: number }[];
  };
  const [postmaster] = (
    await readFile(join(directory, 'postgres', 'postmaster.pid'), 'utf8')
  ).split('\n');
  const ids = [...holder.services.map(({ pid }) => pid), Number(postmaster)];
  expect(ids).toHaveLength(serviceProcessCount + 1);
  return ids;
}

async function expectGone(ids: number[]): Promise<void> {
  for (const id of ids)
    await expect.poll(() => commandOfProcess(id), { timeout: 60_000 }).toBeUndefined();
}

/** Files of the data directory that others may read, and folders that they may list. */
async function openToOthers(): Promise<string[]> {
  const paths = ['', ...(await readdir(directory, { recursive: true }))]
    .filter((path) => !path.startsWith('postgres/'))
    .map((path) => join(directory, path));
  const found = await Promise.all(
    paths.map(async (path) => {
      // The services run: a file may be gone since it was listed.
      const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        return undefined;
      });
      // Under root, Postgres' account passes through the folder.
      if (stats === undefined || (stats.mode & 0o066) === 0) return [];
      return [`${path} ${(stats.mode & 0o777).toString(8)}`];
    }),
  );
  return found.flat();
}

test(
  'a start prints lines that work when pasted at once, keeps the data to itself, and stops without a trace',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const first = start();
    const banner = await first.says('webhooks probe 1');
    const lines = linesToPaste(banner);
    expect(lines).toHaveLength(4);
    const shell = await openShell({ ...environment, RECEIVER_PORT: String(await findFreePort()) });
    shell.paste(lines);
    // One after another: each line's output is there before the next one's.
    expect(await shell.says('"plan":"pro"')).toMatch(
      /sluice listens here\n.*"name":"My receiver".*\}\n\{\}\n.*"customer":\{"id":"ada"/s,
    );
    expect(await shell.says('"metric":"order_placed"')).toMatch(
      / 200 genuine \{.*"ada@example\.com"/,
    );
    // Beside a start that has ports of its own.
    shell.paste([`${SLUICE} --json status`]);
    expect(await shell.says('"processes"')).toMatch(/\{"ready":true,/);
    await shell.close();

    const second = start();
    await second.says(
      `DATA_DIRECTORY_HELD: ${await realpath(directory)} is held by process ${first.child.pid} since `,
    );
    expect(second.output()).toContain(`http://127.0.0.1:${environment['INTAKE_PORT']}`);

    const [services] = (await processIds()) as [number];
    process.kill(services, 'SIGKILL');
    await first.says('sluice died (SIGKILL)');
    await first.says('sluice is back');

    expect(await openToOthers()).toEqual([]);

    const ids = await processIds();
    first.child.kill('SIGINT');
    await once(first.child, 'close');
    expect(first.child.exitCode).toBe(0);
    await expectGone(ids);
  },
);

test(
  'after kill -9 every process ends, and the next start has the data',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const killed = start();
    await killed.says('webhooks probe 1');
    const ids = await processIds();
    killed.child.kill('SIGKILL');

    const next = start({ PROCESS_PER_SERVICE: 'true' });
    const banner = await next.says('webhooks probe 1');
    await expectGone(ids);
    const shell = await openShell(environment);
    shell.paste(linesToPaste(banner).slice(-1));
    await shell.says('"email":"ada@example.com"');
    await shell.close();

    const [worker] = (await processIds(4)).slice(2, 3) as [number];
    process.kill(worker, 'SIGKILL');
    await next.says('worker died (SIGKILL)');
    await next.says('worker is back');

    const nextIds = await processIds(4);
    next.child.kill('SIGTERM');
    await once(next.child, 'close');
    await expectGone(nextIds);
  },
);

test(
  'a taken port is one line that names the setting to change',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const refused = start({ API_PORT: String(port) });
    await once(refused.child, 'close');
    taken.close();
    expect(refused.child.exitCode).toBe(1);
    expect(refused.output()).toMatch(
      /^PORT_TAKEN: another process listens on 127\.0\.0\.1:\d+; .*API_PORT=\d+\n$/,
    );
  },
);

test(
  'a setting that cannot be used is named before anything is started',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const refused = start({ INTAKE_PORT: 'eight' });
    await once(refused.child, 'close');
    expect(refused.child.exitCode).toBe(1);
    expect(refused.output()).toMatch(
      /^CONFIG_INVALID: settings that cannot be used: INTAKE_PORT: .+\n$/,
    );
  },
);

test(
  'a Postgres and a Redis that are away are a line each, the start waits, and it is ready once they are there',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const postgres = await startTcpProxyTo((await createTestDatabase()).url);
    const redis = await startTcpProxyTo(testRedisUrl());
    onTestFinished(() => Promise.all([postgres.close(), redis.close()]).then(() => undefined));
    postgres.cut();
    redis.cut();
    const waiting = start({
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      QUEUE_PREFIX: uniquePrefix(),
    });
    await waiting.says('Redis cannot be used with REDIS_URL');
    await waiting.says('Postgres is away: this process waits for it');
    expect(waiting.output()).toMatch(
      /address of DATABASE_URL: (Connection terminated|read ECONNRESET)/,
    );
    // A service meets a Redis that is away too, and waits as long.
    postgres.restore();
    await waiting.says('Postgres is there; the start goes on');
    redis.restore();
    await waiting.says('webhooks probe 1');
    waiting.child.kill('SIGTERM');
    await once(waiting.child, 'close');
    expect(waiting.child.exitCode).toBe(0);
    expect(waiting.output().match(/Postgres is away|with REDIS_URL \(/g)).toHaveLength(2);
  },
);

test(
  'a Postgres that is silent is one line too, and a start that waits can be stopped',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const postgres = await startTcpProxyTo((await createTestDatabase()).url);
    onTestFinished(() => postgres.close());
    postgres.hold();
    const startedAtMs = performance.now();
    const waiting = start({ DATABASE_URL: postgres.url });
    await waiting.says('Postgres is away: this process waits for it');
    // Three seconds, and the time to load the program on a busy machine. Without a bound it would wait until the test ends.
    expect(performance.now() - startedAtMs).toBeLessThan(120_000);
    waiting.child.kill('SIGTERM');
    await once(waiting.child, 'close');
    expect(waiting.child.exitCode).toBe(0);
  },
);

test.each<[string, (url: URL) => void, RegExp]>([
  ['a wrong password', (url) => (url.password = 'wrong'), /password authentication failed/],
  ['a wrong database', (url) => (url.pathname = '/missing'), /database "missing" does not exist/],
  ['a server without TLS', (url) => (url.search = '?sslmode=require'), /does not support SSL/],
])(
  '%s ends the start with one line that names DATABASE_URL, because waiting does not mend it',
  { timeout: TEST_TIMEOUT_MS },
  async (_, change, reason) => {
    const url = new URL((await createTestDatabase()).url);
    change(url);
    const refused = start({ DATABASE_URL: url.href });
    await once(refused.child, 'close');
    expect(refused.child.exitCode).toBe(1);
    const lines = refused.output().split('\n');
    expect(lines.filter((msg) => !isOfAWait({ msg })).join('\n')).toMatch(
      /^DATABASE_UNAVAILABLE: Postgres refuses the values of DATABASE_URL \(.*\); correct it, then start again\n$/,
    );
    expect(refused.output()).toMatch(reason);
  },
);

test(
  'a service that cannot start ends the start with its error on one line, and ends the embedded Postgres',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const failed = start({ WEBHOOK_TIMEOUT_MS: 'long' });
    await once(failed.child, 'close');
    expect(failed.child.exitCode).toBe(1);
    expect(failed.output()).toMatch(
      /^SERVICE_START_FAILED: worker did not start \(exit 1\): CONFIG_INVALID: .*WEBHOOK_TIMEOUT_MS: .+\n$/m,
    );
    await expect(readFile(join(directory, 'postgres', 'postmaster.pid'))).rejects.toThrow('ENOENT');
  },
);

// Security: the demo keys are public knowledge.
test(
  'demo keys are out of force if others can reach intake',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const open = start({ INTAKE_HOST: '0.0.0.0' });
    const banner = await open.says('out of force');
    expect(banner).not.toContain('demo_write_key');
    expect(banner).toContain('Webhooks and imports reach no private addresses.');
    const answer = await fetch(`http://127.0.0.1:${environment['INTAKE_PORT']}/v1/identify`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('demo_write_key:')}`, 'x-strict-mode': '1' },
      body: '{"userId":"eve"}',
    });
    expect(answer.status).toBe(401);
    open.child.kill('SIGTERM');
    await once(open.child, 'close');
  },
);
