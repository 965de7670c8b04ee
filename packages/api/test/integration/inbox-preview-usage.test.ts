/** The usage log and the usage summaries, as `account-billing.md` (Inbox previews) has them. */
import type { Database } from '@sluice/database/connection';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../error-shapes.ts';
import {
  insertTenant,
  insertToken,
  startApi,
  type ApiUnderTest,
  type Tenant,
} from './api-under-test.ts';
import { closeDays, grantPreviews, insertUser, insertWorkspace, usageOf } from './usage-world.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

let tenant: Tenant;
let usage: ReturnType<typeof usageOf>;
let ada: number;
let tenantCount = 0;
beforeEach(async () => {
  tenant = await insertTenant(api.database, `tenant_${++tenantCount}`);
  usage = usageOf(api, tenant);
  ada = 1_000 + tenantCount;
  await insertUser(api, tenant.accountId, ada);
  await grantPreviews(api, tenant, { amount: 10_000, key: 'a' });
  setClock('2026-03-10T12:00:00Z');
});

const setClock = (text: string) => void (api.clock.nowMs = Date.parse(text));
const clockOf = (day: number, minute = 0) =>
  setClock(`2026-03-${String(day).padStart(2, '0')}T12:${String(minute).padStart(2, '0')}:00.000Z`);

describe('the log', () => {
  test('has recent days run by run, with their jobs, and older ones by user and workspace, without', async () => {
    const second = await insertWorkspace(api, tenant.accountId, 'Second');
    clockOf(2);
    await usage.record('a', 1, { user_id: ada });
    await usage.record('b', 2, { user_id: ada });
    await usage.record('c', 4);
    await usage.record('d', 8, { environment_id: second });
    clockOf(3);
    await usage.record('e', 16, { user_id: ada });
    clockOf(3, 1);
    await usage.record('f', 32);
    await usage.refund('f', 30);
    clockOf(10);
    await closeDays(api, '2026-03-02');
    const workspace = { environment_id: tenant.environmentId, workspace_name: expect.any(String) };
    const nobody = { user_id: null, run_by_name: null };
    const byAda = { user_id: ada, run_by_name: `Ada L${ada}` };
    const rollup = { source: 'rollup', date: '2026-03-02', occurred_at: null, refunded: 0 };
    const run = { source: 'run', date: '2026-03-03' };
    const newestFirst = [
      {
        ...run,
        ...workspace,
        ...nobody,
        preview_job_id: 'f',
        occurred_at: '2026-03-03T12:01:00.000Z',
        quantity: 32,
        refunded: 30,
        net: 2,
      },
      {
        ...run,
        ...workspace,
        ...byAda,
        preview_job_id: 'e',
        occurred_at: '2026-03-03T12:00:00.000Z',
        quantity: 16,
        refunded: 0,
        net: 16,
      },
      {
        ...rollup,
        ...nobody,
        environment_id: second,
        workspace_name: 'Second',
        quantity: 8,
        net: 8,
      },
      { ...rollup, ...workspace, ...byAda, quantity: 3, net: 3 },
      { ...rollup, ...workspace, ...nobody, quantity: 4, net: 4 },
    ];
    const log = await usage.log();
    expect(log).toEqual({
      entries: newestFirst,
      total: 5,
      next_cursor: null,
      range: { start: '2025-10-01', end: '2026-03-10' },
    });
    const oldestFirst = await usage.log({ order: 'asc', sort: 'date' });
    expect(oldestFirst.entries).toEqual(newestFirst.toReversed());
  });

  test('is narrowed by workspace, user and days, and its total with it', async () => {
    const second = await insertWorkspace(api, tenant.accountId, 'Second');
    for (const day of [1, 2, 3]) {
      clockOf(day);
      await usage.record(`a-${day}`, 1, { user_id: ada });
      await usage.record(`b-${day}`, 2, { environment_id: second });
    }
    clockOf(10);
    await closeDays(api, '2026-03-01');
    const jobs = async (query: Record<string, string>) => {
      const log = await usage.log(query);
      expect(log.total).toBe(log.entries.length);
      return log.entries.map((entry) => entry.preview_job_id ?? `${entry.date} ${entry.quantity}`);
    };
    expect(await jobs({ user_id: String(ada) })).toEqual(['a-3', 'a-2', '2026-03-01 1']);
    expect(await jobs({ environment_id: String(second) })).toEqual(['b-3', 'b-2', '2026-03-01 2']);
    expect(await jobs({ environment_id: String(second), user_id: String(ada) })).toEqual([]);
    expect(await jobs({ user_id: '2147483647' })).toEqual([]);
    expect(await jobs({ start: '2026-03-02', end: '2026-03-02', order: 'asc' })).toEqual([
      'a-2',
      'b-2',
    ]);
  });

  test.each(['asc', 'desc'] as const)(
    'is paged %s by any number, while runs come and days are closed: nothing twice, nothing left out, one total',
    async (order) => {
      for (let day = 1; day <= 8; day++) {
        clockOf(day);
        for (let n = 0; n < 3; n++) await usage.record(`${day}-${n}`, 1, n ? { user_id: ada } : {});
      }
      await closeDays(api, '2026-03-03');
      clockOf(9);
      const range = { order, end: '2026-03-08' };
      for (const limit of [1, 2, 3, 5, 20, 21, 200]) {
        const whole = await usage.log({ ...range, limit: '200' });
        const first = await usage.log({ ...range, limit: String(limit) });
        const entries = [...first.entries];
        let pageCount = 1;
        for (let cursor = first.next_cursor; cursor !== null; pageCount++) {
          // What comes now is outside the range; the mark moves through it.
          await usage.record(`more-${limit}-${pageCount}`);
          if (limit === 3 && pageCount === 2) await closeDays(api, '2026-03-05');
          const next = await usage.log({ ...range, cursor, limit: String(limit) });
          expect(next.total).toBe(whole.total);
          entries.push(...next.entries);
          cursor = next.next_cursor;
        }
        expect(entries).toEqual(whole.entries);
        expect(pageCount).toBe(Math.ceil(whole.total / limit));
        // Of closed days two entries, of the others three.
        expect(whole.total).toBe(limit <= 3 ? 3 * 2 + 5 * 3 : 5 * 2 + 3 * 3);
      }
    },
  );

  test('goes on over midnight where it was begun, also where its end was left out', async () => {
    for (const day of [1, 2, 3]) {
      clockOf(day);
      await usage.record(`job-${day}`);
    }
    setClock('2026-03-03T23:59:59.999Z');
    const first = await usage.log({ limit: '1' });
    setClock('2026-03-04T00:00:00.000Z');
    await usage.record('after-midnight');
    const second = await usage.log({ limit: '1', cursor: first.next_cursor! });
    expect(second).toMatchObject({ range: first.range, total: 3 });
    expect(second.entries[0]!.preview_job_id).toBe('job-2');
  });

  test('takes no cursor of other filters, of another account, made up, altered or a day old', async () => {
    clockOf(1);
    for (let n = 0; n < 3; n++) await usage.record(`job-${n}`);
    const query = { limit: '1', user_id: '7', start: '2026-03-01' };
    await sql`update inbox_preview_runs set user_id = 7 where account_id = ${tenant.accountId}`.execute(
      api.database,
    );
    const cursor = (await usage.log(query)).next_cursor!;
    expect((await usage.log({ ...query, limit: '2', cursor })).entries).toHaveLength(2);
    for (const change of [
      { user_id: '8' },
      { start: '2026-02-01' },
      { end: '2026-03-01' },
      { order: 'asc' },
      { environment_id: String(tenant.environmentId) },
    ]) {
      const refused = await usage.get('usage_log', { ...query, ...change, cursor });
      expectProblem(refused, 422, 'cursor_mismatch');
      expect(refused.json().errors[0].field).toBe('cursor');
    }
    const other = usageOf(api, await insertTenant(api.database, `other_${tenantCount}`));
    const altered = `${cursor[0] === 'W' ? 'X' : 'W'}${cursor.slice(1)}`;
    for (const [reader, given] of [
      [other, cursor],
      [usage, altered],
      [usage, cursor.slice(0, -1)],
      [usage, 'abc'],
      [usage, '.'],
      [usage, `${Buffer.from('[]').toString('base64url')}.`],
    ] as const) {
      const refused = await reader.get('usage_log', { ...query, cursor: given });
      expectProblem(refused, 400, 'invalid_request');
      expect(refused.json().errors[0].field).toBe('cursor');
    }
    api.clock.nowMs += 86_400_001;
    const expired = await usage.get('usage_log', { ...query, cursor });
    expectProblem(expired, 422, 'validation_failed');
    expect(expired.json().errors[0].field).toBe('cursor');
  });
});

describe('both', () => {
  const both = ['usage_log', 'usage_summaries'] as const;

  test.each([
    [{}, '2025-10-01', '2026-03-10'],
    [{ end: '2026-03-31' }, '2025-10-01', '2026-03-10'],
    [{ end: '2026-02-28' }, '2025-09-01', '2026-02-28'],
    [{ end: '9999-12-31' }, '2025-10-01', '2026-03-10'],
    [{ start: '2026-03-10' }, '2026-03-10', '2026-03-10'],
    [{ start: '2024-02-29', end: '2024-02-29' }, '2024-02-29', '2024-02-29'],
  ])('%j is the range from %s to %s', async (query, start, end) => {
    for (const path of both) {
      const answer = await usage.get(path, query);
      expect(answer.json().range).toMatchObject({ start, end });
    }
  });

  test.each([
    ['start', { start: '2026-03-11' }, 422],
    ['start', { start: '2026-03-02', end: '2026-03-01' }, 422],
    ['start', { start: '2026-02-29' }, 400],
    ['end', { end: '2026-13-01' }, 400],
    ['end', { end: 'yesterday' }, 400],
    ['end', { end: '' }, 400],
    ['environment_id', { environment_id: 'x' }, 400],
    ['environment_id', { environment_id: '0' }, 422],
    ['environment_id', { environment_id: '2147483648' }, 422],
  ])('a %s that cannot be taken (%j) is refused by name', async (field, query, status) => {
    for (const path of both) {
      const refused = await usage.get(path, query);
      expect(refused.statusCode).toBe(status);
      expect(refused.json().errors[0].field).toBe(field);
    }
  });

  test.each([
    ['usage_log', 'limit', '0', 422],
    ['usage_log', 'limit', '201', 422],
    ['usage_log', 'limit', 'x', 400],
    ['usage_log', 'sort', 'quantity', 422],
    ['usage_log', 'order', 'up', 422],
    ['usage_log', 'user_id', '-1', 422],
    ['usage_summaries', 'granularity', 'year', 422],
    ['usage_summaries', 'group_by', 'plan', 422],
  ])('%s refuses %s=%s by name', async (path, field, value, status) => {
    const refused = await usage.get(path, { [field]: value });
    expect(refused.statusCode).toBe(status);
    expect(refused.json().errors[0].field).toBe(field);
  });

  test('refuse a workspace of another account as one that nobody has, and show a deleted one of the own', async () => {
    await usage.record('job', 3);
    await sql`update environments set deleted_at = now() where account_id = ${tenant.accountId}`.execute(
      api.database,
    );
    const own = { environment_id: String(tenant.environmentId) };
    expect((await usage.log(own)).entries).toMatchObject([{ quantity: 3 }]);
    expect((await usage.log()).total).toBe(1);
    expect((await usage.summaries(own)).totals.used).toBe(3);
    for (const path of both) {
      const answers = await Promise.all(
        [api.b.environmentId, 2_000_000_000].map((id) =>
          usage.get(path, { environment_id: String(id) }),
        ),
      );
      const bodies = answers.map((answer) => {
        expectProblem(answer, 403, 'environment_not_owned');
        const { meta, instance: _instance, ...rest } = answer.json();
        return { ...rest, meta: { ...meta, request_id: '' } };
      });
      expect(bodies[0]).toEqual(bodies[1]);
    }
  });

  test('have no name for a user who is gone, and none at all where names cannot be found', async () => {
    await usage.record('job', 3, { user_id: ada });
    await sql`delete from users where account_id = ${tenant.accountId}`.execute(api.database);
    const [entry] = (await usage.log()).entries;
    expect(entry).toMatchObject({ user_id: ada, run_by_name: null });
    expect(entry!.workspace_name).toContain('workspace of');
    const byUser = await usage.summaries({ group_by: 'user' });
    expect(byUser.groups).toMatchObject([{ key: { user_id: ada }, name: null, used: 3 }]);
    await sql`alter table users rename to users_away`.execute(api.database);
    try {
      expect((await usage.log()).entries[0]).toMatchObject({ workspace_name: null });
      expect((await usage.summaries({ group_by: 'workspace' })).groups).toMatchObject([
        { key: { environment_id: tenant.environmentId }, name: null, used: 3 },
      ]);
    } finally {
      await sql`alter table users_away rename to users`.execute(api.database);
    }
  });

  test('are for every role and for tokens that may only read, of this account alone', async () => {
    const reader = `${tenant.token}_reader`;
    await insertToken(api.database, tenant.accountId, reader, {
      role: 'member',
      isReadOnly: true,
      scopes: [],
    });
    for (const path of both) {
      const url = `${usage.base}/${path}`;
      expect((await api.call('GET', url, { key: reader })).statusCode).toBe(200);
      expectProblem(await api.call('GET', url, { key: api.b.token }), 404, 'not_found');
    }
  });

  test('never show the usage of another account', async () => {
    await usage.record('job', 3);
    const other = usageOf(api, await insertTenant(api.database, `other_${tenantCount}`));
    expect(await other.log()).toMatchObject({ entries: [], total: 0 });
    await closeDays(api, '2026-03-10');
    expect(await other.log()).toMatchObject({ entries: [], total: 0 });
    expect((await other.summaries({ group_by: 'user' })).groups).toEqual([]);
  });
});

describe('the summaries', () => {
  test('have a point for every bucket, also where nothing was used, and no groups unless asked for', async () => {
    setClock('2026-01-31T23:59:59.999Z');
    await usage.record('a', 1);
    setClock('2026-02-01T00:00:00.000Z');
    await usage.record('b', 2);
    clockOf(10);
    await usage.record('c', 4);
    await usage.refund('c', 3);
    await closeDays(api, '2026-02-28');
    const nothing = { used: 0, refunded: 0, net: 0 };
    const found = await usage.summaries();
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
    const weeks = await usage.summaries({
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
    const second = await insertWorkspace(api, tenant.accountId, 'Second');
    await usage.record('a', 1, { user_id: ada });
    await usage.record('b', 5, { environment_id: second });
    const range = { start: '2026-03-10' };
    const byWorkspace = await usage.summaries({ ...range, group_by: 'workspace' });
    expect(byWorkspace.groups).toMatchObject([
      { key: { environment_id: second }, name: 'Second', used: 5, series: [{ used: 5 }] },
      { key: { environment_id: tenant.environmentId }, used: 1 },
    ]);
    const byUser = await usage.summaries({ ...range, group_by: 'user' });
    expect(byUser.groups).toMatchObject([
      { key: { user_id: null }, name: null, used: 5 },
      { key: { user_id: ada }, name: `Ada L${ada}`, used: 1 },
    ]);
  });

  test('narrowed to a workspace keep the credit balance of the account', async () => {
    const second = await insertWorkspace(api, tenant.accountId, 'Second');
    await usage.record('a', 6);
    const found = await usage.summaries({ environment_id: String(second), group_by: 'workspace' });
    expect(found).toMatchObject({ totals: { used: 0 }, groups: [] });
    expect(found.credit_balance.pools).toMatchObject([
      { pool: 'monthly_allowance', granted: 0 },
      { pool: 'goodwill' },
      { pool: 'purchased', granted: 10_000, used: 6, remaining: 9_994 },
    ]);
  });

  test.each(['trialing', 'paused', 'builder'])(
    'of an account on a %s plan have an allowance of 0 of 0, and its history all the same',
    async (plan) => {
      const put = (tier: string, status: string) =>
        sql`update accounts set plan_tier = ${tier}, plan_status = ${status}
             where account_id = ${tenant.accountId}`.execute(api.database);
      await put('premium', 'active');
      await grantPreviews(api, tenant, { amount: 20, key: 'm', pool: 'monthly_allowance' });
      await usage.record('job', 3);
      const poolsOf = async () => (await usage.summaries()).credit_balance.pools;
      expect((await poolsOf())[0]).toMatchObject({ granted: 20, used: 3, remaining: 17 });
      await put(plan === 'builder' ? 'builder' : 'premium', plan === 'builder' ? 'active' : plan);
      const [allowance, , purchased] = await poolsOf();
      expect(allowance).toMatchObject({ granted: 0, used: 0, remaining: 0 });
      expect(purchased).toMatchObject({ granted: 10_000 });
      expect((await usage.summaries()).totals.used).toBe(3);
      expect((await usage.log()).total).toBe(1);
    },
  );

  test('with more points than an answer may have are refused by name, before and after they are read', async () => {
    const all = { start: '1970-01-01', granularity: 'day' };
    expect((await usage.summaries(all)).series).toHaveLength(20_523);
    await insertUserRuns(api.database, tenant, 6);
    const refused = await usage.get('usage_summaries', { ...all, group_by: 'user' });
    expectProblem(refused, 422, 'validation_failed');
    expect(refused.json().errors[0].field).toBe('granularity');
    expect(
      (await usage.summaries({ ...all, granularity: 'week', group_by: 'user' })).groups,
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
