/**
 * Whole path on one machine: a source, intake, Redis, worker, Postgres, a receiver. Steps of load find the
 * sustained rate. Source and receiver take the same cores.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChildServer } from './child-server.ts';
import { EventSource } from './event-source.ts';
import type { Receiver } from './receiver.ts';
import type { World } from './world.ts';

const STEP = 1.4;
/** Rates closer than 10 % differ by chance only. */
const STEP_MIN = 1.1;
const SETTLED_WITHIN_MS = 1_000;
const LEAST_RATE = 50;
const GIVEN_UP_AFTER_MS = 60_000;
export const PIPELINE_SHARD_COUNT = 4;

export interface Pipeline {
  /** Whose CPU is shown. */
  readonly servers: Readonly<Record<string, ChildServer>>;
  readonly source: EventSource;
  readonly receiver: Receiver;
}

export interface Step {
  readonly rate: number;
  readonly isSustained: boolean;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Cores' share of each process. */
  readonly cpu: Record<string, number>;
}

/** Ours: intake and worker on a durable Redis. */
export async function startPipeline(
  world: World,
  receiver: Receiver,
  ports: { readonly intake: number; readonly worker: number },
): Promise<Pipeline> {
  const broker = {
    REDIS_URL: world.redisServer.url,
    SHARD_COUNT: String(PIPELINE_SHARD_COUNT),
  };
  const intake = await world.startService('intake', ports.intake, broker);
  const worker = await world.startService('worker', ports.worker, {
    ...broker,
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
  });
  const source = new EventSource(intake.url);
  world.onClose(() => source.close());
  return { servers: { intake, worker, receiver: receiver.server }, source, receiver };
}

/**
 * Searches the highest sustained rate: raises it until events pile up (or first lowers it, if `from` is too
 * much), then bisects.
 *
 * @returns all steps, also the ones in which events piled up.
 */
export async function rampUp(
  pipeline: Pipeline,
  { from, seconds, label }: { readonly from: number; readonly seconds: number; label: string },
): Promise<Step[]> {
  const steps: Step[] = [];
  let sustained: number | undefined;
  let tooMuch: number | undefined;
  for (let rate = from; ;) {
    const step = await runStep(pipeline, rate, seconds);
    steps.push(step);
    const cpu = Object.entries(step.cpu).map(
      ([name, share]) => `${name} ${(share * 100).toFixed(0)} %`,
    );
    console.log(
      `${label} ${String(rate).padStart(6)} events/s  ${step.isSustained ? 'sustained' : 'piles up '}  p50 ${step.p50Ms} ms  p99 ${step.p99Ms} ms  p99.9 ${step.p999Ms} ms  ${cpu.join(', ')}`,
    );
    if (step.isSustained) sustained = rate;
    else tooMuch = rate;
    const isFound =
      sustained !== undefined && tooMuch !== undefined && tooMuch / sustained <= STEP_MIN;
    if (isFound || rate < LEAST_RATE) return steps;
    if (tooMuch === undefined) rate *= STEP;
    else rate = sustained === undefined ? rate / STEP : Math.sqrt(sustained * tooMuch);
    rate = Math.round(rate);
  }
}

/** The highest. @throws Error if no rate was sustained. */
export function bestSustained(steps: readonly Step[]): Step {
  const best = steps
    .filter(({ isSustained }) => isSustained)
    .toSorted((one, other) => other.rate - one.rate)[0];
  if (!best) throw new Error(`${steps.at(-1)?.rate} events/s pile up`);
  return best;
}

/** Waits until everything sent has arrived: within `SETTLED_WITHIN_MS` if the rate was sustained. */
async function runStep(pipeline: Pipeline, rate: number, seconds: number): Promise<Step> {
  const { servers, source, receiver } = pipeline;
  await receiver.takeLatenciesMs();
  const cpuBefore = await cpuOf(servers);
  const receivedBefore = await receiver.count();
  const { sent, elapsedSeconds } = await source.sendAtRate(rate, seconds);
  const cpuAfter = await cpuOf(servers);
  const settledInMs = await untilReceived(receiver, receivedBefore + sent);
  const sorted = (await receiver.takeLatenciesMs()).toSorted((a, b) => a - b);
  const at = (quantile: number) => sorted[Math.floor(sorted.length * quantile)] ?? NaN;
  return {
    rate,
    isSustained: settledInMs <= SETTLED_WITHIN_MS,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    p999Ms: at(0.999),
    cpu: Object.fromEntries(
      Object.entries(cpuAfter).map(([name, value]) => [
        name,
        (value - (cpuBefore[name] ?? NaN)) / elapsedSeconds,
      ]),
    ),
  };
}

/** @returns how long it took. @throws Error if they do not arrive in a minute. */
export async function untilReceived(receiver: Receiver, expected: number): Promise<number> {
  const startedAtMs = Date.now();
  for (let count = 0; (count = await receiver.count()) < expected; await sleep(20)) {
    if (Date.now() - startedAtMs > GIVEN_UP_AFTER_MS)
      throw new Error(`${expected} deliveries expected, ${count} arrived`);
  }
  return Date.now() - startedAtMs;
}

async function cpuOf(
  servers: Readonly<Record<string, ChildServer>>,
): Promise<Record<string, number>> {
  const entries = Object.entries(servers).map(
    async ([name, server]) => [name, await server.cpuSeconds()] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}
