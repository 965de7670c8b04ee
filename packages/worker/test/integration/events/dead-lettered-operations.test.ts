/** A fault of our own code on one operation: its neighbours and its shard go on, and the operation is kept whole. */
import { agreeOnShardCount } from '@sluice/database/schema/installation';
import {
  listDeadLetteredOperations,
  countDeadLetteredOperations,
} from '@sluice/database/events/dead-lettered-operations';
import { AppError } from '@sluice/domain/values/errors';
import type { JsonObject } from '@sluice/domain/values/json';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import type { QueuedOperation } from '@sluice/domain/operations/packed-event';
import { identify, NOW_MS, remove, track } from '@sluice/domain/testing/sample-operations';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { retryDeadLettered } from '../../../src/events/retry-dead-lettered.ts';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';

/** Attributes that no parser lets through: the apply step takes them for an object and throws a TypeError. */
const poison = (person: string): Operation => ({
  ...identify(person, {}),
  attributes: null as never,
});

let world: CommitBatchWorld;
let environmentId: number;
beforeEach(async () => {
  world = await createCommitBatchWorld();
  environmentId = world.newEnvironment();
});

test('operations that meet a fault are dead-lettered whole; the others are applied, in order, once', async () => {
  const operations = inEnvironment(
    environmentId,
    identify('id:1', { step: 1 }),
    track('id:1', 'a'),
    poison('id:2'),
    track('id:1', 'b'),
    poison('id:3'),
    identify('id:1', { step: 2 }),
    track('id:1', 'c'),
  );
  const commitBatch = { id: world.newId(), operations };
  expect(await processCommitBatch(world.deps, commitBatch)).toMatchObject({
    outcome: 'applied',
    counts: { parked: 2 },
  });
  expect(await processCommitBatch(world.deps, commitBatch)).toEqual({ outcome: 'already-applied' });

  expect(await world.eventNames(environmentId)).toEqual(['a', 'b', 'c']);
  expect(await world.rowsOf('people', environmentId, `attributes ->> 'step' as step`)).toEqual([
    { step: '2' },
  ]);
  const deadLettered = await listDeadLetteredOperations(world.database, 10);
  expect(deadLettered.map(({ operation }) => JSON.parse(operation))).toEqual([
    operations[2],
    operations[4],
  ]);
  expect(deadLettered).toMatchObject([
    { environmentId, envelopeId: commitBatch.id, error: expect.stringContaining('TypeError') },
    { environmentId, envelopeId: commitBatch.id },
  ]);
  expect(await world.rowsOf('ingestion_issues', environmentId, 'code, count, source')).toEqual([
    { code: 'parked', count: '2', source: 'person.identify' },
  ]);
});

test.each(['22P02', '22023', '23503', '23P01'])(
  'operations that the database refuses for a cause outside their values (%s) wait, and are applied later',
  async (code) => {
    await sql`create function refuse() returns trigger language plpgsql as ${sql.raw(
      `$$ begin raise exception 'refused' using errcode = '${code}'; end $$`,
    )}`.execute(world.database);
    await sql`create trigger refuse before insert on events execute function refuse()`.execute(
      world.database,
    );
    const operations = inEnvironment(environmentId, track('id:1', 'a'), track('id:2', 'b'));
    const commitBatch = { id: world.newId(), operations };
    await expect(processCommitBatch(world.deps, commitBatch)).rejects.toThrow('refused');
    expect(await countDeadLetteredOperations(world.database, 10)).toBe(0);
    await sql`drop function refuse cascade`.execute(world.database);
    await processCommitBatch(world.deps, commitBatch);
    expect(await world.eventNames(environmentId)).toEqual(['a', 'b']);
  },
);

test('an operation that this version does not know waits for the newer one instead', async () => {
  const unknown = { ...track('id:1', 'a'), type: 'person.frobnicate' } as unknown as Operation;
  const operations = inEnvironment(environmentId, track('id:1', 'before'), unknown);
  await expect(world.process(operations)).rejects.toMatchObject({ code: 'ENVELOPE_INVALID' });
  expect(await world.eventNames(environmentId)).toEqual([]);
  expect(await countDeadLetteredOperations(world.database, 10)).toBe(0);
});

test('an event packed in a way that this version does not know waits too, with its neighbours', async () => {
  const newer = [2, environmentId, 'and more'] as unknown as QueuedOperation;
  const [before] = inEnvironment(environmentId, track('id:1', 'before'));
  const commitBatch = { id: world.newId(), operations: [before as Operation, newer] };
  await expect(processCommitBatch(world.deps, commitBatch)).rejects.toMatchObject({
    code: 'ENVELOPE_INVALID',
  });
  expect(await world.eventNames(environmentId)).toEqual([]);
  expect(await countDeadLetteredOperations(world.database, 10)).toBe(0);
});

test('packed events are dead-lettered as the operations that they are, and their neighbours applied', async () => {
  const [poisoned] = inEnvironment(environmentId, poison('id:2'));
  const packed = (name: string, data: object): QueuedOperation => [
    ...([1, environmentId, NOW_MS, 'id', '1', null, world.newId(), name] as const),
    ...([data as JsonObject, NOW_MS, 'pipelines.track'] as const),
  ];
  const commitBatch = {
    id: world.newId(),
    // No JSON: only a value that Postgres refuses, which no call can bring.
    operations: [
      packed('a', {}),
      packed('b', { text: '\0' }),
      poisoned as Operation,
      packed('c', {}),
    ],
  };
  expect(await processCommitBatch(world.deps, commitBatch)).toMatchObject({
    counts: { parked: 2 },
  });
  expect(await world.eventNames(environmentId)).toEqual(['a', 'c']);
  const deadLettered = await listDeadLetteredOperations(world.database, 10);
  expect(deadLettered.map(({ operation }) => JSON.parse(operation))).toMatchObject([
    { type: 'event.track', name: 'b', person: { kind: 'id', value: '1' } },
    { type: 'person.identify' },
  ]);
});

const neverPauses = () => Promise.reject(new Error('nothing is full'));

test('dead-lettered operations are queued again once, under one id after any cuts', async () => {
  await world.process(
    inEnvironment(environmentId, poison('id:2'), track('id:1', 'a'), poison('id:3')),
  );
  const before = await listDeadLetteredOperations(world.database, 10);
  const added: ShardCommitBatch[] = [];
  const cutAfterAdding = {
    addCommitBatches(commitBatches: readonly ShardCommitBatch[]) {
      added.push(...commitBatches);
      return Promise.reject(new Error('cut'));
    },
  };
  await expect(retryDeadLettered(world.database, cutAfterAdding, 4, neverPauses)).rejects.toThrow(
    'cut',
  );
  expect(await countDeadLetteredOperations(world.database, 10)).toBe(2);
  const adding = {
    addCommitBatches(commitBatches: readonly ShardCommitBatch[]) {
      added.push(...commitBatches);
      return Promise.resolve();
    },
  };
  expect(await retryDeadLettered(world.database, adding, 4, neverPauses)).toBe(2);
  expect(await countDeadLetteredOperations(world.database, 10)).toBe(0);
  expect(added.map(({ envelope: commitBatch }) => commitBatch.id)).toEqual([
    before[0]?.parkedId,
    before[0]?.parkedId,
    before[1]?.parkedId,
  ]);

  // Not mended yet: dead-lettered again, once though it came twice.
  for (const { envelope: commitBatch } of added)
    await processCommitBatch(world.deps, commitBatch as CommitBatch);
  const after = await listDeadLetteredOperations(world.database, 10);
  expect(after.map(({ operation }) => operation)).toEqual(before.map(({ operation }) => operation));
});

test('a dead-lettered call that is queued again brings no person back who was deleted since', async () => {
  await agreeOnShardCount(world.database, 4);
  await sql`alter table people add constraint mended check (attributes ->> 'plan' <> 'pro')`.execute(
    world.database,
  );
  const refused = inEnvironment(
    environmentId,
    identify('id:1', { plan: 'pro', email: 'a@x.example' }),
    identify('id:2', { plan: 'pro' }),
  );
  await world.process(inEnvironment(environmentId, identify('id:1')));
  await world.process(refused);
  await world.process(
    inEnvironment(environmentId, { ...remove('id:1'), receivedAtMs: NOW_MS + 1 }),
  );
  await sql`alter table people drop constraint mended`.execute(world.database);
  const added: ShardCommitBatch[] = [];
  const adding = {
    addCommitBatches(commitBatches: readonly ShardCommitBatch[]) {
      added.push(...commitBatches);
      return Promise.resolve();
    },
  };
  expect(await retryDeadLettered(world.database, adding, 4, neverPauses)).toBe(2);
  for (const { envelope: commitBatch } of added)
    await processCommitBatch(world.deps, commitBatch as CommitBatch);
  expect(await world.rowsOf('people', environmentId, 'id, email')).toEqual([
    { id: '2', email: null },
  ]);
  // The call gave the person the email too.
  const late = inEnvironment(environmentId, track('email:a@x.example', 'seen'));
  await processCommitBatch(world.deps, { id: world.newId(), operations: late, isReplayed: true });
  expect(await world.countOf('people', environmentId)).toBe(1);
});

test('operations that are queued again wait while the broker is full, and go on by themselves', async () => {
  await agreeOnShardCount(world.database, 4);
  await world.process(inEnvironment(environmentId, poison('id:1')));
  let isFull = true;
  const added: ShardCommitBatch[] = [];
  const broker = {
    addCommitBatches: (commitBatches: readonly ShardCommitBatch[]) => {
      if (isFull) return Promise.reject(new AppError('BROKER_FULL', 'full'));
      added.push(...commitBatches);
      return Promise.resolve();
    },
  };
  const pauses: number[] = [];
  const pause = (durationMs: number) => {
    isFull = pauses.push(durationMs) < 3;
    return Promise.resolve();
  };
  expect(await retryDeadLettered(world.database, broker, 4, pause)).toBe(1);
  expect(pauses).toEqual([1_000, 1_000, 1_000]);
  expect(added).toHaveLength(1);
  expect(await countDeadLetteredOperations(world.database, 10)).toBe(0);
});

test('a retry with another number of shards than the installation has is refused, and the operation stays', async () => {
  await agreeOnShardCount(world.database, 4);
  await world.process(inEnvironment(environmentId, poison('id:1')));
  const broker = {
    addCommitBatches: () => Promise.reject(new Error('queued where no worker looks')),
  };
  await expect(retryDeadLettered(world.database, broker, 16, neverPauses)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('SHARD_COUNT'),
  });
  expect(await countDeadLetteredOperations(world.database, 10)).toBe(1);
});
