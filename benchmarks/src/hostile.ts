/**
 * Cost of hostile senders for an honest one: its p99 beside each attack against its p99 without, in turn within a
 * round, and intake's resident memory.
 *
 * The honest sender makes track calls at a fixed rate, plain and in gzip; its latency runs from the due time of a call, so
 * a late call counts too. Each attack has an intake of its own. The memory is the maximum of all rounds against the
 * maximum of a warm intake before the first attack: memory that one attack leaves would hide the next. A hostile one is a process of its own (`hostile-sender.ts`) with the same key: the key of a web page is
 * public.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request, type OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { Bars } from './bars.ts';
import type { ChildServer } from './child-server.ts';
import { ATTACK_NAMES } from './hostile-sender.ts';
import { trackLoad } from './intake-load.ts';
import { emptyQueues } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld, type World } from './world.ts';

const PORT = 18_096;
const CALLS_PER_SECOND = 300;
const GZIP_CALLS_PER_SECOND = 50;
const CONNECTIONS = 32;
const SAMPLE_INTERVAL_MS = 50;
/** Of a core: an intake without calls uses less. */
const IDLE_UTILISATION = 0.05;
const IDLE_WINDOW_MS = 500;
const IDLE_WAIT_MS_MAX = 30_000;
/** Twice so much is no harm, however little it was before. */
const HARMLESS_P99_MS = 12.5;

export const HOSTILE_BARS: Bars = Object.fromEntries(
  ATTACK_NAMES.flatMap((name) => [
    [`p99 ${name}/without`, { atMost: 2 }],
    [`p99 gzip ${name}/without`, { atMost: 2 }],
    [`memory ${name}/without`, { atMost: 1.5 }],
  ]),
);

interface Measured {
  readonly p99Ms: number;
  readonly gzipP99Ms: number;
  readonly residentBytes: number;
}

export async function benchHostile(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '4' },
      attacks: { type: 'string', default: ATTACK_NAMES.join(',') },
    },
  });
  const names = values.attacks.split(',');
  const seconds = Number(values.seconds);
  return withWorld('none', async (world) => {
    const latencyMs: Record<string, number> = {};
    const ratios: Record<string, number> = {};
    for (const name of names) {
      const intake = await startIntake(world);
      await measure(intake, seconds);
      const warm = await measure(intake, seconds);
      const rounds: { without: Measured; beside: Measured }[] = [];
      for (let round = 0; round < Number(values.rounds); round++) {
        const without = await measure(intake, seconds);
        const sender = await startSender(name);
        const beside = await measure(intake, seconds).finally(() => sender.stop());
        rounds.push({ without, beside });
        await untilIdle(intake);
        // Without workers the queues would grow until Redis is full.
        await emptyQueues(world.redis);
      }
      await intake.stop();
      const middle = (at: (round: (typeof rounds)[number]) => number) => median(rounds.map(at));
      const ratioOf = (key: 'p99Ms' | 'gzipP99Ms'): number =>
        middle(({ without, beside }) => beside[key] / Math.max(HARMLESS_P99_MS, without[key]));
      latencyMs[`${name} p99`] = middle(({ beside }) => beside.p99Ms);
      latencyMs[`${name} p99 without`] = middle(({ without }) => without.p99Ms);
      latencyMs[`${name} gzip p99`] = middle(({ beside }) => beside.gzipP99Ms);
      ratios[`p99 ${name}/without`] = ratioOf('p99Ms');
      ratios[`p99 gzip ${name}/without`] = ratioOf('gzipP99Ms');
      ratios[`memory ${name}/without`] =
        Math.max(...rounds.map(({ beside }) => beside.residentBytes)) / warm.residentBytes;
      console.log(
        `${name.padEnd(24)} p99 ${latencyMs[`${name} p99`]?.toFixed(1)} ms, in gzip ${latencyMs[`${name} gzip p99`]?.toFixed(1)} ms, without ${latencyMs[`${name} p99 without`]?.toFixed(1)} ms, memory × ${ratios[`memory ${name}/without`]?.toFixed(2)}`,
      );
    }
    return {
      bench: 'hostile',
      ratios,
      rates: { 'honest calls': CALLS_PER_SECOND, 'honest calls in gzip': GZIP_CALLS_PER_SECOND },
      latencyMs,
      details: { rounds: Number(values.rounds), seconds, harmless_p99_ms: HARMLESS_P99_MS },
      versions: world.versions,
    };
  });
}

const startIntake = (world: World): Promise<ChildServer> =>
  world.startService('intake', PORT, {
    REDIS_URL: world.redisServer.url,
    QUEUE_PREFIX: 'bench-hostile',
    SHARD_COUNT: '4',
    INTAKE_SPILL_DIRECTORY: join(world.directory, 'spill'),
  });

/** The work on an attack is over: its rest would count in the next round. */
async function untilIdle(intake: ChildServer): Promise<void> {
  const endsAtMs = performance.now() + IDLE_WAIT_MS_MAX;
  for (let isIdle = false; !isIdle;) {
    if (performance.now() > endsAtMs) throw new Error('intake did not become idle after an attack');
    const before = await intake.cpuSeconds();
    await new Promise((resolve) => setTimeout(resolve, IDLE_WINDOW_MS));
    const usedMs = 1_000 * ((await intake.cpuSeconds()) - before);
    isIdle = usedMs < IDLE_UTILISATION * IDLE_WINDOW_MS;
  }
}

async function startSender(name: string): Promise<{ stop(): void }> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'hostile-sender.ts'), name, String(PORT)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await once(child.stdout, 'data');
  return { stop: () => void child.kill('SIGKILL') };
}

/** Both honest senders for so long. */
async function measure(intake: ChildServer, seconds: number): Promise<Measured> {
  const { headers, bodies } = trackLoad(intake.url, CONNECTIONS, seconds);
  const gzipHeaders = { ...headers, 'Content-Encoding': 'gzip' };
  const gzipBodies = bodies.map((body) => gzipSync(body));
  let residentBytes = 0;
  const sampling = setInterval(() => {
    void intake.residentBytes().then((bytes) => (residentBytes = Math.max(residentBytes, bytes)));
  }, SAMPLE_INTERVAL_MS);
  try {
    const [p99Ms, gzipP99Ms] = await Promise.all([
      sendAtRate(intake, headers, bodies as string[], CALLS_PER_SECOND, seconds),
      sendAtRate(intake, gzipHeaders, gzipBodies, GZIP_CALLS_PER_SECOND, seconds),
    ]);
    return { p99Ms, gzipP99Ms, residentBytes };
  } finally {
    clearInterval(sampling);
  }
}

/** @returns the p99 in milliseconds. */
async function sendAtRate(
  intake: ChildServer,
  headers: OutgoingHttpHeaders,
  bodies: readonly (string | Uint8Array)[],
  callsPerSecond: number,
  seconds: number,
): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const latenciesMs: number[] = [];
  const calls: Promise<void>[] = [];
  const startedAtMs = performance.now();
  for (let call = 0; call < seconds * callsPerSecond; call++) {
    const dueAtMs = startedAtMs + (call * 1_000) / callsPerSecond;
    const earlyMs = dueAtMs - performance.now();
    if (earlyMs > 1) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    const body = bodies[call % bodies.length];
    calls.push(
      new Promise((resolve, reject) => {
        const sender = request(`${intake.url}/v1/track`, { method: 'POST', agent, headers });
        sender.once('error', reject);
        sender.once('response', (response) => {
          if (response.statusCode !== 200)
            reject(new Error(`an honest call was answered ${response.statusCode}`));
          response.resume().once('end', () => {
            latenciesMs.push(performance.now() - dueAtMs);
            resolve();
          });
        });
        sender.end(body);
      }),
    );
  }
  try {
    await Promise.all(calls);
  } finally {
    agent.destroy();
  }
  const sorted = latenciesMs.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length * 0.99)] ?? NaN;
}
