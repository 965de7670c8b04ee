/** Claims of commit batches, and places of deliveries in a trace. */
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { listAppliedCommitBatches } from '../../../src/events/commit-batch-parts.ts';
import {
  claimCommitBatches,
  listTraceparents,
  type ClaimedCommitBatches,
  type CommitBatchClaim,
} from '../../../src/events/commit-batches.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const PLANNER_SETTINGS = ['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'jit'] as const;

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
});

const batch = (envelopeId: string): CommitBatchClaim => ({
  envelopeId,
  operationCount: 1,
  traceparent: null,
});

/** Claims them in a transaction of their own, which commits. */
const claim = (
  envelopeIds: readonly string[],
  {
    environmentIds = [],
    triesToKeepMergesOff = false,
    isOfOneShard,
  }: {
    environmentIds?: readonly number[];
    triesToKeepMergesOff?: boolean;
    isOfOneShard?: boolean;
  } = {},
): Promise<ClaimedCommitBatches> =>
  database
    .transaction()
    .execute((transaction) =>
      claimCommitBatches(
        transaction,
        envelopeIds.map(batch),
        environmentIds,
        triesToKeepMergesOff,
        isOfOneShard,
      ),
    );

const applied = async (...envelopeIds: string[]): Promise<string[]> =>
  [...(await listAppliedCommitBatches(database, envelopeIds))].toSorted();

describe('a claim', () => {
  test('stores the columns of each batch, and numbers the batches in their order', async () => {
    const claims = [
      { envelopeId: 'later', operationCount: 7, traceparent: '00-trace-of-later-01' },
      { envelopeId: 'early', operationCount: 3, traceparent: null },
    ];
    const { numbers } = await database
      .transaction()
      .execute((transaction) => claimCommitBatches(transaction, claims, [], false));
    const { rows } = await sql`
      select envelope_id as "envelopeId", operation_count as "operationCount", traceparent,
             envelope_number::int as number from envelopes order by envelope_number`.execute(
      database,
    );
    expect(rows).toEqual(claims.map((each, place) => ({ ...each, number: numbers[place] })));
  });

  test('of a batch that another transaction applied has no number', async () => {
    await claim(['first', 'not asked for']);
    expect((await claim(['first'])).numbers).toEqual([undefined]);
    expect(await applied('first', 'other')).toEqual(['first']);
  });

  test('of new batches is one statement', async () => {
    const sent = await statementsSentBy(() => claim(['one', 'two']));
    expect(sent).toHaveLength(1);
  });

  test('of an empty list returns empty lists', async () => {
    expect(await claim([])).toEqual({ numbers: [], keepsMergesOff: false, reportingIncoming: [] });
  });

  test('returns whether it keeps merges off, also for one batch', async () => {
    expect(await claim(['one'], { triesToKeepMergesOff: true })).toMatchObject({
      keepsMergesOff: true,
    });
    expect(await claim(['two'], { triesToKeepMergesOff: false })).toMatchObject({
      keepsMergesOff: false,
    });
  });

  test('names the workspaces with a webhook for incoming events', async () => {
    for (const environmentId of [7, 8, 9]) await insertTestWorkspace(database, environmentId);
    await insertTestWebhook(database, 7, { events: ['*'] });
    await insertTestWebhook(database, 8);
    await insertTestWebhook(database, 9, { events: ['*'] });
    expect(await claim(['one'], { environmentIds: [7, 8] })).toMatchObject({
      reportingIncoming: [7],
    });
  });

  test('turns whole reads of tables off for its own transaction only', async () => {
    await database.connection().execute(async (connection) => {
      const settings = async (of: Database): Promise<unknown> => {
        const { rows } = await sql`
          select current_setting(name) as value
            from unnest(${[...PLANNER_SETTINGS]}::text[]) as name`.execute(of);
        return rows;
      };
      for (const name of PLANNER_SETTINGS)
        await sql`select set_config(${name}, 'on', false)`.execute(connection);
      const within = await connection.transaction().execute(async (transaction) => {
        await claimCommitBatches(transaction, [batch('one')], [], false);
        return settings(transaction);
      });
      expect(within).toEqual(PLANNER_SETTINGS.map(() => ({ value: 'off' })));
      expect(await settings(connection)).toEqual(PLANNER_SETTINGS.map(() => ({ value: 'on' })));
    });
  });
});

describe('after another worker applied the first batch of a shard', () => {
  beforeEach(() => claim(['first']));

  test('a later batch of the shard keeps its place: it is not claimed, and another worker can', async () => {
    expect((await claim(['first', 'second'])).numbers).toEqual([undefined, undefined]);
    expect(await applied('first', 'second')).toEqual(['first']);
    expect((await claim(['second'])).numbers).toEqual([expect.any(Number)]);
  });

  test('several later batches are given back, and applied batches of other shards stay', async () => {
    await claim(['of another shard']);
    const { numbers } = await claim(['first', 'second', 'third']);
    expect(numbers).toEqual([undefined, undefined, undefined]);
    expect(await applied('first', 'of another shard', 'second', 'third')).toEqual([
      'first',
      'of another shard',
    ]);
  });

  test('batches of other shards are claimed', async () => {
    const { numbers } = await claim(['first', 'of another shard'], { isOfOneShard: false });
    expect(numbers).toEqual([undefined, expect.any(Number)]);
    expect(await applied('first', 'of another shard')).toEqual(['first', 'of another shard']);
  });

  test('a batch that comes again behind a new one leaves the new one claimed', async () => {
    const { numbers } = await claim(['new', 'first']);
    expect(numbers).toEqual([expect.any(Number), undefined]);
    expect(await applied('first', 'new')).toEqual(['first', 'new']);
  });
});

test('a delivery has the place in the trace of its own webhook, sequence and days', async () => {
  const { numbers } = await database.transaction().execute((transaction) =>
    claimCommitBatches(
      transaction,
      ['wanted', 'foreign'].map((name) => ({ ...batch(name), traceparent: `trace of ${name}` })),
      [],
      false,
    ),
  );
  const [wanted, foreign] = numbers;
  const [untraced] = (await claim(['untraced'])).numbers;
  const rows: [
    environmentId: number,
    webhookId: number,
    sequence: number,
    day: string,
    envelopeNumber: number | undefined,
  ][] = [
    [7, 1, 1, '2026-03-02', wanted],
    [7, 1, 2, '2026-03-03', wanted],
    [7, 1, 3, '2026-03-03', untraced],
    // Not asked for.
    [7, 1, 4, '2026-03-03', foreign],
    // Logged before.
    [7, 1, 5, '2026-03-01', foreign],
    // Of another webhook, and of another workspace.
    [7, 2, 6, '2026-03-03', foreign],
    [8, 1, 7, '2026-03-03', foreign],
  ];
  for (const [environmentId, webhookId, sequence, day, number] of rows)
    await sql`
      insert into delivery_log
        (environment_id, webhook_id, sequence, day, occurred_at, event_id, event_type, body, envelope_number)
      values (${environmentId}, ${webhookId}, ${sequence}, ${day}::date, ${day}::timestamptz,
              ${`event ${sequence}`}, 'customer_subscribed', '{}', ${number})`.execute(database);
  expect(
    await listTraceparents(
      database,
      { environmentId: 7, webhookId: 1 },
      [1, 2, 3, 5, 6, 7],
      '2026-03-02',
    ),
  ).toEqual(
    new Map([
      [1, 'trace of wanted'],
      [2, 'trace of wanted'],
    ]),
  );
});
