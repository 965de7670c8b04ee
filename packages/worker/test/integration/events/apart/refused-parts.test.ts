/**
 * Divided batches of which the database refuses a part: a node that answers reads and refuses writes, and an error that
 * is of no node. Triggers refuse here, as nodes and statements do.
 */
import { beginParts } from '@sluice/database/events/commit-batch-parts';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { FurtherBatches } from '@sluice/platform/consumers/queue-behind';
import { createLogger } from '@sluice/platform/process/logger';
import { track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ApplyApart } from '../../../../src/events/apart/apply-apart.ts';
import { tenantsOf } from '../../../../src/events/apart/tenant-parts.ts';
import { processCommitBatch } from '../../../../src/events/process-commit-batch.ts';
import { createApartWorker } from './apart-worker.ts';
import { inEnvironment } from '../../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../../support/shards-world.ts';

let world: ShardsWorld;
beforeAll(async () => {
  world = await createShardsWorld('redis');
});
afterAll(() => world.close());

/** Makes the database refuse people of a workspace. */
async function refuse(environmentId: number, sqlState: string): Promise<void> {
  if (!hasTrigger) await createTrigger();
  hasTrigger = true;
  await sql`insert into refused values (${environmentId}, ${sqlState})`.execute(world.database);
}
const refuseNothing = () => sql`delete from refused`.execute(world.database);

let hasTrigger = false;
async function createTrigger(): Promise<void> {
  const { database } = world;
  await sql`create table refused (environment_id int primary key, sqlstate text)`.execute(database);
  // A transaction that is rolled back leaves its count.
  await sql`create sequence refusals minvalue 0`.execute(database);
  await sql`
    create function refuse() returns trigger language plpgsql as $$
    declare
      state text := (select sqlstate from refused r where r.environment_id = new.environment_id);
    begin
      if state is null then
        return new;
      end if;
      perform nextval('refusals');
      raise exception 'refused by the test' using errcode = state;
    end $$`.execute(database);
  await sql`
    create trigger refuse before insert or update on people for each row execute function refuse()`.execute(
    database,
  );
}

async function countRefusals(): Promise<number> {
  const { rows } = await sql<{ count: string }>`select last_value as count from refusals`.execute(
    world.database,
  );
  return Number(rows[0]?.count);
}

async function addDivided(count: number, tenants: readonly number[]): Promise<CommitBatch[]> {
  const batches = Array.from({ length: count }, (_, index) => ({
    id: world.newId(),
    operations: tenants.flatMap((tenant) => inEnvironment(tenant, track('id:a', `step ${index}`))),
  }));
  await beginParts(
    world.database,
    batches.map(({ id }) => id),
  );
  return batches;
}

const DONE = { outcome: 'done' };

test('a node that answers reads and refuses writes is tried with one part, without reading the queue again', async () => {
  const [refused, there] = [world.newEnvironment(), world.newEnvironment()];
  await refuse(refused, '08006');
  const [head, ...behind] = (await addDivided(4, [refused, there])) as [
    CommitBatch,
    ...CommitBatch[],
  ];
  const worker = createApartWorker(world, behind);
  expect(await worker.process(head)).toMatchObject({ outcome: 'retry', isProgress: true });
  expect(await world.eventNames(there)).toHaveLength(4);
  const before = await countRefusals();
  await vi.waitFor(
    async () => {
      await worker.process(head);
      expect(await countRefusals()).toBeGreaterThan(before);
    },
    { timeout: 10_000, interval: 20 },
  );
  await worker.process(head);
  expect(worker.readFrom.filter((place) => place === 0)).toHaveLength(1);

  await refuseNothing();
  await vi.waitFor(async () => expect(await worker.process(head)).toEqual(DONE), {
    timeout: 10_000,
    interval: 20,
  });
  expect(await world.eventNames(refused)).toHaveLength(4);
  expect(new Set([head, ...behind].map(({ id }) => id))).toEqual(new Set(worker.removed));
});

test('one attempt shows for all workspaces of a node that it is away', async () => {
  const tenants = [1, 2, 3, 4].map(() => world.newEnvironment());
  const [first, second, third, there] = tenants as [number, number, number, number];
  const attempts: number[] = [];
  let isAway = true;
  const apart = new ApplyApart({
    database: world.database,
    logger: createLogger('test', 'silent'),
    listNodes: async (environmentIds) =>
      new Map(environmentIds.map((id) => [id, id === there ? 2 : 1])),
    applyParts: (part, behind, pending) => {
      const [tenant = 0] = tenantsOf(part);
      attempts.push(tenant);
      if (isAway && tenant !== there)
        throw Object.assign(new Error('connection to the remote node failed'), { code: '08006' });
      return processCommitBatch(world.deps, part, behind, pending);
    },
  });
  const [head, ...behind] = (await addDivided(2, tenants)) as [CommitBatch, CommitBatch];
  const queue: CommitBatch[] = [...behind];
  const further: FurtherBatches = {
    listFurther: async (count, skipped) => queue.slice(skipped, skipped + count),
    removeFurther: async (ids) => void queue.splice(0, ids.includes(head.id) ? ids.length - 1 : 0),
  };
  const pending = world.newPending();
  await apart.step(head, further, pending);
  expect([...new Set(attempts)]).toEqual([first, there]);
  expect(await world.eventNames(there)).toHaveLength(2);

  isAway = false;
  await vi.waitFor(
    async () => expect(await apart.step(head, further, pending)).toMatchObject({ isDone: true }),
    { timeout: 10_000, interval: 20 },
  );
  for (const tenant of [first, second, third])
    expect(await world.eventNames(tenant)).toHaveLength(2);
});

test('an error of no node makes no workspace wait for its node', async () => {
  const [faulty, there] = [world.newEnvironment(), world.newEnvironment()];
  await refuse(faulty, '55000');
  const [batch] = (await addDivided(1, [faulty, there])) as [CommitBatch];
  const worker = createApartWorker(world);
  expect(await worker.process(batch)).toMatchObject({ outcome: 'retry', isProgress: true });
  expect(await world.eventNames(there)).toEqual(['step 0']);
  await expect(worker.process(batch)).rejects.toThrow('refused by the test');

  await refuseNothing();
  expect(await worker.process(batch)).toEqual(DONE);
  expect(await world.eventNames(faulty)).toEqual(['step 0']);
});
