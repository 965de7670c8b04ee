/** Results and counts of commit batches that are applied workspace by workspace. */
import { AppliedInParts, beginParts } from '@sluice/database/events/commit-batch-parts';
import { claimCommitBatches } from '@sluice/database/events/commit-batches';
import { untilLockWaiters } from '@sluice/database/testing/testing';
import { partIdOf, type CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, merge, track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { createApartWorker } from './apart/apart-worker.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, shardOfBatch, type ShardsWorld } from '../support/shards-world.ts';

let world: ShardsWorld;
let one: number;
let other: number;
beforeAll(async () => {
  world = await createShardsWorld('redis');
  await sql`create table away (environment_id int primary key)`.execute(world.database);
  await sql`
    create function expect_node() returns trigger language plpgsql as $$
    begin
      if exists (select from away a where a.environment_id = new.environment_id) then
        raise exception 'connection to the remote node failed' using errcode = '08006';
      end if;
      return new;
    end $$`.execute(world.database);
  await sql`
    create trigger expect_node before insert or update on people
      for each row execute function expect_node()`.execute(world.database);
});
afterAll(() => world.close());
afterEach(() => void vi.useRealTimers());
beforeEach(async () => {
  one = world.newEnvironment();
  other = world.newEnvironment();
  await sql`delete from away`.execute(world.database);
});

const newBatch = (name: string, environmentIds: readonly number[]): CommitBatch => ({
  id: world.newId(),
  operations: environmentIds.flatMap((id) => inEnvironment(id, track('id:a', name))),
});

/** True if the batch is applied in parts. */
async function isInParts({ id }: CommitBatch): Promise<boolean> {
  const { rows } = await sql<{ operationCount: number }>`
    select operation_count as "operationCount" from envelopes where envelope_id = ${id}`.execute(
    world.database,
  );
  return rows[0]?.operationCount === -1;
}

async function addDivided(count: number): Promise<[CommitBatch, ...CommitBatch[]]> {
  const batches = Array.from({ length: count }, (_, n) => newBatch(`step ${n}`, [one, other]));
  await beginParts(
    world.database,
    batches.map(({ id }) => id),
  );
  return batches as [CommitBatch, ...CommitBatch[]];
}

test('each batch is counted with its last part, and each operation once', async () => {
  const [head, ...behind] = await addDivided(3);
  const worker = createApartWorker(world, behind);
  expect(worker.counts).toEqual({ appliedCount: 0, operationCount: 0, deadLetteredCount: 0 });
  expect(await worker.process(head)).toEqual({ outcome: 'done' });
  expect(worker.counts).toEqual({ appliedCount: 3, operationCount: 6, deadLetteredCount: 0 });
});

test('a batch of which a workspace waits comes again, with its progress or else its failure', async () => {
  await sql`insert into away values (${one})`.execute(world.database);
  const [head] = await addDivided(1);
  const worker = createApartWorker(world);
  const reason = 'a workspace waits for its node';
  expect(await worker.process(head)).toEqual({
    outcome: 'retry',
    afterMs: expect.any(Number),
    reason,
    isProgress: true,
  });
  expect(worker.counts).toEqual({ appliedCount: 0, operationCount: 1, deadLetteredCount: 0 });
  expect(await worker.process(head)).toEqual({
    outcome: 'retry',
    afterMs: expect.any(Number),
    reason,
    failure: expect.objectContaining({ message: 'connection to the remote node failed' }),
  });
  expect(await world.eventNames(other)).toEqual(['step 0']);
});

test('a part that another worker applies meanwhile is counted there alone', async () => {
  const [head] = await addDivided(1);
  const worker = createApartWorker(world);
  const claim = { envelopeId: partIdOf(head.id, one), operationCount: 1, traceparent: null };
  const { processing } = await world.database.transaction().execute(async (transaction) => {
    await claimCommitBatches(transaction, [claim], [one], false);
    const begun = worker.process(head);
    await untilLockWaiters(world.database, 1);
    return { processing: begun };
  });
  expect(await processing).toEqual({ outcome: 'done' });
  expect(worker.counts).toEqual({ appliedCount: 1, operationCount: 1, deadLetteredCount: 0 });
  expect(await world.eventNames(one)).toEqual([]);
});

/** A purchase under a person's email, then a merge of that person, each of a shard of its own. */
async function addOfTwoShards() {
  for (;;) {
    const environmentId = world.newEnvironment();
    const people = [identify('id:s', { email: 's@x.y' }), identify('id:p')];
    await world.process(inEnvironment(environmentId, ...people));
    const calls = [track('email:s@x.y', 'bought'), merge('id:p', 'id:s')];
    const batches = await world.add(calls.map((call) => inEnvironment(environmentId, call)));
    const [bought, merged] = batches as [CommitBatch, CommitBatch];
    if (shardOfBatch(bought) !== shardOfBatch(merged)) return { environmentId, bought, merged };
  }
}

test('a part waits a tenth of a second for an earlier one of another shard, and takes it over', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const pending = world.newPending();
  const worker = createApartWorker({ ...world, newPending: () => pending });
  const [divided] = await addDivided(1);
  await worker.process(divided);
  const { environmentId, bought, merged } = await addOfTwoShards();
  // The clock goes on by the waits alone, however busy the machine is.
  let waitedMs = 0;
  const changed = pending.changed.bind(pending);
  vi.spyOn(pending, 'changed').mockImplementation(async (durationMs) => {
    waitedMs += durationMs;
    await changed(durationMs);
    vi.advanceTimersByTime(durationMs);
  });
  expect(await worker.process(merged)).toEqual({ outcome: 'done' });
  expect(waitedMs).toBeCloseTo(100);
  expect(await isInParts(bought)).toBe(true);
  expect(await world.eventNames(environmentId)).toEqual(['bought']);
});

test('a worker that has met a divided batch divides the next one before it tries the whole', async () => {
  const worker = createApartWorker(world);
  const whole = newBatch('whole', [one]);
  expect(await worker.process(whole)).toMatchObject({ outcome: 'done' });
  expect(await isInParts(whole)).toBe(false);
  const [head] = await addDivided(1);
  await worker.process(head);
  const next = newBatch('next', [one]);
  expect(await worker.process(next)).toEqual({ outcome: 'done' });
  expect(await isInParts(next)).toBe(true);
  expect(await world.eventNames(one)).toEqual(['whole', 'step 0', 'next']);
});

test('a batch without a queue behind it is not divided: its error is the caller’s', async () => {
  const [head] = await addDivided(1);
  const worker = createApartWorker(world);
  await expect(worker.processAlone(head)).rejects.toThrow(AppliedInParts);
  expect(await world.eventNames(one)).toEqual([]);
});

test('a batch without a queue behind it is applied whole, also by a worker that has met a divided batch', async () => {
  const [head] = await addDivided(1);
  const worker = createApartWorker(world);
  await worker.process(head);
  const alone = newBatch('alone', [one]);
  expect(await worker.processAlone(alone)).toMatchObject({ outcome: 'done' });
  expect(await isInParts(alone)).toBe(false);
  expect(await world.eventNames(one)).toEqual(['step 0', 'alone']);
});

test('a batch with an error of no node is not divided', async () => {
  const unknown = { ...track('id:a', 'new'), type: 'of.a.newer.version' } as unknown as Operation;
  const batch: CommitBatch = {
    id: world.newId(),
    operations: [...inEnvironment(other, track('id:a', 'old')), ...inEnvironment(one, unknown)],
  };
  await expect(createApartWorker(world).process(batch)).rejects.toThrow('of.a.newer.version');
  expect(await isInParts(batch)).toBe(false);
  expect(await world.eventNames(other)).toEqual([]);
});
