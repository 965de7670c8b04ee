/**
 * An intake process, a Redis that can fail, senders and results.
 *
 * The Redis can be ended, stopped and filled.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { TrackEvent } from '@sluice/domain/operations/operation';
import { unpackOperation } from '@sluice/domain/operations/packed-event';
import { createLogger } from '@sluice/platform/process/logger';
import { startConsumers, type Consumers } from '@sluice/platform/consumers/queue-consumers';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const AUTHORIZATION = `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`;
const SHARD_COUNT = 2;

export interface Answered {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly durationMs: number;
}

export interface Sender {
  /** The names of the calls that were answered 200, in order. */
  readonly acknowledged: readonly string[];
  /** Every other answer, and `cut` for a connection that ended without one. */
  readonly others: readonly string[];
  stop(): Promise<void>;
}

export interface OutageWorld {
  readonly redis: RedisServer;
  readonly databaseUrl: string;
  /** The names of the events of one person in the order in which they took effect. */
  processed(person: string): string[];
  startIntake(settings?: Record<string, string>): Promise<ServiceUnderTest>;
  /** All of them. */
  applied(): readonly TrackEvent[];
  /** From the queues in Redis, or in Postgres. @param work - takes the time of so many operations, before they take effect. */
  startConsuming(
    kind?: 'redis' | 'postgres',
    work?: (operationCount: number) => Promise<unknown>,
  ): Promise<void>;
  killRedis(): Promise<void>;
  /** On the same port and with the same data; durable by default. */
  restartRedis(appendFsync?: 'everysec'): Promise<void>;
  /** A Redis command as one line. */
  command(line: string): Promise<string>;
  close(): Promise<void>;
}

export async function startOutageWorld(): Promise<OutageWorld> {
  const { database, url } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-outage-'));
  const redisOptions = { directory: join(directory, 'redis') };
  let redis = await startRedisServer(redisOptions);
  const broker = {
    databaseUrl: url,
    redisUrl: redis.url,
    prefix: 'outage',
    shardCount: SHARD_COUNT,
    logger: createLogger('test', 'silent'),
  };
  const intakes: ServiceUnderTest[] = [];
  const claimed = new Set<string>();
  const effects: TrackEvent[] = [];
  let consumers: Consumers | undefined;

  return {
    databaseUrl: url,
    get redis() {
      return redis;
    },
    processed: (person) =>
      effects.filter((event) => event.person?.value === person).map((event) => event.name),
    async startIntake(settings = {}) {
      const intake = await startServiceUnderTest(MAIN, {
        DATABASE_URL: url,
        REDIS_URL: broker.redisUrl,
        QUEUE_PREFIX: broker.prefix,
        SHARD_COUNT: String(SHARD_COUNT),
        INTAKE_PORT: '0',
        INTAKE_COMMIT_DEADLINE_MS: '500',
        INTAKE_SPILL_DIRECTORY: join(directory, 'spill'),
        ...settings,
      });
      intakes.push(intake);
      return intake;
    },
    applied: () => effects,
    async startConsuming(kind = 'redis', work) {
      const queues = kind === 'redis' ? broker : { ...broker, redisUrl: undefined };
      consumers = await startConsumers(queues, {
        async processCommitBatch(commitBatch) {
          await work?.(commitBatch.operations.length);
          // As the worker's claim does: the second copy of a commit batch has no effect.
          if (!claimed.has(commitBatch.id)) {
            claimed.add(commitBatch.id);
            effects.push(...(commitBatch.operations.map(unpackOperation) as TrackEvent[]));
          }
          return { outcome: 'done' };
        },
        wakeLane: () => Promise.resolve({ outcome: 'done' }),
        laneConcurrency: 1,
        now: Date.now,
      });
    },
    killRedis: () => redis.kill(),
    async restartRedis(appendFsync) {
      redis = await startRedisServer({
        ...redisOptions,
        port: redis.port,
        ...(appendFsync && { appendFsync }),
      });
    },
    command: (line) => sendCommand(redis.port, line),
    async close() {
      await Promise.all(intakes.map((intake) => intake.kill('SIGKILL')));
      await consumers?.close();
      await redis.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export async function send(
  intake: ServiceUnderTest,
  person: string,
  event: string,
): Promise<Answered> {
  const startedAtMs = performance.now();
  const answer = await fetch(`${intake.url}/v1/track`, {
    method: 'POST',
    headers: { Authorization: AUTHORIZATION },
    body: JSON.stringify({ userId: person, event }),
  });
  await answer.text();
  return {
    status: answer.status,
    retryAfter: answer.headers.get('retry-after'),
    durationMs: performance.now() - startedAtMs,
  };
}

/** Sends one call after another for one person until it is stopped. */
export function startSender(intake: ServiceUnderTest, person: string): Sender {
  const acknowledged: string[] = [];
  const others: string[] = [];
  let isStopping = false;
  const run = async () => {
    for (let n = 0; !isStopping; n++) {
      const answer = await send(intake, person, `event-${n}`).catch(() => undefined);
      if (answer?.status === 200) acknowledged.push(`event-${n}`);
      else others.push(String(answer?.status ?? 'cut'));
    }
  };
  const running = run();
  return {
    acknowledged,
    others,
    stop() {
      isStopping = true;
      return running;
    },
  };
}

/** The value of one line of `/metrics`. */
export async function metric(intake: ServiceUnderTest, name: string): Promise<number> {
  const page = await (await fetch(`${intake.url}/metrics`)).text();
  return Number(new RegExp(`^${name}{[^}]*} (.+)$`, 'm').exec(page)?.[1]);
}

async function sendCommand(port: number, line: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`${line}\r\n`);
  for await (const chunk of socket) {
    socket.destroy();
    return String(chunk);
  }
  throw new Error('Redis ended the connection');
}
