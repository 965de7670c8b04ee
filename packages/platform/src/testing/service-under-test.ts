/** For tests: a service as the real process that operators run, on a free port. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

interface RunningProcess {
  readonly pid: number;
  /** Its log until this call, as parsed lines. */
  readonly logs: readonly Record<string, unknown>[];
  /** Resolves with the exit code; null if a signal ended it. */
  readonly ended: Promise<number | null>;
  /** `SIGKILL` stands for a crash, `SIGTERM` for a stop by an operator. */
  kill(signal: NodeJS.Signals): Promise<number | null>;
}

export interface ServiceUnderTest extends RunningProcess {
  /** The port that its log names. */
  readonly port: number;
  readonly url: string;
}

/** One that may have to wait for something before it listens. */
export interface StartingService extends RunningProcess {
  /** Resolves once it logs a line with a `port`; rejects with its last lines when it ends first or takes too long. */
  readonly started: Promise<ServiceUnderTest>;
}

/** A key for services that keep secrets, used nowhere else. */
export const TEST_SEALING_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`;

/** Half of a test at most: then its error has the last lines of the log. */
const START_DEADLINE_MS = 90_000;
const PROGRAM_DEADLINE_MS = 90_000;
/**
 * As `npm start` and the image have them. The quick start is of the checkout that has the file, which may be of another
 * version. It takes two thirds of a start's CPU away (the API: 1.9 and 0.6 s), and tests start hundreds.
 */
export function nodeFlagsOf(
  mainFile: string,
  settings: Readonly<Record<string, string>> = {},
): string[] {
  const root = mainFile.slice(0, Math.max(0, mainFile.lastIndexOf('/packages/')));
  const quickStart = `${root}/scripts/quick-start.mjs`;
  // It would answer before the hooks of a test that watches which modules are loaded.
  const isQuick = settings['NODE_OPTIONS'] === undefined && existsSync(quickStart);
  return [
    '--disable-warning=ExperimentalWarning',
    ...(isQuick ? [`--import=${pathToFileURL(quickStart).href}`] : []),
  ];
}

/**
 * Starts `mainFile` with these settings and waits until it logs a line with a `port`.
 *
 * @param nodeFlags - of Node, before the file.
 * @param directory - that it runs in, the caller's; by default one of its own, which is gone after its end.
 * @throws Error with the last log lines when it ends first or takes too long.
 */
export async function startServiceUnderTest(
  mainFile: string,
  settings: Readonly<Record<string, string>>,
  nodeFlags: readonly string[] = nodeFlagsOf(mainFile, settings),
  directory?: string,
): Promise<ServiceUnderTest> {
  return (await beginServiceUnderTest(mainFile, settings, nodeFlags, directory)).started;
}

/**
 * The same, without waiting.
 *
 * @param startMsMax - longer if the test lets it wait for something before it listens.
 */
export async function beginServiceUnderTest(
  mainFile: string,
  settings: Readonly<Record<string, string>>,
  nodeFlags: readonly string[] = nodeFlagsOf(mainFile, settings),
  ownDirectory?: string,
  startMsMax = START_DEADLINE_MS,
): Promise<StartingService> {
  const directory = ownDirectory ?? (await makeWorkingDirectory());
  const child = spawn(process.execPath, [...nodeFlags, mainFile], {
    cwd: directory,
    env: {
      LOG_LEVEL: 'info',
      SEALING_KEYS: TEST_SEALING_KEYS,
      // Tests poll often.
      API_KEY_RATE_LIMIT_PER_SECOND: '0',
      API_RATE_LIMIT_PER_MINUTE: '0',
      ...environmentOf(settings),
    },
    // The channel ends with the test, however it ends, and the service with the channel.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const logs: Record<string, unknown>[] = [];
  // Not `exit`: its last lines may still be on their way then.
  const ended = new Promise<number | null>((resolve) =>
    child.once('close', (code) => {
      const removed = ownDirectory ?? rm(directory, { recursive: true, force: true });
      void Promise.resolve(removed).then(() => resolve(code));
    }),
  );
  const port = new Promise<number>((resolve) => {
    createInterface({ input: child.stdout as Readable }).on('line', (line) => {
      const entry = line.startsWith('{')
        ? (JSON.parse(line) as Record<string, unknown>)
        : { text: line };
      logs.push(entry);
      if (typeof entry['port'] === 'number') resolve(entry['port']);
    });
  });
  createInterface({ input: child.stderr as Readable }).on('line', (line) =>
    logs.push({ stderr: line }),
  );
  const failure = Promise.race([
    ended.then((code) => `ended with ${code}`),
    new Promise<string>((resolve) =>
      setTimeout(resolve, startMsMax, 'did not start in time').unref(),
    ),
  ]);
  const running: RunningProcess = {
    pid: child.pid as number,
    logs,
    ended,
    kill(signal) {
      child.kill(signal);
      return ended;
    },
  };
  const start = async (): Promise<ServiceUnderTest> => {
    const outcome = await Promise.race([port, failure]);
    if (typeof outcome === 'number')
      return { ...running, port: outcome, url: `http://127.0.0.1:${outcome}` };
    child.kill('SIGKILL');
    const lastLines = logs.slice(-20).map((entry) => JSON.stringify(entry));
    throw new Error(`${mainFile} ${outcome}:\n${lastLines.join('\n')}`);
  };
  const started = start();
  // A caller that only needs its end does not wait for the start.
  started.catch(() => undefined);
  return { ...running, started };
}

/**
 * Runs a program that ends by itself.
 *
 * @returns its exit code, null if it did not end in time and was killed; and its output.
 */
export async function runProgramUnderTest(
  mainFile: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const directory = await makeWorkingDirectory();
  const child = spawn(process.execPath, [...nodeFlagsOf(mainFile, settings), mainFile], {
    cwd: directory,
    env: environmentOf(settings),
    // A program that goes on is ended with the test, as a service is, or at the deadline.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    timeout: PROGRAM_DEADLINE_MS,
    killSignal: 'SIGKILL',
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    (stream as Readable).on('data', (chunk: Buffer) => void (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  await rm(directory, { recursive: true, force: true });
  return { code, output };
}

/** Its files must not reach the next service. */
const makeWorkingDirectory = () => mkdtemp(join(tmpdir(), 'sluice-service-'));

/** No setting of the test run's own environment may leak in. */
const environmentOf = (settings: Readonly<Record<string, string>>) => ({
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
  ...queuesOnCitus(settings['DATABASE_URL']),
  ...settings,
});

/**
 * If the tests run on Citus, services keep no queues in Postgres (`scripts/test-services.ts`): services of one database
 * share queues in the Redis of the run.
 */
export function queuesOnCitus(databaseUrl: string | undefined): Readonly<Record<string, string>> {
  const redisUrl = process.env['TEST_QUEUES_REDIS_URL'];
  if (redisUrl === undefined || databaseUrl === undefined) return {};
  return { REDIS_URL: redisUrl, QUEUE_PREFIX: new URL(databaseUrl).pathname.slice(1) };
}
