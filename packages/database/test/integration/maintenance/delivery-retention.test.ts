/** Days of the log and of the attempts: made ahead, dropped whole, and never with rows that a lane still needs. */
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { listDeliveriesAfter } from '../../../src/delivery/logged-deliveries.ts';
import {
  dropOldDeliveries,
  makeDeliveryPartitions,
} from '../../../src/maintenance/delivery-retention.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase, type TestDatabase } from '../../../src/testing/testing.ts';

let testDatabase: TestDatabase;
let database: Database;
/** A time of our own: far from the real one, whose partitions are there already. */
const FIRST_DAY = Date.UTC(2031, 0, 1);
const DAY_MS = 86_400_000;
const day = (number: number) => new Date(FIRST_DAY + number * DAY_MS);
const textOf = (date: Date) => date.toISOString().slice(0, 10);
const partition = (table: string, number: number) =>
  `${table}_${textOf(day(number)).replaceAll('-', '_')}`;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  // Days of the real time.
  await dropOldDeliveries(database, day(0), 1);
  await insertTestWorkspace(database, 1);
});
afterEach(() => testDatabase.drop());

/** A webhook whose log has `perDay` deliveries a day; those up to the cursor are delivered. */
async function makeLane(days: number, perDay: number, cursor: number): Promise<number> {
  const { webhookId } = await insertTestWebhook(database, 1);
  const days_ = Array.from({ length: days }, (_, number) => textOf(day(number)));
  await sql`
    insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body, day)
    select 1, ${webhookId}, n, 'e' || n, 'customer_subscribed', now(), '{}', (${days_}::date[])[1 + (n - 1) / ${perDay}::int]
      from generate_series(1, ${days * perDay}::int) n`.execute(database);
  await sql`
    insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, status, outcome, failure, day)
    select 1, ${webhookId}, sequence, 1, 5, now(), 200, case when sequence = ${cursor + 1}::int then 'retrying' else 'delivered' end,
           case when sequence = ${cursor + 1}::int then 'status' end, day
      from delivery_log where webhook_id = ${webhookId} and sequence <= ${cursor + 2}::int`.execute(
    database,
  );
  await sql`
    update lanes set last_sequence = ${days * perDay}::int, cursor_sequence = ${cursor}::int,
                     attempted_sequence = least(${cursor + 2}::int, ${days * perDay}::int)
     where webhook_id = ${webhookId}`.execute(database);
  return webhookId;
}

const sequences = async (table: 'delivery_log' | 'delivery_attempts', webhookId: number) => {
  const { rows } = await sql<{ sequence: string }>`
    select sequence from ${sql.table(table)} where webhook_id = ${webhookId} order by 1`.execute(
    database,
  );
  return rows.map(({ sequence }) => Number(sequence));
};
/** A worker's read of a lane whose cursor it believes to stand in a day. */
const readLane = async (
  webhookId: number,
  readFrom: Date,
  { after = 0, attemptedThrough = 0, limit = 10 } = {},
) => {
  const lane = { environmentId: 1, webhookId };
  const [page] = await listDeliveriesAfter(database, [
    { lane, after, attemptedThrough, limit, readFromDay: textOf(readFrom) },
  ]);
  return page;
};
const range = (from: number, through: number) =>
  Array.from({ length: through - from + 1 }, (_, index) => from + index);

describe('days', () => {
  test('are made ahead, once, also by many at the same time', async () => {
    const made = await Promise.all(
      Array.from({ length: 4 }, () => makeDeliveryPartitions(database, day(0), 3)),
    );
    expect(made.toSorted((a, b) => a - b)).toEqual([0, 0, 0, 6]);
    expect(await makeDeliveryPartitions(database, day(1), 3)).toBe(2);
  });

  test('are dropped when they are old, with their attempts, and the others stay', async () => {
    await makeDeliveryPartitions(database, day(0), 6);
    const webhookId = await makeLane(6, 2, 12);
    const outcome = await dropOldDeliveries(database, day(5), 3);
    expect(outcome.dropped).toEqual(
      ['delivery_log', 'delivery_attempts'].flatMap((table) =>
        [0, 1, 2].map((number) => partition(table, number)),
      ),
    );
    expect(await sequences('delivery_log', webhookId)).toEqual(range(7, 12));
    expect(await sequences('delivery_attempts', webhookId)).toEqual(range(7, 12));
    expect(await dropOldDeliveries(database, day(5), 3)).toEqual({ dropped: [], reduced: [] });
  });

  test('keep the unsent deliveries of a lane and its attempts beyond the cursor, and drop the rest', async () => {
    await makeDeliveryPartitions(database, day(0), 6);
    const healthy = await makeLane(6, 4, 24);
    const failing = await makeLane(6, 4, 5);
    const outcome = await dropOldDeliveries(database, day(5), 1);
    expect(outcome.reduced).toEqual([
      ...[1, 2, 3, 4].map((number) => partition('delivery_log', number)),
      partition('delivery_attempts', 1),
    ]);
    expect(await sequences('delivery_log', healthy)).toEqual(range(21, 24));
    expect(await sequences('delivery_log', failing)).toEqual(range(6, 24));
    expect(await sequences('delivery_attempts', failing)).toEqual([6, 7]);

    // It can be read on as before, with its attempts.
    const [page] = await listDeliveriesAfter(database, [
      {
        lane: { environmentId: 1, webhookId: failing },
        after: 5,
        attemptedThrough: 7,
        limit: 100,
        readFromDay: textOf(day(0)),
      },
    ]);
    expect(page?.map(({ sequence }) => sequence)).toEqual(range(6, 24));
    expect(page?.slice(0, 3).map(({ isFinished, retry }) => [isFinished, retry.attempts])).toEqual([
      [false, 1],
      [true, 0],
      [false, 0],
    ]);

    // Once it is delivered the rest goes too.
    await sql`update lanes set cursor_sequence = last_sequence, attempted_sequence = last_sequence`.execute(
      database,
    );
    const later = await dropOldDeliveries(database, day(5), 1);
    expect(later.dropped).toHaveLength(5);
    expect(await sequences('delivery_log', failing)).toEqual(range(21, 24));
  });

  test('keep the remaining deliveries of a running replay, with the attempts that it chooses by, until it ends', async () => {
    await makeDeliveryPartitions(database, day(0), 6);
    const webhookId = await makeLane(6, 4, 24);
    const bystander = await makeLane(6, 4, 24);
    const replay = async (criteria: object) => {
      await sql`
        insert into webhook_replays (environment_id, webhook_id, created_at, created_by, criteria, rate_per_second,
                                     through_sequence, cursor_sequence, endpoint)
        values (1, ${webhookId}, now(), 'test', ${JSON.stringify(criteria)}::jsonb, 10, 11, 5, 'http://receiver.test/')`.execute(
        database,
      );
    };
    const end = () =>
      sql`update webhook_replays set state = 'done', ended_at = now() where state = 'running'`.execute(
        database,
      );
    await replay({ states: ['delivered'] });
    await dropOldDeliveries(database, day(5), 1);
    for (const table of ['delivery_log', 'delivery_attempts'] as const) {
      expect(await sequences(table, webhookId)).toEqual([...range(6, 11), ...range(21, 24)]);
      expect(await sequences(table, bystander)).toEqual(range(21, 24));
    }

    // A replay that does not choose by attempts needs no attempts.
    await end();
    await replay({});
    await dropOldDeliveries(database, day(5), 1);
    expect(await sequences('delivery_log', webhookId)).toEqual([...range(6, 11), ...range(21, 24)]);
    expect(await sequences('delivery_attempts', webhookId)).toEqual(range(21, 24));
    await end();
    await dropOldDeliveries(database, day(5), 1);
    expect(await sequences('delivery_log', webhookId)).toEqual(range(21, 24));
  });

  test('without a partition lose no deliveries, and are cleared when they are old', async () => {
    const webhookId = await makeLane(3, 2, 3);
    expect(await makeDeliveryPartitions(database, day(0), 3)).toBe(0);
    await dropOldDeliveries(database, day(10), 2);
    expect(await sequences('delivery_log', webhookId)).toEqual([4, 5, 6]);
  });

  test('that somebody reads for long are dropped the next time', async () => {
    await makeDeliveryPartitions(database, day(0), 2);
    const webhookId = await makeLane(2, 2, 4);
    await database.transaction().execute(async (transaction) => {
      await sql`select count(*) from delivery_log`.execute(transaction);
      const outcome = await dropOldDeliveries(database, day(1), 1);
      expect(outcome.dropped).not.toContain(partition('delivery_log', 0));
    });
    await dropOldDeliveries(database, day(1), 1);
    expect(await sequences('delivery_log', webhookId)).toEqual([3, 4]);
  });

  test('of deliveries logged before a clock was set back are found all the same', async () => {
    await makeDeliveryPartitions(database, day(0), 3);
    const webhookId = await makeLane(3, 2, 0);
    const page = await readLane(webhookId, day(30));
    expect(page).toHaveLength(6);
  });

  test('are found with each attempt once, though the attempts were made after it was put right', async () => {
    await makeDeliveryPartitions(database, day(0), 4);
    const webhookId = await makeLane(2, 2, 0);
    await sql`update delivery_attempts set day = ${textOf(day(2))}::date where webhook_id = ${webhookId}`.execute(
      database,
    );
    const page = await readLane(webhookId, day(2), { attemptedThrough: 2 });
    expect(page?.[0]?.retry.attempts).toBe(1);
    expect(page?.[1]?.isFinished).toBe(true);
  });

  // A node that was the primary for a while, with a clock days behind.
  test('of deliveries logged between others while a clock was behind leave no gap', async () => {
    await makeDeliveryPartitions(database, day(0), 10);
    const webhookId = await makeLane(1, 6, 0);
    await sql`
      update delivery_log set day = case when sequence in (3, 4) then ${textOf(day(2))}::date else ${textOf(day(9))}::date end
       where webhook_id = ${webhookId}`.execute(database);
    const read = async (after: number, limit: number) => {
      const page = await readLane(webhookId, day(8), { after, limit });
      return page?.map(({ sequence }) => sequence);
    };
    expect(await read(0, 10)).toEqual(range(1, 6));
    expect(await read(0, 3)).toEqual(range(1, 3));
    expect(await read(2, 1)).toEqual([3]);
  });

  test('are found with attempts that were made while the clock was behind', async () => {
    await makeDeliveryPartitions(database, day(0), 10);
    const webhookId = await makeLane(1, 6, 0);
    await sql`update delivery_log set day = ${textOf(day(9))}::date where webhook_id = ${webhookId}`.execute(
      database,
    );
    const page = await readLane(webhookId, day(8), { attemptedThrough: 2 });
    expect(page?.[0]?.retry.attempts).toBe(1);
    expect(page?.map(({ isFinished }) => isFinished).slice(0, 3)).toEqual([false, true, false]);
  });
});
