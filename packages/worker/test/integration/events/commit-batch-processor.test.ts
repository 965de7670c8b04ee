/** Results and counts of commit batches. */
import { NumberStock } from '@sluice/database/people/numbers';
import { NOW_MS, track } from '@sluice/domain/testing/sample-operations';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  createCommitBatchProcessor,
  type CommitBatchProcessor,
  type ProcessOne,
} from '../../../src/events/commit-batch-processor.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, shardOfBatch, type ShardsWorld } from '../support/shards-world.ts';

let world: ShardsWorld;
let environmentId: number;
let lines: [level: string, fields: object][];
beforeAll(async () => {
  world = await createShardsWorld('redis');
});
afterAll(() => world.close());
beforeEach(() => {
  environmentId = world.newEnvironment();
  lines = [];
});

interface ProcessorOptions {
  readonly tracedProcessing?: (process: ProcessOne) => ProcessOne;
  readonly isDebugging?: boolean;
}

function createProcessor({
  tracedProcessing = (process) => process,
  isDebugging = false,
}: ProcessorOptions = {}): CommitBatchProcessor {
  const note = (level: string) => (fields: object) => void lines.push([level, fields]);
  return createCommitBatchProcessor({
    database: world.database,
    numbers: new NumberStock(),
    newId: world.newId,
    tracedProcessing,
    lanes: { taking: () => undefined, wake: async () => {}, monotonicNow: () => 0 },
    countOperations: () => undefined,
    now: () => NOW_MS,
    logger: Object.assign(createLogger('test', 'silent'), {
      isLevelEnabled: () => isDebugging,
      debug: note('debug'),
      error: note('error'),
    }),
  });
}

const add = (...calls: readonly Operation[][]): Promise<CommitBatch[]> =>
  world.add(calls.map((operations) => inEnvironment(environmentId, ...operations)));

/** Postgres refuses its time. */
const poison = (person: string): Operation => ({
  ...track(person, 'poisoned'),
  occurredAtMs: 'never' as never,
});

test('a batch takes the batches behind it along, and each is counted once', async () => {
  const [first, second, third] = (await add(
    [track('id:a', '1')],
    [track('id:a', '2'), track('id:a', '3')],
    [track('id:a', '4')],
  )) as [CommitBatch, CommitBatch, CommitBatch];
  const processor = createProcessor();
  const pending = world.newPending();
  const process = (batch: CommitBatch, behind: readonly CommitBatch[] = []) =>
    processor.processCommitBatch(batch, async () => behind, pending);

  expect(await process(first, [second, third])).toEqual({ outcome: 'done', behind: 2 });
  expect(await world.eventNames(environmentId)).toEqual(['1', '2', '3', '4']);
  const counted = { appliedCount: 3, operationCount: 4, deadLetteredCount: 0 };
  expect(processor.counts).toEqual(counted);

  // As after a crash between the commit and the end of the job.
  expect(await process(second)).toEqual({ outcome: 'done' });
  expect(await world.eventNames(environmentId)).toHaveLength(4);
  expect(processor.counts).toEqual(counted);
  expect(lines).toEqual([]);
});

test('small batches of two shards that come together are one transaction', async () => {
  const people = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const batches = await add(...people.map((id) => [track(`id:${id}`, 'seen')]));
  expect(new Set(batches.map(shardOfBatch)).size).toBeGreaterThan(1);
  const processor = createProcessor();
  const pending = world.newPending();
  const results = await Promise.all(
    batches.map((batch) => processor.processCommitBatch(batch, async () => [], pending)),
  );
  expect(results).toEqual(people.map(() => ({ outcome: 'done', behind: 0 })));
  const { rows } = await sql`
    select count(distinct xmin::text)::int as transactions, count(*)::int as events from events
     where environment_id = ${environmentId} and name = 'seen'`.execute(world.database);
  expect(rows).toEqual([{ transactions: 1, events: people.length }]);
  expect(processor.counts).toMatchObject({ appliedCount: 8, operationCount: 8 });
});

test('a dead-lettered operation is counted and logged with its batch, and the batch is done', async () => {
  const [batch] = (await add([track('id:a', 'whole'), poison('id:a')])) as [CommitBatch];
  const processor = createProcessor();
  expect(
    await processor.processCommitBatch(batch, async () => [], world.newPending()),
  ).toMatchObject({ outcome: 'done' });
  expect(await world.eventNames(environmentId)).toEqual(['whole']);
  expect(processor.counts).toMatchObject({ appliedCount: 1, deadLetteredCount: 1 });
  expect(lines).toEqual([['error', { envelopeId: batch.id, parked: 1 }]]);
});

test('a batch that must wait for batches of other shards comes again at once, uncounted', async () => {
  const [batch] = (await add([track('id:a', 'seen')])) as [CommitBatch];
  const processor = createProcessor({
    tracedProcessing: () => async () => ({ outcome: 'waiting' }),
  });
  expect(await processor.processCommitBatch(batch, async () => [], world.newPending())).toEqual({
    outcome: 'retry',
    afterMs: 0,
    reason: 'earlier batches come first',
  });
  expect(processor.counts).toEqual({ appliedCount: 0, operationCount: 0, deadLetteredCount: 0 });
});

test('at the level debug a batch is logged with its counts', async () => {
  const [batch] = (await add([track('id:a', 'seen')])) as [CommitBatch];
  await createProcessor({ isDebugging: true }).processCommitBatch(
    batch,
    async () => [],
    world.newPending(),
  );
  expect(lines).toEqual([['debug', expect.objectContaining({ envelopeId: batch.id, parked: 0 })]]);
});
