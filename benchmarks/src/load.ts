/**
 * Load on one HTTP endpoint: autocannon, the tool that engineers run, and wrk, because autocannon
 * is itself the limit past some 40,000 requests/s a core. Both report their CPU.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cpuSecondsOf } from './child-server.ts';

/** A call with headers of its own. */
export interface Call {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Load {
  readonly url: string;
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  /** Asked for in turn, instead of the URL's own path, if there is no body. wrk only. */
  readonly paths?: readonly string[];
  /** Made in turn, instead of `paths` and `bodies` and without `headers`. wrk only. */
  readonly calls?: readonly Call[];
  /** Sent in turn, so that no server sees one body only. */
  readonly bodies: readonly string[];
  readonly connections: number;
  readonly durationSeconds: number;
  /** Of all connections. If absent, each answer starts the next request. autocannon only. */
  readonly requestsPerSecond?: number;
}

export interface LoadResult {
  /** Answered, with any status. */
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Answers other than 2xx, and broken connections. Anything but 0 voids the run. */
  readonly failures: number;
  /** Share of one core that the client itself used. */
  readonly clientCpu: number;
}

/** To be called before anything is started. @throws Error if wrk is not installed. */
export async function requireWrk(): Promise<void> {
  // `--version` ends with 1.
  await promisify(execFile)('wrk', ['--version']).catch((error: { code?: unknown }) => {
    if (error.code === 'ENOENT')
      throw new Error('wrk is needed for the ratios: apt-get install wrk');
  });
}

/** wrk, one thread. */
export async function loadWithWrk(load: Load): Promise<LoadResult> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-wrk-'));
  const script = join(directory, 'load.lua');
  const requests = join(directory, 'requests');
  await writeFile(requests, requestsOf(load).map(framed).join(''));
  await writeFile(
    script,
    `local requests, turn = {}, 0
init = function()
  local file = io.open([==[${requests}]==], 'rb')
  for size in function() return file:read('*n') end do
    file:read(1)
    requests[#requests + 1] = file:read(size)
  end
  file:close()
end
request = function() turn = turn % #requests + 1; return requests[turn] end
done = function(summary, latency)
  local e = summary.errors
  io.stderr:write(string.format('{"requests":%d,"us":%d,"p50":%d,"p99":%d,"max":%d,"failures":%d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    e.connect + e.read + e.write + e.status + e.timeout))
end`,
  );
  const child = spawn(
    'wrk',
    [
      '-t1',
      `-c${load.connections}`,
      `-d${load.durationSeconds}s`,
      // A late answer is in the percentiles; by default wrk counts it as failed after two seconds.
      '--timeout=10s',
      '-s',
      script,
      load.url,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let report = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (report += text));
  const clientCpu = watchCpu(child.pid as number, load.durationSeconds);
  await new Promise((resolve) => child.once('exit', resolve));
  const found = JSON.parse(report) as Record<
    'requests' | 'us' | 'p50' | 'p99' | 'max' | 'failures',
    number
  >;
  return {
    requests: found.requests,
    requestsPerSecond: found.requests / (found.us / 1e6),
    p50Ms: found.p50 / 1000,
    p99Ms: found.p99 / 1000,
    maxMs: found.max / 1000,
    failures: found.failures,
    clientCpu: await clientCpu,
  };
}

/** As they go over the wire: wrk sends the bytes of its script. */
function requestsOf({ url, method, headers, paths, bodies, calls }: Load): string[] {
  const { host, pathname } = new URL(url);
  const all: readonly Call[] =
    calls ??
    paths?.map((path) => ({ path, headers })) ??
    bodies.map((body) => ({ path: pathname, headers, body }));
  return all.map((call) => {
    const lines = [`${method} ${call.path} HTTP/1.1`, `Host: ${host}`];
    for (const [name, value] of Object.entries(call.headers)) lines.push(`${name}: ${value}`);
    if (call.body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(call.body)}`);
    return `${lines.join('\r\n')}\r\n\r\n${call.body ?? ''}`;
  });
}

const framed = (text: string): string => `${Buffer.byteLength(text)}\n${text}`;

/** autocannon's own command, in its own process. */
export async function loadWithAutocannon(load: Load): Promise<LoadResult> {
  const program = createRequire(import.meta.url).resolve('autocannon/autocannon.js');
  const headers = Object.entries(load.headers).flatMap(([name, value]) => [
    '-H',
    `${name}=${value}`,
  ]);
  const child = spawn(
    process.execPath,
    [
      program,
      '--json',
      ...['-m', load.method, '-c', String(load.connections), '-d', String(load.durationSeconds)],
      ...(load.requestsPerSecond === undefined ? [] : ['-R', String(load.requestsPerSecond)]),
      ...headers,
      ...['-b', load.bodies[0] as string, load.url],
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  let report = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (report += text));
  const clientCpu = watchCpu(child.pid as number, load.durationSeconds);
  await new Promise((resolve) => child.once('exit', resolve));
  const found = JSON.parse(report) as {
    requests: { total: number };
    duration: number;
    latency: { p50: number; p99: number; max: number };
    non2xx: number;
    errors: number;
  };
  return {
    requests: found.requests.total,
    requestsPerSecond: found.requests.total / found.duration,
    p50Ms: found.latency.p50,
    p99Ms: found.latency.p99,
    maxMs: found.latency.max,
    failures: found.non2xx + found.errors,
    clientCpu: await clientCpu,
  };
}

/** Share of a core between 20 % and 90 % of the run, so that start and end do not count. */
async function watchCpu(pid: number, durationSeconds: number): Promise<number> {
  const wait = (share: number) =>
    new Promise((resolve) => setTimeout(resolve, durationSeconds * share * 1000));
  await wait(0.2);
  const before = await cpuSecondsOf(pid);
  await wait(0.7);
  return ((await cpuSecondsOf(pid)) - before) / (durationSeconds * 0.7);
}
