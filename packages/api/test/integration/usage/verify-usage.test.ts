/** `npm run verify` of usage: days that agree with their runs pass, and every changed value is named. */
import { fileURLToPath } from 'node:url';
import {
  listUsageCreditDifferences,
  listUsageDayDifferences,
} from '@sluice/database/verify/verify-usage';
import { runProgramUnderTest } from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';
import {
  closeDays,
  grantPreviews,
  insertUser,
  insertWorkspace,
  usageOf,
} from '../support/usage-world.ts';

let api: ApiUnderTest;
let tenant: Tenant;
beforeAll(async () => {
  api = await startApi();
  const { database } = api;
  tenant = await insertTenant(database, 'used');
  await insertUser(api, tenant.accountId, 7);
  const second = await insertWorkspace(api, tenant.accountId, 'Second');
  await grantPreviews(api, tenant, { amount: 1_000, key: 'a' });
  const usage = usageOf(api, tenant);
  for (const day of ['01', '02', '03']) {
    api.clock.nowMs = Date.parse(`2026-03-${day}T23:59:59.999Z`);
    await usage.record(`a-${day}`, 3);
    await usage.record(`b-${day}`, 4, { user_id: 7 });
    await usage.record(`c-${day}`, 5, { environment_id: second, user_id: 7 });
  }
  await usage.refund('b-01', 1);
  await closeDays(api, '2026-03-02');
  await usage.refund('a-02', 2);
  await usage.refund('c-03');
});
afterAll(() => api.close());

const find = async () => [
  ...(await listUsageDayDifferences(api.database)),
  ...(await listUsageCreditDifferences(api.database)),
];

/** Differences while the change lasts. */
async function findAfter(change: ReturnType<typeof sql>): Promise<string[]> {
  const undone = new Error('undone');
  let found: string[] = [];
  const changed = api.database.transaction().execute(async (transaction) => {
    await change.execute(transaction);
    found = [
      ...(await listUsageDayDifferences(transaction)),
      ...(await listUsageCreditDifferences(transaction)),
    ].map(({ of, kept, recomputed }) => `${of}: ${kept} not ${recomputed}`);
    throw undone;
  });
  await expect(changed).rejects.toBe(undone);
  return found;
}

test('closed days, late refunds and an open day agree with their runs and with the ledger', async () => {
  expect(await find()).toEqual([]);
});

test.each(['workspace_user', 'workspace', 'user', 'day'])(
  'a sum that is wrong, gone, or there too soon is named at the grain %s',
  async (grain) => {
    const isOne = sql`ctid = (select ctid from inbox_preview_days
                               where grain = ${grain} and usage_day = '2026-03-02'
                               order by environment_id, user_id limit 1)`;
    for (const change of [
      sql`update inbox_preview_days set used = used + 1 where ${isOne}`,
      sql`update inbox_preview_days set refunded = refunded + 1 where ${isOne}`,
      sql`update inbox_preview_days set runs = runs + 1 where ${isOne}`,
      sql`delete from inbox_preview_days where ${isOne}`,
      sql`update inbox_preview_days set usage_day = '2026-03-03' where ${isOne}`,
    ]) {
      const found = await findAfter(change);
      expect(found.length).toBeGreaterThan(0);
      for (const each of found) expect(each).toMatch(new RegExp(`^2026-03-0[23] ${grain}( |:)`));
    }
  },
);

test('a run that is changed, lost or made up is missed in all sums of its day and in the ledger', async () => {
  expect(
    await findAfter(sql`update inbox_preview_runs set quantity = 9 where preview_job_id = 'a-01'`),
  ).toHaveLength(5);
  const lost = await findAfter(
    sql`delete from inbox_preview_runs where preview_job_id in ('a-01', 'b-01', 'c-01')`,
  );
  expect(lost).toContain('2026-03-01 day: 3 12 1 not null');
  expect(lost).toContain('the credit ledger: 9 36 8 not 6 24 7');
  // Of a day that is open: only the ledger knows.
  expect(
    await findAfter(sql`update inbox_preview_runs set refunded = 1 where preview_job_id = 'a-03'`),
  ).toEqual(['the credit ledger: 9 36 8 not 9 36 9']);
});

test('a mark that moved without its sums is found', async () => {
  const found = await findAfter(sql`update usage_watermarks set closed_through = '2026-03-03'`);
  expect(found).toContain('2026-03-03 day: null not 3 12 5');
});

test('the command prints the difference and ends with 1', { timeout: 120_000 }, async () => {
  const program = fileURLToPath(new URL('../../../../../scripts/verify.ts', import.meta.url));
  const verify = () => runProgramUnderTest(program, { DATABASE_URL: api.databaseUrl });
  expect((await verify()).output).toMatch(/ok {5}usage: 16 sums of closed days made again from 9/);
  await sql`
    update inbox_preview_days set used = used + 1
     where grain = 'user' and usage_day = '2026-03-01' and user_id = 7`.execute(api.database);
  const { code, output } = await verify();
  expect(code).toBe(1);
  expect(output).toContain(
    `account ${tenant.accountId}, 2026-03-01 user 7: 2 10 1 kept, 2 9 1 by the runs`,
  );
  expect(output).toContain('FAILED usage');
});
