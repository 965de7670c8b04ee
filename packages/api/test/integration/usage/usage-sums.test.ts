/**
 * The log and the summaries add up to the recorded runs.
 *
 * It holds for any sequence of runs, refunds and closings, at any time, and for any query. On hosts and databases whose
 * own days are not UTC days.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant } from '../support/inserted-rows.ts';
import {
  addUp,
  closeDays,
  grantPreviews,
  insertUser,
  insertWorkspace,
  usageOf,
} from '../support/usage-world.ts';

const DAY_MS = 86_400_000;
const RUNS = 12;

/** Edges of days, months and years, changes of clocks, and a day of every four years. */
const EDGES = [
  '2027-09-26T00:00:00Z',
  '2027-10-01T00:00:00Z',
  '2027-11-07T00:00:00Z',
  '2028-01-01T00:00:00Z',
  '2028-02-29T00:00:00Z',
  '2028-03-01T00:00:00Z',
  '2028-03-12T00:00:00Z',
  '2028-04-02T00:00:00Z',
].map((text) => Date.parse(text));

const moment = fc.oneof(
  fc.tuple(fc.constantFrom(...EDGES), fc.constantFrom(-1, 0, 1)).map(([edge, by]) => edge + by),
  fc.integer({ min: EDGES[0]!, max: EDGES.at(-1)! }),
);
const step = fc.record({
  atMs: moment,
  workspace: fc.integer({ min: 0, max: 2 }),
  user: fc.integer({ min: 0, max: 2 }),
  quantity: fc.integer({ min: 1, max: 9 }),
  /** Of which earlier run how much is refunded, and how far days are closed, before it is recorded. */
  refunds: fc.option(fc.tuple(fc.nat(50), fc.integer({ min: 1, max: 9 }))),
  closesDaysBefore: fc.option(fc.nat(3)),
});
const question = fc.record({
  first: moment,
  last: moment,
  workspace: fc.option(fc.integer({ min: 0, max: 2 })),
  user: fc.option(fc.integer({ min: 1, max: 2 })),
  granularity: fc.constantFrom('day', 'week', 'month'),
  groupBy: fc.constantFrom('workspace', 'user'),
  order: fc.constantFrom('asc', 'desc'),
  limit: fc.constantFrom('1', '3', '50', '200'),
});

interface Recorded {
  readonly atMs: number;
  readonly workspace: number;
  readonly user: number;
  readonly quantity: number;
  refunded: number;
}

const dayText = (dayNumber: number) => new Date(dayNumber * DAY_MS).toISOString().slice(0, 10);
const dayNumber = (atMs: number) => Math.floor(atMs / DAY_MS);

describe.each([
  ['Pacific/Auckland', 'America/St_Johns', -780],
  ['America/St_Johns', 'Pacific/Auckland', 210],
  ['UTC', 'UTC', 0],
])('on a host in %s with a database in %s', (hostZone, databaseZone, offsetMinutes) => {
  let api: ApiUnderTest;
  const zoneBefore = process.env['TZ'];
  beforeAll(async () => {
    process.env['TZ'] = hostZone;
    api = await startApi({}, { timeZone: databaseZone });
  });
  afterAll(async () => {
    await api.close();
    if (zoneBefore === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zoneBefore;
  });

  test('the clock of the host has the offset of the zone', () => {
    expect(new Date('2028-01-15T00:00:00Z').getTimezoneOffset()).toBe(offsetMinutes);
  });

  let tenantCount = 0;
  test(
    'I29, I31: log total = summary totals = sum of series = sum of groups = recorded usage',
    { timeout: 300_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { minLength: 1, maxLength: 15 }),
          fc.array(question, { minLength: 3, maxLength: 3 }),
          async (steps, questions) => {
            const tenant = await insertTenant(api.database, `tenant_${++tenantCount}`);
            const { accountId } = tenant;
            const usage = usageOf(api, tenant);
            const users = [null, tenantCount * 10 + 1, tenantCount * 10 + 2];
            for (const user of users) if (user !== null) await insertUser(api, accountId, user);
            const workspaces = [
              tenant.environmentId,
              await insertWorkspace(api, accountId, 'second'),
              await insertWorkspace(api, accountId, 'third'),
            ];
            await grantPreviews(api, tenant, { amount: 1_000, key: 'a' });
            const recorded: Recorded[] = [];
            for (const each of steps.toSorted((one, other) => one.atMs - other.atMs)) {
              api.clock.nowMs = each.atMs;
              if (each.closesDaysBefore !== null)
                await closeDays(api, dayText(dayNumber(each.atMs) - 1 - each.closesDaysBefore));
              const earlier = each.refunds && recorded[each.refunds[0] % (recorded.length || 1)];
              if (each.refunds && earlier && earlier.refunded === 0) {
                earlier.refunded = Math.min(earlier.quantity, each.refunds[1]);
                await usage.refund(`job-${recorded.indexOf(earlier)}`, earlier.refunded);
              }
              await usage.record(`job-${recorded.length}`, each.quantity, {
                environment_id: workspaces[each.workspace],
                user_id: users[each.user],
              });
              recorded.push({ ...each, refunded: 0 });
            }
            const todayNumber = dayNumber(api.clock.nowMs);
            for (const asked of questions) {
              const [first, last] = [dayNumber(asked.first), dayNumber(asked.last)];
              const end = Math.min(Math.max(first, last), todayNumber);
              const start = Math.min(first, last, end);
              const done = recorded.filter(
                (run) =>
                  run.atMs >= start * DAY_MS &&
                  run.atMs < (end + 1) * DAY_MS &&
                  (asked.workspace === null || run.workspace === asked.workspace),
              );
              const query = {
                start: dayText(start),
                end: dayText(end),
                ...(asked.workspace !== null && {
                  environment_id: String(workspaces[asked.workspace]),
                }),
              };
              const expected = addUp(
                done.map((run) => ({ ...run, net: run.quantity - run.refunded })),
              );
              const summaries = await usage.summaries({
                ...query,
                granularity: asked.granularity,
                group_by: asked.groupBy,
              });
              expect(summaries.totals).toEqual({
                ...expected,
                used: expected.net + expected.refunded,
                runs: done.length,
              });
              expect((await usage.summaries(query)).totals).toEqual(summaries.totals);
              expect(addUp(summaries.series)).toEqual(expected);
              expect(addUp(summaries.groups!)).toEqual(expected);
              for (const group of summaries.groups!)
                expect(addUp(group.series)).toEqual(addUp([group]));

              const { order, limit } = asked;
              const log = await usage.wholeLog({ ...query, order, limit });
              expect(log.total).toBe(log.entries.length);
              expect(addUp(log.entries)).toEqual(expected);
              const through = summaries.rollup_through ?? '';
              for (const entry of log.entries)
                expect(entry.source).toBe(entry.date <= through ? 'rollup' : 'run');
              const dates = log.entries.map((entry) => entry.date);
              expect(dates).toEqual(
                order === 'asc' ? dates.toSorted() : dates.toSorted().toReversed(),
              );
              for (const bucket of summaries.series) {
                const own = log.entries.filter(
                  ({ date }) => date >= bucket.bucket_start && date <= bucket.bucket_end,
                );
                expect(addUp(own)).toEqual(addUp([bucket]));
              }
              if (asked.user === null) continue;
              const byUser = await usage.wholeLog({
                ...query,
                limit,
                user_id: String(users[asked.user]),
              });
              expect(addUp(byUser.entries)).toEqual(
                addUp(log.entries.filter((entry) => entry.user_id === users[asked.user!])),
              );
            }
          },
        ),
        { numRuns: RUNS },
      );
    },
  );
});
