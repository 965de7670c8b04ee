/** Claims of commit batches that are applied workspace by workspace. */
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import {
  AppliedInParts,
  beginParts,
  endParts,
  listAppliedCommitBatches,
} from '../../../src/events/commit-batch-parts.ts';
import { claimCommitBatches } from '../../../src/events/commit-batches.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { waitToMerge } from '../../../src/people/merge-gate.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
});

const claim = (...envelopeIds: string[]) =>
  database.transaction().execute(async (transaction) => {
    const claims = envelopeIds.map((envelopeId) => ({
      envelopeId,
      operationCount: 1,
      traceparent: null,
    }));
    const { numbers } = await claimCommitBatches(transaction, claims, [], false, false);
    return numbers.map((number) => number !== undefined);
  });

const applied = async (...ids: string[]) => [...(await listAppliedCommitBatches(database, ids))];

test('a batch in parts is refused as a whole until its end, and each part is claimed once', async () => {
  await beginParts(database, ['a']);
  await expect(claim('a')).rejects.toThrow(AppliedInParts);
  await expect(claim('b', 'a')).rejects.toThrow(AppliedInParts);
  expect(await claim('a/1')).toEqual([true]);
  expect(await claim('a/1', 'a/2')).toEqual([false, true]);
  expect(await applied('a', 'a/1', 'a/2', 'a/3', 'b')).toEqual(['a/1', 'a/2']);
  await expect(claim('a')).rejects.toThrow(AppliedInParts);
  await endParts(database, [{ id: 'a', operationCount: 2 }]);
  await endParts(database, [{ id: 'a', operationCount: 2 }]);
  expect(await claim('a')).toEqual([false]);
  expect(await applied('a', 'a/1', 'a/3')).toEqual(['a', 'a/1', 'a/3']);
});

test('a batch that is applied stays applied, and all its parts with it', async () => {
  expect(await claim('a')).toEqual([true]);
  await beginParts(database, ['a', 'b']);
  expect(await claim('a')).toEqual([false]);
  expect(await applied('a', 'a/1', 'b', 'b/1')).toEqual(['a', 'a/1']);
});

test('a mark waits for the transaction that claims the batch', async () => {
  const claimed = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const whole = database.transaction().execute(async (transaction) => {
    const claims = [{ envelopeId: 'a', operationCount: 1, traceparent: null }];
    await claimCommitBatches(transaction, claims, [], false);
    claimed.resolve();
    await released.promise;
  });
  await claimed.promise;
  const marking = beginParts(database, ['a']);
  released.resolve();
  await Promise.all([whole, marking]);
  expect(await applied('a')).toEqual(['a']);
});

// Otherwise a node that hangs would hold up the marks of all shards.
test('a mark does not wait for an open claim of another batch, whose transaction keeps merges off', async () => {
  await database.transaction().execute(async (transaction) => {
    const claims = [{ envelopeId: 'a', operationCount: 1, traceparent: null }];
    const { keepsMergesOff } = await claimCommitBatches(transaction, claims, [], true);
    expect(keepsMergesOff).toBe(true);
    await database.transaction().execute(async (other) => {
      await sql`set local lock_timeout = '2s'`.execute(other);
      await beginParts(other, ['b']);
      await endParts(other, [{ id: 'b', operationCount: 1 }]);
    });
  });
  expect(await applied('b')).toEqual(['b']);
});

test('the error of a refused claim names each batch in parts', async () => {
  await beginParts(database, ['a', 'b', 'c']);
  await endParts(database, [{ id: 'b', operationCount: 1 }]);
  await expect(claim('a', 'b', 'c')).rejects.toThrow(
    'commit batches are applied workspace by workspace: a, c',
  );
});

test('marks of no batch cost no statement', async () => {
  const sent = await statementsSentBy(async () => {
    await beginParts(database, []);
    await endParts(database, []);
  });
  expect(sent).toEqual([]);
});

test('the applied batches are found by the key, and the others are not read', async () => {
  await claim('a', 'b', 'c');
  await database.transaction().execute(async (transaction) => {
    // The planner reads so small a table whole, unless it may not.
    await sql`set local enable_seqscan = off`.execute(transaction);
    await sql`set local enable_bitmapscan = off`.execute(transaction);
    expect([...(await listAppliedCommitBatches(transaction, ['a']))]).toEqual(['a']);
    const { rows } = await sql<{ wholeReads: number; byIndex: number }>`
      select seq_scan::int as "wholeReads", idx_tup_fetch::int as "byIndex"
        from pg_stat_xact_user_tables where relname = 'envelopes'`.execute(transaction);
    expect(rows).toEqual([{ wholeReads: 0, byIndex: 1 }]);
  });
});

test('the end of a batch is stored with the number of its operations', async () => {
  await endParts(database, [
    { id: 'a', operationCount: 2 },
    { id: 'b', operationCount: 5 },
  ]);
  const { rows } = await sql`
    select envelope_id as id, operation_count as count from envelopes order by envelope_id`.execute(
    database,
  );
  expect(rows).toEqual([
    { id: 'a/', count: 2 },
    { id: 'b/', count: 5 },
  ]);
});

test.each([
  ['begin', (of: Database) => beginParts(of, ['a'])],
  ['end', (of: Database) => endParts(of, [{ id: 'a', operationCount: 1 }])],
])(
  'a merge does not wait for an open transaction that marks the %s of a batch',
  async (_, mark) => {
    const hasMerged = await database.transaction().execute(async (transaction) => {
      await mark(transaction);
      return database.transaction().execute(async (merging) => {
        await sql`set local lock_timeout = '2s'`.execute(merging);
        await waitToMerge(merging);
        return true;
      });
    });
    expect(hasMerged).toBe(true);
  },
);
