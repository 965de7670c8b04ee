/** The usage log of inbox previews. By `account-billing.md` §4, Inbox previews. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertTenant } from '../support/inserted-rows.ts';
import {
  closeDays,
  insertWorkspace,
  setClock,
  setNoonOfMarch,
  startUsageWorld,
  usageOf,
} from '../support/usage-world.ts';

const world = startUsageWorld();

describe('the log', () => {
  test('has recent days run by run, with their jobs, and older ones by user and workspace, without', async () => {
    const second = await insertWorkspace(world.api, world.tenant.accountId, 'Second');
    setNoonOfMarch(world.api, 2);
    await world.usage.record('a', 1, { user_id: world.ada });
    await world.usage.record('b', 2, { user_id: world.ada });
    await world.usage.record('c', 4);
    await world.usage.record('d', 8, { environment_id: second });
    setNoonOfMarch(world.api, 3);
    await world.usage.record('e', 16, { user_id: world.ada });
    setNoonOfMarch(world.api, 3, 1);
    await world.usage.record('f', 32);
    await world.usage.refund('f', 30);
    setNoonOfMarch(world.api, 10);
    await closeDays(world.api, '2026-03-02');
    const workspace = {
      environment_id: world.tenant.environmentId,
      workspace_name: expect.any(String),
    };
    const nobody = { user_id: null, run_by_name: null };
    const byAda = { user_id: world.ada, run_by_name: `Ada L${world.ada}` };
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
    const log = await world.usage.log();
    expect(log).toEqual({
      entries: newestFirst,
      total: 5,
      next_cursor: null,
      range: { start: '2025-10-01', end: '2026-03-10' },
    });
    const oldestFirst = await world.usage.log({ order: 'asc', sort: 'date' });
    expect(oldestFirst.entries).toEqual(newestFirst.toReversed());
  });

  test('is narrowed by workspace, user and days, and its total with it', async () => {
    const second = await insertWorkspace(world.api, world.tenant.accountId, 'Second');
    for (const day of [1, 2, 3]) {
      setNoonOfMarch(world.api, day);
      await world.usage.record(`a-${day}`, 1, { user_id: world.ada });
      await world.usage.record(`b-${day}`, 2, { environment_id: second });
    }
    setNoonOfMarch(world.api, 10);
    await closeDays(world.api, '2026-03-01');
    const jobs = async (query: Record<string, string>) => {
      const log = await world.usage.log(query);
      expect(log.total).toBe(log.entries.length);
      return log.entries.map((entry) => entry.preview_job_id ?? `${entry.date} ${entry.quantity}`);
    };
    expect(await jobs({ user_id: String(world.ada) })).toEqual(['a-3', 'a-2', '2026-03-01 1']);
    expect(await jobs({ environment_id: String(second) })).toEqual(['b-3', 'b-2', '2026-03-01 2']);
    expect(await jobs({ environment_id: String(second), user_id: String(world.ada) })).toEqual([]);
    expect(await jobs({ user_id: '2147483647' })).toEqual([]);
    expect(await jobs({ start: '2026-03-02', end: '2026-03-02', order: 'asc' })).toEqual([
      'a-2',
      'b-2',
    ]);
  });

  test.each(['asc', 'desc'] as const)(
    'I32: pages of any size in order %s show every entry once with one total, while runs arrive and days close',
    async (order) => {
      for (let day = 1; day <= 8; day++) {
        setNoonOfMarch(world.api, day);
        for (let n = 0; n < 3; n++)
          await world.usage.record(`${day}-${n}`, 1, n ? { user_id: world.ada } : {});
      }
      await closeDays(world.api, '2026-03-03');
      setNoonOfMarch(world.api, 9);
      const range = { order, end: '2026-03-08' };
      for (const limit of [1, 2, 3, 5, 20, 21, 200]) {
        const whole = await world.usage.log({ ...range, limit: '200' });
        const first = await world.usage.log({ ...range, limit: String(limit) });
        const entries = [...first.entries];
        let pageCount = 1;
        for (let cursor = first.next_cursor; cursor !== null; pageCount++) {
          // The next run is outside the range; the mark moves through it.
          await world.usage.record(`more-${limit}-${pageCount}`);
          if (limit === 3 && pageCount === 2) await closeDays(world.api, '2026-03-05');
          const next = await world.usage.log({ ...range, cursor, limit: String(limit) });
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

  test.each(['asc', 'desc'] as const)(
    'I32: pages in order %s show every earlier run once, and no run twice, while runs arrive in their range',
    async (order) => {
      setNoonOfMarch(world.api, 9);
      const before = Array.from({ length: 9 }, (_, n) => `job-${n}`);
      for (const job of before) {
        await world.usage.record(job);
        world.api.clock.nowMs += 1_000;
      }
      for (const limit of ['1', '2', '4']) {
        const seen: string[] = [];
        let page = await world.usage.log({ order, limit });
        // Ascending, new runs are at the end, and the log would never end.
        for (let count = 0; count < 30; count++) {
          seen.push(...page.entries.map((entry) => entry.preview_job_id!));
          if (page.next_cursor === null) break;
          if (count < 5) await world.usage.record(`more-${limit}-${count}`);
          page = await world.usage.log({ order, limit, cursor: page.next_cursor });
        }
        expect(new Set(seen).size).toBe(seen.length);
        expect(before.filter((job) => seen.includes(job))).toEqual(before);
      }
    },
  );

  test('keeps its range over midnight, even if its end was left out', async () => {
    for (const day of [1, 2, 3]) {
      setNoonOfMarch(world.api, day);
      await world.usage.record(`job-${day}`);
    }
    setClock(world.api, '2026-03-03T23:59:59.999Z');
    const first = await world.usage.log({ limit: '1' });
    setClock(world.api, '2026-03-04T00:00:00.000Z');
    await world.usage.record('after-midnight');
    const second = await world.usage.log({ limit: '1', cursor: first.next_cursor! });
    expect(second).toMatchObject({ range: first.range, total: 3 });
    expect(second.entries[0]!.preview_job_id).toBe('job-2');
  });

  test('takes no cursor of other filters, of another account, made up, altered or a day old', async () => {
    setNoonOfMarch(world.api, 1);
    for (let n = 0; n < 3; n++) await world.usage.record(`job-${n}`);
    const query = { limit: '1', user_id: '7', start: '2026-03-01' };
    await sql`update inbox_preview_runs set user_id = 7 where account_id = ${world.tenant.accountId}`.execute(
      world.api.database,
    );
    const cursor = (await world.usage.log(query)).next_cursor!;
    expect((await world.usage.log({ ...query, limit: '2', cursor })).entries).toHaveLength(2);
    for (const change of [
      { user_id: '8' },
      { start: '2026-02-01' },
      { end: '2026-03-01' },
      { order: 'asc' },
      { environment_id: String(world.tenant.environmentId) },
    ]) {
      const refused = await world.usage.get('usage_log', { ...query, ...change, cursor });
      expectProblem(refused, 422, 'cursor_mismatch');
      expect(refused.json().errors[0].field).toBe('cursor');
    }
    const other = usageOf(world.api, await insertTenant(world.api.database, 'other'));
    const altered = `${cursor[0] === 'W' ? 'X' : 'W'}${cursor.slice(1)}`;
    for (const [reader, given] of [
      [other, cursor],
      [world.usage, altered],
      [world.usage, cursor.slice(0, -1)],
      [world.usage, 'abc'],
      [world.usage, '.'],
      [world.usage, `${Buffer.from('[]').toString('base64url')}.`],
    ] as const) {
      const refused = await reader.get('usage_log', { ...query, cursor: given });
      expectProblem(refused, 400, 'invalid_request');
      expect(refused.json().errors[0].field).toBe('cursor');
    }
    world.api.clock.nowMs += 86_400_001;
    const expired = await world.usage.get('usage_log', { ...query, cursor });
    expectProblem(expired, 422, 'validation_failed');
    expect(expired.json().errors[0].field).toBe('cursor');
  });
});
