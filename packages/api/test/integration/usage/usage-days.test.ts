/** Closing days while runs are recorded, refunded and read: every run is counted exactly once. */
import { createDatabase } from '@sluice/database/connection/connection';
import { insertPreviewRun } from '@sluice/database/credits/inbox-preview-runs';
import { closeUsageDays, holdUsageDays } from '@sluice/database/credits/usage-watermarks';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';
import { addUp, closeDays, grantPreviews, usageOf } from '../support/usage-world.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

let tenant: Tenant;
let usage: ReturnType<typeof usageOf>;
let tenantCount = 0;
beforeEach(async () => {
  tenant = await insertTenant(api.database, `tenant_${++tenantCount}`);
  usage = usageOf(api, tenant);
  await grantPreviews(api, tenant, { amount: 10_000, key: 'a' });
});

const setClock = (text: string) => void (api.clock.nowMs = Date.parse(text));
const closed = async () => {
  const { rows } = await sql<{ used: number; refunded: number; runs: number }>`
    select coalesce(sum(used), 0)::int as used, coalesce(sum(refunded), 0)::int as refunded,
           coalesce(sum(runs), 0)::int as runs
      from inbox_preview_days
     where account_id = ${tenant.accountId} and grain = 'workspace_user'`.execute(api.database);
  return rows[0];
};
const closedThrough = async () => (await usage.summaries()).rollup_through;
/** Resolves once a statement of this database waits for a lock. */
const waitForLockWait = () =>
  vi.waitFor(
    async () => {
      const { rows } = await sql<{ pid: number }>`
        select pid from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`.execute(api.database);
      expect(rows).toHaveLength(1);
      return rows[0]!.pid;
    },
    { timeout: 30_000, interval: 10 },
  );

/** A run that is being recorded, on the day before the clock's, until it is let go. */
async function beginRecording(day: string) {
  const held = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  // Closing locks the rows of all accounts, so the lock of a failed test would hold up the tests behind it.
  onTestFinished(() => letGo.resolve());
  const written = api.database.transaction().execute(async (transaction) => {
    await holdUsageDays(transaction, tenant.accountId, '2026-01-01');
    await insertPreviewRun(transaction, tenant.accountId, {
      previewJobId: 'late',
      day,
      environmentId: tenant.environmentId,
      userId: null,
      quantity: 5,
      refunded: 0,
      recordedAt: new Date(`${day}T23:59:59.999Z`),
    });
    held.resolve();
    await letGo.promise;
  });
  await held.promise;
  return {
    async end() {
      letGo.resolve();
      await written;
    },
  };
}

test('I30: a run that is still being recorded when its day is closed is in the sums', async () => {
  setClock('2026-03-02T12:00:00Z');
  await usage.record('early', 2);
  const recording = await beginRecording('2026-03-02');
  setClock('2026-03-04T00:00:00Z');
  const closing = closeDays(api, '2026-03-02');
  await waitForLockWait();
  await recording.end();
  await closing;
  expect(await closed()).toEqual({ used: 7, refunded: 0, runs: 2 });
  expect((await usage.summaries()).totals).toMatchObject({ used: 7, runs: 2 });
});

test('a run that comes after its day was closed counts to the first day that is open', async () => {
  setClock('2026-03-02T23:00:00Z');
  await usage.record('first', 2);
  setClock('2026-03-05T00:00:00Z');
  await closeDays(api, '2026-03-03');
  // Of a process whose clock is days late.
  setClock('2026-03-02T23:30:00Z');
  expect(await usage.record('second', 3)).toMatchObject({ date: '2026-03-04' });
  setClock('2026-03-05T00:00:00Z');
  const log = await usage.log();
  expect(log.entries.map((entry) => [entry.source, entry.date, entry.quantity])).toEqual([
    ['run', '2026-03-04', 3],
    ['rollup', '2026-03-02', 2],
  ]);
  await closeDays(api, '2026-03-04');
  expect(await closed()).toEqual({ used: 5, refunded: 0, runs: 2 });
});

test('a worker that is killed while it closes leaves the days open, and the next one closes them', async () => {
  setClock('2026-03-02T12:00:00Z');
  await usage.record('early', 2);
  const recording = await beginRecording('2026-03-02');
  setClock('2026-03-04T00:00:00Z');
  const worker = createDatabase({
    url: api.databaseUrl,
    poolMax: 1,
    applicationName: 'killed',
    onError: () => {},
  });
  const closing = closeUsageDays(worker, '2026-03-02', 100);
  const ending = closing.then(
    () => 'closed',
    () => 'failed',
  );
  const pid = await waitForLockWait();
  await sql`select pg_terminate_backend(${pid}::int)`.execute(api.database);
  // Of the statement, or of the roll-back behind it on a socket that Postgres has closed.
  expect(await ending).toBe('failed');
  await worker.destroy();
  await recording.end();
  expect([await closed(), await closedThrough()]).toEqual([
    { used: 0, refunded: 0, runs: 0 },
    '2026-03-01',
  ]);
  await closeDays(api, '2026-03-02');
  expect(await closed()).toEqual({ used: 7, refunded: 0, runs: 2 });
});

test('a day that cannot be summed is not closed: the mark and the sums come together or not at all', async () => {
  setClock('2026-03-02T12:00:00Z');
  await usage.record('job', 2);
  await sql`
    insert into inbox_preview_days (account_id, grain, usage_day, environment_id, user_id, runs, used, refunded)
    values (${tenant.accountId}, 'workspace_user', '2026-03-02', ${tenant.environmentId}, 0, 1, 9, 0)`.execute(
    api.database,
  );
  await expect(closeUsageDays(api.database, '2026-03-02', 100)).rejects.toThrow(/duplicate key/);
  expect(await closedThrough()).toBe('2026-03-01');
  await sql`delete from inbox_preview_days where account_id = ${tenant.accountId}`.execute(
    api.database,
  );
  await closeDays(api, '2026-03-02');
  expect(await closed()).toEqual({ used: 2, refunded: 0, runs: 1 });
});

test('I30: who reads while days are closed, by several workers, sees every run once', async () => {
  for (let day = 1; day <= 20; day++) {
    setClock(`2026-03-${String(day).padStart(2, '0')}T12:00:00Z`);
    await usage.record(`a-${day}`, 2);
    await usage.record(`b-${day}`, 3);
  }
  setClock('2026-03-21T12:00:00Z');
  let isClosing = true;
  const readers = Array.from({ length: 4 }, async (_, index) => {
    let seen = 0;
    while (isClosing || seen === 0) {
      if (index % 2 === 0) {
        const { totals } = await usage.summaries({ granularity: 'day', group_by: 'user' });
        expect(totals).toEqual({ used: 100, refunded: 0, net: 100, runs: 40 });
      } else {
        const log = await usage.log({ limit: '200' });
        expect(addUp(log.entries)).toEqual({ net: 100, refunded: 0 });
        expect(log.total).toBe(log.entries.length);
        const sources = new Map<string, Set<string>>();
        for (const { date, source } of log.entries)
          sources.set(date, (sources.get(date) ?? new Set()).add(source));
        expect([...sources.values()].every((kinds) => kinds.size === 1)).toBe(true);
      }
      seen++;
    }
    return seen;
  });
  onTestFinished(() => void (isClosing = false));
  for (let day = 1; day <= 20; day++) {
    const through = `2026-03-${String(day).padStart(2, '0')}`;
    await Promise.all([closeDays(api, through), closeDays(api, through)]);
  }
  isClosing = false;
  await Promise.all(readers);
  expect(await closed()).toEqual({ used: 100, refunded: 0, runs: 40 });
});

test('recording and refunding without a pause keeps no day from being closed, and both are in its sums', async () => {
  setClock('2026-03-02T12:00:00Z');
  for (let index = 0; index < 20; index++) await usage.record(`old-${index}`, 2);
  setClock('2026-03-03T12:00:00Z');
  let isClosed = false;
  const writers = Array.from({ length: 6 }, async (_, writer) => {
    let count = 0;
    while (!isClosed || count < 3) {
      await usage.record(`new-${writer}-${count}`, 1);
      const old = writer * 3 + count;
      if (count < 3) await usage.refund(`old-${old}`, 1);
      count++;
    }
    return count;
  });
  onTestFinished(() => void (isClosed = true));
  await closeDays(api, '2026-03-02');
  isClosed = true;
  const counts = await Promise.all(writers);
  expect(await closed()).toEqual({ used: 40, refunded: 18, runs: 20 });
  const { totals } = await usage.summaries();
  const newRuns = counts.reduce((sum, count) => sum + count);
  expect(totals).toMatchObject({ used: 40 + newRuns, refunded: 18, runs: 20 + newRuns });
});

test('a refund after the close of its day is subtracted from the sums of that day', async () => {
  setClock('2026-03-02T12:00:00Z');
  await usage.record('job', 7);
  setClock('2026-03-05T12:00:00Z');
  await closeDays(api, '2026-03-03');
  await usage.refund('job', 4);
  await usage.refund('job', 4);
  const log = await usage.log();
  expect(log.entries).toMatchObject([
    { source: 'rollup', date: '2026-03-02', quantity: 7, refunded: 4, net: 3 },
  ]);
  expect((await usage.summaries()).totals).toEqual({ used: 7, refunded: 4, net: 3, runs: 1 });
});
