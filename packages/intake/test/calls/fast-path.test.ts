import { createHash } from 'node:crypto';
import type { Operation } from '@sluice/domain/operations/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { commitBatchText } from '@sluice/platform/queue/commit-batch-writer';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { expect, test } from 'vitest';
import type { Outcome } from '../../src/calls/outcome.ts';
import { acceptCall, type AcceptDependencies } from '../../src/calls/accept.ts';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { Batcher } from '../../src/commit/batcher.ts';
import { routes } from '../../src/calls/calls.ts';
import { RepeatedKeyLooks } from '../../src/calls/repeated-key.ts';
import { RateLimiter, type RateStanding } from '../../src/auth/rate-limit.ts';
import { readBody } from '../../src/calls/read-body.ts';
import { createFastPath, type FastPathCaller } from '../../src/calls/fast-path.ts';
import { FastTrackParser } from '../../src/groups/fast-track-parser.ts';
import { operationsOfText } from '../support/operations-in.ts';

const NOW_MS = 1_764_000_000_000;
const SHARD_COUNT = 4;
const basic = (key: string) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`;

type Overrides = Partial<Pick<FastPathCaller, 'call' | 'authorization' | 'isStrict'>> & {
  readonly name?: string;
  readonly bytes?: Uint8Array;
};
import { capacityOfOne } from '../support/capacity-of-one.ts';

/** Both ways into one batcher, before a broker that confirms, or not. */
function createIntake(
  options: Partial<AcceptDependencies> & {
    isBrokerAway?: boolean;
    pendingSizeBytesMax?: number;
  } = {},
) {
  const flushes: { envelopes: ShardCommitBatch[]; texts: string[]; isAtomic: boolean }[] = [];
  const keys = new KeyRing();
  const key = (name: string, testCredentialId: string | null) => ({
    kind: 'pipelines' as const,
    siteId: null,
    secretHash: createHash('sha256').update(name).digest(),
    environmentId: 1,
    accountId: '1',
    phoneIdentifies: false,
    testCredentialId,
  });
  keys.replace([key('key', null), key('new key', '9')]);
  const newId = createIdGenerator(() => NOW_MS);
  const batcher = new Batcher({
    shardCount: SHARD_COUNT,
    commit: (commitBatches, isAtomic) => {
      if (options.isBrokerAway) return Promise.reject(new Error('away'));
      // The buffers are used again once it has confirmed.
      const texts = commitBatches.map(({ envelope: commitBatch }) => commitBatchText(commitBatch));
      flushes.push({ envelopes: [...commitBatches], texts, isAtomic });
      return Promise.resolve('broker');
    },
    newId,
    pending: capacityOfOne(options.pendingSizeBytesMax ?? 1_000_000),
    onCommitFailure: () => undefined,
  });
  const deps: AcceptDependencies = {
    keys,
    batcher,
    rateLimiter: undefined,
    recordUnauthorized: () => undefined,
    retryAfterSeconds: () => 7,
    now: () => NOW_MS,
    newId,
    ...options,
  };
  const looks = new RepeatedKeyLooks(() => 0);
  const takeCall = createFastPath(deps, new FastTrackParser());
  const submissionOf = (body: unknown, overrides: Overrides) => {
    const route = routes.find(({ call }) => call.name === (overrides.name ?? 'pipelines.track'));
    if (route === undefined) throw new Error('no such call');
    return {
      call: route.call,
      authorization: basic('key'),
      isStrict: false,
      mayUseDemo: () => false,
      bytes: new TextEncoder().encode(JSON.stringify(body)),
      ...overrides,
    };
  };
  /** Undefined if it is declined. */
  const fastPath = (body: unknown, overrides: Overrides = {}) => {
    let isTaken = false;
    const answered = new Promise<{ outcome: Outcome; standing: RateStanding | undefined }>(
      (resolve) => {
        const { bytes, ...submission } = submissionOf(body, overrides);
        const caller: FastPathCaller = {
          ...submission,
          mayRepeatKey: looks.mayRepeatKey,
          standing: undefined,
          answer: (outcome) => resolve({ outcome, standing: caller.standing }),
          committed: (outcome) => caller.answer(takeCall.outcomeOf(outcome)),
        };
        isTaken = takeCall.take(caller, bytes);
      },
    );
    return isTaken ? answered : undefined;
  };
  /** The slow path. */
  const accept = (body: unknown, name: string) =>
    new Promise<Outcome>((resolve) => {
      const { bytes, ...submission } = submissionOf(body, { name });
      void acceptCall(
        deps,
        { ...submission, body: readBody(bytes, submission.call.itemsKey), parameters: [] },
        resolve,
      );
    });
  return { parse: fastPath, accept, flushes };
}

const call = { userId: 'u', event: 'e', properties: { a: 1 } };
const track = (userId: string, event: string) => ({ type: 'track', userId, event });

test('a simple call is answered once it is durable', async () => {
  const { parse: fastPath, flushes } = createIntake();
  await expect(fastPath(call)).resolves.toEqual({ outcome: { outcome: 'accepted' } });
  expect(flushes).toHaveLength(1);
  expect(flushes[0]?.isAtomic).toBe(false);
});

test('calls of the fast path and of the slow path keep one order on each shard', async () => {
  const { parse: fastPath, accept, flushes } = createIntake();
  const people = Array.from({ length: 40 }, (_, index) => `user-${index}`);
  const batchOf = (round: number) => ({ batch: people.map((id) => track(id, `${round}`)) });
  await Promise.all([
    fastPath(batchOf(0), { name: 'pipelines.batch' }),
    accept(batchOf(1), 'pipelines.batch'),
    ...people.map((id) => fastPath({ userId: id, event: '2' })),
    accept(batchOf(3), 'pipelines.batch'),
  ]);
  expect(flushes).toHaveLength(1);
  expect(flushes[0]?.isAtomic).toBe(true);
  const eventsByPerson = new Map<string, string>();
  for (const [index, { shard }] of flushes[0]!.envelopes.entries()) {
    for (const operation of operationsOfText(flushes[0]!.texts[index]!)) {
      const { name } = operation as Extract<Operation, { type: 'event.track' }>;
      const person = shardKeyOf(operation);
      expect(shard).toBe(shardOf(1, person, SHARD_COUNT));
      eventsByPerson.set(person, (eventsByPerson.get(person) ?? '') + name);
    }
  }
  expect(Object.fromEntries(eventsByPerson)).toEqual(
    Object.fromEntries(people.map((person) => [person, '0123'])),
  );
});

test('a batch that spans commit batches of one shard is committed together, each of at most 1,000', async () => {
  const { parse: fastPath, flushes } = createIntake();
  await fastPath(
    { batch: Array.from({ length: 2_500 }, () => track('u', 'e')) },
    { name: 'pipelines.batch' },
  );
  const sizes = flushes[0]!.texts.map((text) => operationsOfText(text).length);
  expect({ sizes, isAtomic: flushes[0]!.isAtomic }).toEqual({
    sizes: [1_000, 1_000, 500],
    isAtomic: true,
  });
});

test('a batch is committed in one transaction only if it spans shards', async () => {
  const { parse: fastPath, flushes } = createIntake();
  for (const people of [
    ['u', 'u'],
    ['u', 'v', 'w', 'x', 'y', 'z'],
  ])
    await fastPath(
      { batch: people.map((person) => track(person, 'e')) },
      { name: 'pipelines.batch' },
    );
  expect(flushes.map(({ isAtomic }) => isAtomic)).toEqual([false, true]);
});

test('in strict mode 32 KB are taken', async () => {
  const { parse: fastPath } = createIntake();
  const bytes = Buffer.from(JSON.stringify(call).padEnd(32_768));
  await expect(fastPath(call, { isStrict: true, bytes })).resolves.toMatchObject({
    outcome: { outcome: 'accepted' },
  });
});

test('ids of events never repeat, also if the clock advances between two reads', async () => {
  let looks = 0;
  const { parse: fastPath, flushes } = createIntake({ now: () => NOW_MS + Math.ceil(looks++ / 3) });
  const batch = { batch: Array.from({ length: 3 }, () => track('u', 'e')) };
  for (let round = 0; round < 4; round++) await fastPath(batch, { name: 'pipelines.batch' });
  const ids = flushes.flatMap(({ texts }) =>
    texts.flatMap((text) =>
      operationsOfText(text).map((each) => 'eventId' in each && each.eventId),
    ),
  );
  expect(ids).toHaveLength(12);
  expect(new Set(ids).size).toBe(12);
});

test('a call is answered as overloaded if the broker is away or too many bytes wait', async () => {
  const overloaded = { outcome: { outcome: 'overloaded', retryAfterSeconds: 7 } };
  await expect(createIntake({ isBrokerAway: true }).parse(call)).resolves.toEqual(overloaded);
  await expect(createIntake({ pendingSizeBytesMax: 10 }).parse(call)).resolves.toEqual(overloaded);
});

test('the fast path answers a workspace beyond its rate as rate-limited, and a declined call uses up no rate', async () => {
  const { parse: fastPath, flushes } = createIntake({
    rateLimiter: new RateLimiter({ perSecond: 1, windowSeconds: 2 }, () => 0),
  });
  expect(fastPath({ ...call, event: 'e ' })).toBeUndefined();
  await expect(fastPath(call)).resolves.toMatchObject({ standing: { remaining: 1 } });
  await expect(fastPath(call)).resolves.toMatchObject({ standing: { remaining: 0 } });
  await expect(fastPath(call)).resolves.toMatchObject({
    outcome: { outcome: 'rate-limited' },
    standing: { isTaken: false },
  });
  expect(flushes).toHaveLength(2);
});

test.each([
  ['a key in the body', { authorization: '' }],
  ['credentials that open no workspace', { authorization: basic('other') }],
  ['a key that is only tested', { authorization: basic('new key') }],
  ['a call of another kind', { name: 'pipelines.page' }],
  ['an API of another kind', { name: 'track.v1.anonymous_event' }],
  ['a key twice', { bytes: Buffer.from('{"userId":"u","event":"e","properties":{"a":1,"a":2}}') }],
  [
    'strict mode and more than 32 KB',
    { isStrict: true, bytes: Buffer.from(JSON.stringify(call).padEnd(32_769)) },
  ],
])('with %s the fast path declines the call and commits no operation', (_, overrides) => {
  const { parse: fastPath, flushes } = createIntake();
  expect(fastPath(call, overrides)).toBeUndefined();
  expect(flushes).toEqual([]);
});

test('a workspace that is tailed has no fast path', () => {
  const isTailed = (environmentId: number) => environmentId === 1;
  const { parse: fastPath } = createIntake({ tail: { isTailed, publish: () => undefined } });
  expect(fastPath(call)).toBeUndefined();
});
