/** The usage summaries of inbox previews. By `account-billing.md` §4, Inbox previews. */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import type { Tenant } from '../support/inserted-rows.ts';
import {
  closeDays,
  grantPreviews,
  insertWorkspace,
  setClock,
  setNoonOfMarch,
  startUsageWorld,
} from '../support/usage-world.ts';

const world = startUsageWorld();

describe('the summaries', () => {
  test('have a point for every bucket, even without usage, and have groups only on request', async () => {
    setClock(world.api, '2026-01-31T23:59:59.999Z');
    await world.usage.record('a', 1);
    setClock(world.api, '2026-02-01T00:00:00.000Z');
    await world.usage.record('b', 2);
    setNoonOfMarch(world.api, 10);
    await world.usage.record('c', 4);
    await world.usage.refund('c', 3);
    await closeDays(world.api, '2026-02-28');
    const nothing = { used: 0, refunded: 0, net: 0 };
    const found = await world.usage.summaries();
    expect(found).toMatchObject({
      range: { start: '2025-10-01', end: '2026-03-10', granularity: 'month' },
      totals: { used: 7, refunded: 3, net: 4, runs: 3 },
      rollup_through: '2026-02-28',
    });
    expect(found).not.toHaveProperty('groups');
    expect(found.series).toEqual([
      { bucket_start: '2025-10-01', bucket_end: '2025-10-31', ...nothing },
      { bucket_start: '2025-11-01', bucket_end: '2025-11-30', ...nothing },
      { bucket_start: '2025-12-01', bucket_end: '2025-12-31', ...nothing },
      { bucket_start: '2026-01-01', bucket_end: '2026-01-31', used: 1, refunded: 0, net: 1 },
      { bucket_start: '2026-02-01', bucket_end: '2026-02-28', used: 2, refunded: 0, net: 2 },
      { bucket_start: '2026-03-01', bucket_end: '2026-03-10', used: 4, refunded: 3, net: 1 },
    ]);
    const weeks = await world.usage.summaries({
      start: '2026-01-31',
      end: '2026-02-03',
      granularity: 'week',
    });
    expect(weeks.series).toMatchObject([
      { bucket_start: '2026-01-31', bucket_end: '2026-02-01', used: 3 },
      { bucket_start: '2026-02-02', bucket_end: '2026-02-03', used: 0 },
    ]);
  });

  test('have the groups that were asked for, who used most first', async () => {
    const second = await insertWorkspace(world.api, world.tenant.accountId, 'Second');
    await world.usage.record('a', 1, { user_id: world.ada });
    await world.usage.record('b', 5, { environment_id: second });
    const range = { start: '2026-03-10' };
    const byWorkspace = await world.usage.summaries({ ...range, group_by: 'workspace' });
    expect(byWorkspace.groups).toMatchObject([
      { key: { environment_id: second }, name: 'Second', used: 5, series: [{ used: 5 }] },
      { key: { environment_id: world.tenant.environmentId }, used: 1 },
    ]);
    const byUser = await world.usage.summaries({ ...range, group_by: 'user' });
    expect(byUser.groups).toMatchObject([
      { key: { user_id: null }, name: null, used: 5 },
      { key: { user_id: world.ada }, name: `Ada L${world.ada}`, used: 1 },
    ]);
  });

  test('narrowed to a workspace keep the credit balance of the account', async () => {
    const second = await insertWorkspace(world.api, world.tenant.accountId, 'Second');
    await world.usage.record('a', 6);
    const found = await world.usage.summaries({
      environment_id: String(second),
      group_by: 'workspace',
    });
    expect(found).toMatchObject({ totals: { used: 0 }, groups: [] });
    expect(found.credit_balance.pools).toMatchObject([
      { pool: 'monthly_allowance', granted: 0 },
      { pool: 'goodwill' },
      { pool: 'purchased', granted: 10_000, used: 6, remaining: 9_994 },
    ]);
  });

  test.each(['trialing', 'paused', 'builder'])(
    'I34: of an account on a %s plan have an allowance of 0 of 0, and its history all the same',
    async (plan) => {
      const put = (tier: string, status: string) =>
        sql`update accounts set plan_tier = ${tier}, plan_status = ${status}
             where account_id = ${world.tenant.accountId}`.execute(world.api.database);
      await put('premium', 'active');
      await grantPreviews(world.api, world.tenant, {
        amount: 20,
        key: 'm',
        pool: 'monthly_allowance',
      });
      await world.usage.record('job', 3);
      const poolsOf = async () => (await world.usage.summaries()).credit_balance.pools;
      expect((await poolsOf())[0]).toMatchObject({ granted: 20, used: 3, remaining: 17 });
      await put(plan === 'builder' ? 'builder' : 'premium', plan === 'builder' ? 'active' : plan);
      const [allowance, , purchased] = await poolsOf();
      expect(allowance).toMatchObject({ granted: 0, used: 0, remaining: 0 });
      expect(purchased).toMatchObject({ granted: 10_000 });
      expect((await world.usage.summaries()).totals.used).toBe(3);
      expect((await world.usage.log()).total).toBe(1);
    },
  );

  test('with more points than an answer may have are refused by name, before and after they are read', async () => {
    const all = { start: '1970-01-01', granularity: 'day' };
    expect((await world.usage.summaries(all)).series).toHaveLength(20_523);
    await insertUserRuns(world.api.database, world.tenant, 6);
    const refused = await world.usage.get('usage_summaries', { ...all, group_by: 'user' });
    expectProblem(refused, 422, 'validation_failed');
    expect(refused.json().errors[0].field).toBe('granularity');
    expect(
      (await world.usage.summaries({ ...all, granularity: 'week', group_by: 'user' })).groups,
    ).toHaveLength(6);
  });
});

/** A run each of so many users. */
async function insertUserRuns(
  database: Database,
  { accountId, environmentId }: Tenant,
  count: number,
) {
  await sql`
    insert into usage_watermarks values (${accountId}, '2026-03-08') on conflict do nothing`.execute(
    database,
  );
  await sql`
    insert into inbox_preview_runs
      (account_id, preview_job_id, usage_day, environment_id, user_id, quantity, recorded_at)
    select ${accountId}, 'user-' || n, '2026-03-09', ${environmentId}, n, 1, '2026-03-09T00:00:00Z'
      from generate_series(1, ${count}::int) n`.execute(database);
}
