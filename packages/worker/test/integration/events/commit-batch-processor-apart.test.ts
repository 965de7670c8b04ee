/** Results and counts of commit batches that are applied workspace by workspace. */
import { AppliedInParts, beginParts } from '@sluice/database/events/commit-batch-parts';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createApartWorker } from './apart/apart-worker.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../support/shards-world.ts';

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
