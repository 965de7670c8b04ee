/**
 * Lists of 100 published messages through a real intake. Its Redis has `appendfsync always`, and the messages have a schema
 * for their type or not. They are compared with batches of 100 events of about the same size. Batches of simple track calls
 * take the fast path, and batches with one other call the normal one.
 *
 * The figure is intake's CPU time per message, as in `batch.ts`.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { putEventType } from '@sluice/database/webhooks/event-type-changes';
import type { Redis } from 'ioredis';
import type { ChildServer } from './child-server.ts';
import { loadWithWrk, requireWrk } from './load.ts';
import { countQueued, emptyQueues } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const SHARD_COUNT = 4;
const LIST_SIZE = 100;
const PORT = 18_087;

const PAYLOAD = {
  order_id: 'o-1234567',
  customer: { id: 'user-17', email: 'ada@example.com', plan: 'pro' },
  total: 42.5,
  currency: 'EUR',
  items: ['sku-1', 'sku-2'],
  placed_at: '2026-11-20T10:00:00.123Z',
};

const SCHEMA = {
  type: 'object',
  required: ['order_id', 'total', 'currency', 'items'],
  additionalProperties: false,
  properties: {
    order_id: { type: 'string', pattern: '^o-\\d+$' },
    customer: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string' },
        email: { type: 'string' },
        plan: { enum: ['free', 'pro'] },
      },
    },
    total: { type: 'number', minimum: 0 },
    currency: { type: 'string', minLength: 3, maxLength: 3 },
    items: { type: 'array', minItems: 1, items: { type: 'string' } },
    placed_at: { type: 'string' },
  },
};

interface Contender {
  readonly path: string;
  readonly authorization: string;
  /** Text that each of its operations has in the broker once. */
  readonly mark: string;
  readonly bodies: readonly string[];
  /** Of a list, where that is not all of it. */
  readonly markedCount?: number;
}

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
const listsOf = (listOf: (turn: number) => object): string[] =>
  Array.from({ length: 16 }, (_, turn) => JSON.stringify(listOf(turn)));

const trackCalls = (turn: number): object[] =>
  Array.from({ length: LIST_SIZE }, (_, index) => ({
    type: 'track',
    userId: `user-${(turn * 7 + index) % 64}`,
    event: 'order.placed',
    properties: PAYLOAD,
  }));
const messages = (type: string): string[] =>
  listsOf(() => ({
    messages: Array.from({ length: LIST_SIZE }, () => ({ event_type: type, payload: PAYLOAD })),
  }));

const CONTENDERS = {
  'fast batch': {
    path: '/v1/batch',
    authorization: basic(`${DEMO.writeKey}:`),
    mark: 'order.placed',
    bodies: listsOf((turn) => ({ batch: trackCalls(turn) })),
  },
  batch: {
    path: '/v1/batch',
    authorization: basic(`${DEMO.writeKey}:`),
    mark: 'order.placed',
    markedCount: LIST_SIZE - 1,
    bodies: listsOf((turn) => ({
      batch: [
        ...trackCalls(turn).slice(1),
        { type: 'identify', userId: 'user-1', traits: { last: 'order' } },
      ],
    })),
  },
  publish: {
    path: '/v1/publish',
    authorization: basic(`${DEMO.siteId}:${DEMO.apiKey}`),
    mark: 'order.placed',
    bodies: messages('order.placed'),
  },
  'checked publish': {
    path: '/v1/publish',
    authorization: basic(`${DEMO.siteId}:${DEMO.apiKey}`),
    mark: 'order.checked',
    bodies: messages('order.checked'),
  },
} as const satisfies Record<string, Contender>;

type Name = keyof typeof CONTENDERS;
const NAMES = Object.keys(CONTENDERS) as Name[];

export async function benchPublish(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      connections: { type: 'string', default: '32' },
    },
  });
  const durationSeconds = Number(values.seconds);
  const connections = Number(values.connections);
  await requireWrk();

  return withWorld('none', async (world) => {
    await putEventType(
      world.database,
      DEMO.environmentId,
      'order.checked',
      { description: '', schema: JSON.stringify(SCHEMA) },
      { actor: { type: 'system' } },
      Date.now(),
    );
    const intake = await world.startService('intake', PORT, {
      REDIS_URL: world.redisServer.url,
      SHARD_COUNT: String(SHARD_COUNT),
      INTAKE_SPILL_DIRECTORY: join(world.directory, 'spill'),
    });
    for (const name of NAMES) await checkCorrectness(intake, world.redis, CONTENDERS[name]);
    for (const name of NAMES) await runRound(intake, CONTENDERS[name], 1, connections);

    const perCpuSecond = Object.fromEntries(NAMES.map((name) => [name, []])) as unknown as Record<
      Name,
      number[]
    >;
    for (let round = 1; round <= Number(values.rounds); round++) {
      for (const name of NAMES) {
        await emptyQueues(world.redis);
        const rate = await runRound(intake, CONTENDERS[name], durationSeconds, connections);
        perCpuSecond[name].push(rate);
        const shown = Math.round(rate).toLocaleString('en');
        console.log(
          `${round}/${values.rounds} ${name.padEnd(15)} ${shown} a second of intake's CPU`,
        );
      }
    }
    const ratio = (one: Name, other: Name): number =>
      median(perCpuSecond[one].map((rate, round) => rate / (perCpuSecond[other][round] ?? NaN)));
    return {
      bench: 'publish',
      ratios: {
        'publish/batch': ratio('publish', 'batch'),
        'checked publish/batch': ratio('checked publish', 'batch'),
        'publish/fast batch': ratio('publish', 'fast batch'),
      },
      rates: Object.fromEntries(
        NAMES.map((name) => [`${name}, per CPU second`, median(perCpuSecond[name])]),
      ),
      latencyMs: {},
      details: {
        list_size: LIST_SIZE,
        list_bytes: CONTENDERS.publish.bodies[0]?.length,
        batch_bytes: CONTENDERS.batch.bodies[0]?.length,
        connections,
        shards: SHARD_COUNT,
        redis: 'appendonly yes, appendfsync always',
      },
      versions: world.versions,
    };
  });
}

const headersOf = ({ authorization }: Contender): Record<string, string> => ({
  'Content-Type': 'application/json',
  Authorization: authorization,
});

/** @returns messages a second of intake's CPU, which is idle before and after the load. */
async function runRound(
  intake: ChildServer,
  contender: Contender,
  durationSeconds: number,
  connections: number,
): Promise<number> {
  const cpuBefore = await intake.cpuSeconds();
  const result = await loadWithWrk({
    url: `${intake.url}${contender.path}`,
    method: 'POST',
    headers: headersOf(contender),
    bodies: contender.bodies,
    connections,
    durationSeconds,
  });
  const cpuSeconds = (await intake.cpuSeconds()) - cpuBefore;
  if (result.failures > 0) throw new Error(`${contender.path}: ${result.failures} failed requests`);
  return (result.requestsPerSecond * LIST_SIZE * durationSeconds) / cpuSeconds;
}

/** Checks that all that was answered 200 is in the broker exactly once. */
async function checkCorrectness(
  intake: ChildServer,
  redis: Redis,
  contender: Contender,
): Promise<void> {
  await emptyQueues(redis);
  const answers = await Promise.all(
    contender.bodies.map((body) =>
      fetch(`${intake.url}${contender.path}`, {
        method: 'POST',
        headers: headersOf(contender),
        body,
      }),
    ),
  );
  if (answers.some((answer) => answer.status !== 200)) throw new Error('a valid call was refused');
  const found = await countQueued(redis, contender.mark);
  const expected = contender.bodies.length * (contender.markedCount ?? LIST_SIZE);
  if (found !== expected) throw new Error(`${expected} acknowledged, ${found} in Redis`);
}
