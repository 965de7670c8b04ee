/** Watch over statements as they are sent. The set-up of all tests on Postgres uses it. */
import { sql } from 'kysely';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { listDuePurchases } from '../../../src/billing/purchase-workflows.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import { unboundAt } from '../../support/judge-statement.ts';
import { watchSentStatements } from '../../support/sent-statements-watch.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

const faultsOf = async (
  unlisted: Parameters<typeof watchSentStatements>[0],
  use: () => Promise<unknown>,
): Promise<string[]> => {
  const { takeFaults, stop } = watchSentStatements(unlisted);
  onTestFinished(stop);
  await use();
  stop();
  return takeFaults();
};
const due = () => listDuePurchases(database, 0, 1);

test('a statement without its tenant is found with its place, each time that it is sent', async () => {
  const fault = expect.stringMatching(
    /^billing\/purchase-workflows\.ts#listDuePurchases sent a statement that does not name the tenant of runs: /,
  );
  expect(await faultsOf(unboundAt, due)).toEqual([fault]);
  const { takeFaults, stop } = watchSentStatements(unboundAt);
  onTestFinished(stop);
  for (let round = 0; round < 2; round++) {
    await due();
    expect(takeFaults()).toEqual([fault]);
  }
  expect(takeFaults()).toEqual([]);
});

test('a listed statement is no fault, and neither is a statement of a test', async () => {
  expect(await faultsOf(undefined, due)).toEqual([]);
  expect(await faultsOf(unboundAt, () => sql`select 1 from runs`.execute(database))).toEqual([]);
});
