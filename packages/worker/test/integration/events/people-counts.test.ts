/** The number of people for the bill: exact after all changes of people, and without delay for them. */
import { fileURLToPath } from 'node:url';
import { createDatabase } from '@sluice/database/connection/connection';
import { peopleCounts } from '@sluice/database/migrations/0027_people_counts';
import { createTestDatabase, untilLockWaiters } from '@sluice/database/testing/testing';
import { listPeopleCounts, type PeopleCount } from '@sluice/database/verify/verify-people';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  identify,
  merge,
  remove,
  suppress,
  track,
  unsuppress,
} from '@sluice/domain/testing/sample-operations';
import { runProgramUnderTest } from '@sluice/platform/testing/service-under-test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { createCommitBatchWorld, inEnvironment } from '../support/commit-batch-world.ts';

const differences = (counts: readonly PeopleCount[]): PeopleCount[] =>
  counts.filter(({ kept, counted }) => kept !== counted);

const insertPeople = (environmentId: number, from: number, to: number) => sql`
  insert into people (environment_id, person_id, attributes, created_at, updated_at)
  select ${environmentId}, n, '{}', now(), now() from generate_series(${from}::int, ${to}::int) n`;

test('commit batches of many shards at the same time: people made, merged, removed, suppressed', async () => {
  const world = await createCommitBatchWorld();
  const workspaces = [world.newEnvironment(), world.newEnvironment(), world.newEnvironment()];
  const who = fc.integer({ min: 1, max: 12 }).map((n) => `id:${n}`);
  const operation = fc.oneof(
    { weight: 4, arbitrary: who.map((id) => identify(id)) },
    { weight: 2, arbitrary: who.map((id) => track(id, 'seen')) },
    { weight: 2, arbitrary: who.map((id) => remove(id)) },
    { weight: 1, arbitrary: who.map((id) => suppress(id)) },
    { weight: 1, arbitrary: who.map((id) => unsuppress(id)) },
    { weight: 2, arbitrary: fc.tuple(who, who).map(([one, other]) => merge(one, other)) },
  );
  const commitBatch = fc
    .array(fc.tuple(fc.constantFrom(...workspaces), operation), { minLength: 1, maxLength: 6 })
    .map((each): Operation[] => each.flatMap(([id, made]) => inEnvironment(id, made)));
  const rounds = fc.array(commitBatch, { minLength: 8, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(rounds, async (commitBatches) => {
      await Promise.all(commitBatches.map((operations) => world.process(operations)));
      expect(differences(await listPeopleCounts(world.database))).toEqual([]);
    }),
    { numRuns: 25 },
  );
  // With no people left at all, the test could not fail.
  const left = await listPeopleCounts(world.database);
  expect(left.reduce((sum, { counted }) => sum + counted, 0)).toBeGreaterThan(0);
  const { rows } = await sql<{ slots: number }>`
    select count(*)::int as slots from people_counts group by environment_id`.execute(
    world.database,
  );
  for (const { slots } of rows) expect(slots).toBeLessThanOrEqual(8);
});

test('a transaction that is rolled back is not counted, and one rolled back to a savepoint counts the rest', async () => {
  const { database } = await createTestDatabase();
  await insertPeople(1, 1, 5).execute(database);
  const failing = database.transaction().execute(async (transaction) => {
    await insertPeople(1, 6, 9).execute(transaction);
    await sql`delete from people where person_id <= 2`.execute(transaction);
    throw new Error('taken back');
  });
  await expect(failing).rejects.toThrow('taken back');
  expect(await listPeopleCounts(database)).toEqual([{ environmentId: 1, kept: 5, counted: 5 }]);
  await database.transaction().execute(async (transaction) => {
    await insertPeople(1, 6, 7).execute(transaction);
    await sql`savepoint before`.execute(transaction);
    await insertPeople(1, 8, 9).execute(transaction);
    await insertPeople(2, 1, 1).execute(transaction);
    await sql`rollback to savepoint before`.execute(transaction);
  });
  expect(await listPeopleCounts(database)).toEqual([{ environmentId: 1, kept: 7, counted: 7 }]);
});

test('transactions that create people do not wait for each other, in any order of workspaces', async () => {
  const { database } = await createTestDatabase();
  await insertPeople(1, 1, 1).execute(database);
  await insertPeople(2, 1, 1).execute(database);
  await database.transaction().execute(async (open) => {
    await insertPeople(1, 2, 2).execute(open);
    await insertPeople(2, 2, 2).execute(open);
    await database.transaction().execute(async (other) => {
      // If they waited for each other, it would be for ever.
      await sql`set local lock_timeout = '20s'`.execute(other);
      await insertPeople(2, 3, 3).execute(other);
      await insertPeople(1, 3, 3).execute(other);
      await sql`delete from people where person_id = 1`.execute(other);
    });
  });
  expect(await listPeopleCounts(database)).toEqual([
    { environmentId: 1, kept: 2, counted: 2 },
    { environmentId: 2, kept: 2, counted: 2 },
  ]);
});

test('many people in one statement are counted at once, and all at once forgotten', async () => {
  const { database } = await createTestDatabase();
  await insertPeople(1, 1, 3_000).execute(database);
  await sql`insert into people select * from people where false`.execute(database);
  await sql`delete from people where person_id % 3 = 0`.execute(database);
  expect(await listPeopleCounts(database)).toEqual([
    { environmentId: 1, kept: 2_000, counted: 2_000 },
  ]);
  await sql`truncate people`.execute(database);
  expect(await listPeopleCounts(database)).toEqual([]);
});

test('the migration counts existing people, and counts people created meanwhile once', async () => {
  const { database, url } = await createTestDatabase();
  await sql`
    drop trigger people_inserted on people; drop trigger people_deleted on people;
    drop trigger people_truncated on people; drop function count_people; drop function forget_people_counts;
    drop table people_counts`.execute(database);
  await insertPeople(1, 1, 10).execute(database);
  const migrating = createDatabase({
    url,
    poolMax: 1,
    applicationName: 'migrating',
    connectMsMax: 60_000,
    onError: () => undefined,
  });
  onTestFinished(() => migrating.destroy());
  let migrated: Promise<void> | undefined;
  await database.transaction().execute(async (writer) => {
    await insertPeople(1, 11, 13).execute(writer);
    await sql`delete from people where person_id = 1`.execute(writer);
    migrated = migrating
      .transaction()
      .execute(async (transaction) => peopleCounts.up(transaction as never));
    await untilLockWaiters(database, 1);
  });
  await migrated;
  await insertPeople(1, 14, 14).execute(database);
  expect(await listPeopleCounts(database)).toEqual([{ environmentId: 1, kept: 13, counted: 13 }]);
});

test('`npm run verify` names a workspace whose number differs from its people', async () => {
  const { database, url } = await createTestDatabase();
  await insertPeople(1, 1, 2).execute(database);
  await insertPeople(2, 1, 3).execute(database);
  await sql`update people_counts set people = 4 where environment_id = 2`.execute(database);
  const program = fileURLToPath(new URL('../../../../../scripts/verify.ts', import.meta.url));
  const { code, output } = await runProgramUnderTest(program, { DATABASE_URL: url });
  expect(code).toBe(1);
  expect(output).toContain('number of people: workspace 2: 4 kept, 3 counted');
  expect(output).not.toContain('workspace 1');
}, 120_000);
