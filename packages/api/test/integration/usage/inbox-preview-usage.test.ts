/** Common parts of the usage log and the usage summaries: their ranges, filters, names and readers. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertTenant, insertToken } from '../support/inserted-rows.ts';
import { closeDays, startUsageWorld, usageOf } from '../support/usage-world.ts';

const world = startUsageWorld();

describe('the log and the summaries', () => {
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
      const answer = await world.usage.get(path, query);
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
      const refused = await world.usage.get(path, query);
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
    const refused = await world.usage.get(path, { [field]: value });
    expect(refused.statusCode).toBe(status);
    expect(refused.json().errors[0].field).toBe(field);
  });

  test('I33: refuse a foreign workspace like an unknown one, and show a deleted workspace of the account', async () => {
    await world.usage.record('job', 3);
    await sql`update environments set deleted_at = now() where account_id = ${world.tenant.accountId}`.execute(
      world.api.database,
    );
    const own = { environment_id: String(world.tenant.environmentId) };
    expect((await world.usage.log(own)).entries).toMatchObject([{ quantity: 3 }]);
    expect((await world.usage.log()).total).toBe(1);
    expect((await world.usage.summaries(own)).totals.used).toBe(3);
    for (const path of both) {
      const answers = await Promise.all(
        [world.api.b.environmentId, 2_000_000_000].map((id) =>
          world.usage.get(path, { environment_id: String(id) }),
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

  test('I33: have the name null for a deleted user, and for every name if names cannot be read', async () => {
    await world.usage.record('job', 3, { user_id: world.ada });
    await sql`delete from users where account_id = ${world.tenant.accountId}`.execute(
      world.api.database,
    );
    const [entry] = (await world.usage.log()).entries;
    expect(entry).toMatchObject({ user_id: world.ada, run_by_name: null });
    expect(entry!.workspace_name).toContain('workspace of');
    const byUser = await world.usage.summaries({ group_by: 'user' });
    expect(byUser.groups).toMatchObject([{ key: { user_id: world.ada }, name: null, used: 3 }]);
    await sql`alter table users rename to users_away`.execute(world.api.database);
    try {
      expect((await world.usage.log()).entries[0]).toMatchObject({ workspace_name: null });
      expect((await world.usage.summaries({ group_by: 'workspace' })).groups).toMatchObject([
        { key: { environment_id: world.tenant.environmentId }, name: null, used: 3 },
      ]);
    } finally {
      await sql`alter table users_away rename to users`.execute(world.api.database);
    }
  });

  test('are for every role and for tokens that may only read, of this account alone', async () => {
    const reader = `${world.tenant.token}_reader`;
    await insertToken(world.api.database, world.tenant.accountId, reader, {
      role: 'member',
      isReadOnly: true,
      scopes: [],
    });
    for (const path of both) {
      const url = `${world.usage.base}/${path}`;
      expect((await world.api.call('GET', url, { key: reader })).statusCode).toBe(200);
      expectProblem(await world.api.call('GET', url, { key: world.api.b.token }), 404, 'not_found');
    }
  });

  test('never show the usage of another account', async () => {
    await world.usage.record('job', 3);
    const other = usageOf(world.api, await insertTenant(world.api.database, 'other'));
    expect(await other.log()).toMatchObject({ entries: [], total: 0 });
    await closeDays(world.api, '2026-03-10');
    expect(await other.log()).toMatchObject({ entries: [], total: 0 });
    expect((await other.summaries({ group_by: 'user' })).groups).toEqual([]);
  });
});
