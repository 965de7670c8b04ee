/**
 * Cost of hostile senders for an honest one: its p99 beside each attack against its p99 without, in turn within a
 * round, and intake's resident memory.
 *
 * The honest sender makes track calls at a fixed rate; its latency runs from the due time of a call, so a late call
 * counts too. A hostile one is a process of its own (`hostile-sender.ts`) with the same key: the key of a web page is
 * public.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Bars } from './bars.ts';
import type { ChildServer } from './child-server.ts';
import { ATTACK_NAMES } from './hostile-sender.ts';
import { trackLoad } from './intake-load.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const PORT = 18_096;
const CALLS_PER_SECOND = 300;
const CONNECTIONS = 32;
const SAMPLE_INTERVAL_MS = 50;
/** Twice so much is no harm, however little it was before. */
const HARMLESS_P99_MS = 12.5;

export const HOSTILE_BARS: Bars = Object.fromEntries(
  ATTACK_NAMES.flatMap((name) => [
    [`p99 ${name}/without`, { atMost: 2 }],
    [`memory ${name}/without`, { atMost: 1.5 }],
  ]),
);

interface Measured {
  readonly p99Ms: number;
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
    const intake = await world.startService('intake', PORT, {
      REDIS_URL: world.redisServer.url,
      QUEUE_PREFIX: 'bench-hostile',
      SHARD_COUNT: '4',
      INTAKE_SPILL_DIRECTORY: join(world.directory, 'spill'),
    });
    // Without workers the queues would grow until Redis is full. In the background, because the measured calls wait
    // for Redis.
    const emptied = setInterval(() => void world.redis.flushall('ASYNC'), 1_000);
    world.onClose(() => clearInterval(emptied));
    await measure(intake, seconds);
    const latencyMs: Record<string, number> = {};
    const ratios: Record<string, number> = {};
    for (const name of names) {
      const rounds: { without: Measured; beside: Measured }[] = [];
      for (let round = 0; round < Number(values.rounds); round++) {
        const without = await measure(intake, seconds);
        const sender = await startSender(name);
        const beside = await measure(intake, seconds).finally(() => sender.stop());
        rounds.push({ without, beside });
      }
      const middle = (at: (round: (typeof rounds)[number]) => number) => median(rounds.map(at));
      latencyMs[`${name} p99`] = middle(({ beside }) => beside.p99Ms);
      latencyMs[`${name} p99 without`] = middle(({ without }) => without.p99Ms);
      ratios[`p99 ${name}/without`] = middle(
        ({ without, beside }) => beside.p99Ms / Math.max(HARMLESS_P99_MS, without.p99Ms),
      );
      ratios[`memory ${name}/without`] = middle(
        ({ without, beside }) => beside.residentBytes / without.residentBytes,
      );
      console.log(
        `${name.padEnd(24)} p99 ${latencyMs[`${name} p99`]?.toFixed(1)} ms, without ${latencyMs[`${name} p99 without`]?.toFixed(1)} ms, memory × ${ratios[`memory ${name}/without`]?.toFixed(2)}`,
      );
    }
    return {
      bench: 'hostile',
      ratios,
      rates: { 'honest calls': CALLS_PER_SECOND },
      latencyMs,
      details: { rounds: Number(values.rounds), seconds, harmless_p99_ms: HARMLESS_P99_MS },
      versions: world.versions,
    };
  });
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

/** The honest sender for so long. */
async function measure(intake: ChildServer, seconds: number): Promise<Measured> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const { headers, bodies } = trackLoad(intake.url, CONNECTIONS, seconds);
  const latenciesMs: number[] = [];
  let residentBytes = 0;
  const sampling = setInterval(() => {
    void intake.residentBytes().then((bytes) => (residentBytes = Math.max(residentBytes, bytes)));
  }, SAMPLE_INTERVAL_MS);
  const calls: Promise<void>[] = [];
  const startedAtMs = performance.now();
  for (let call = 0; call < seconds * CALLS_PER_SECOND; call++) {
    const dueAtMs = startedAtMs + (call * 1_000) / CALLS_PER_SECOND;
    const earlyMs = dueAtMs - performance.now();
    if (earlyMs > 1) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    const body = bodies[call % bodies.length] as string;
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
    clearInterval(sampling);
    agent.destroy();
  }
  const sorted = latenciesMs.toSorted((one, other) => one - other);
  return { p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? NaN, residentBytes };
}
