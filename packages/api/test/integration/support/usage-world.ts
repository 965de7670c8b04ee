/** Credits to spend on inbox previews, and runs that were recorded. */
import { closeUsageDays } from '@sluice/database/credits/usage-watermarks';
import { grantCredits, type NewGrant } from '@sluice/database/credits/credits';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect } from 'vitest';
import { recordPreviewRun } from '../../../src/usage/record-preview-run.ts';
import { startApi, type ApiUnderTest } from './api-under-test.ts';
import { insertTenant, type Tenant } from './inserted-rows.ts';

/** A grant of inbox previews. */
export const grantPreviews = (
  api: Pick<ApiUnderTest, 'database' | 'clock'>,
  { accountId }: Pick<Tenant, 'accountId'>,
  given: Pick<NewGrant, 'amount' | 'key'> & Partial<NewGrant>,
): Promise<boolean> =>
  api.database
    .transaction()
    .execute((transaction) =>
      grantCredits(
        transaction,
        { accountId, kind: 'inbox_previews' },
        { pool: 'purchased', expiresAtMs: null, ...given },
        api.clock.nowMs,
      ),
    );

export const setClock = ({ clock }: Pick<ApiUnderTest, 'clock'>, text: string): void => {
  clock.nowMs = Date.parse(text);
};

/** So many minutes after noon of that day of March 2026. */
export const setNoonOfMarch = (api: ApiUnderTest, day: number, minute = 0): void =>
  setClock(
    api,
    `2026-03-${String(day).padStart(2, '0')}T12:${String(minute).padStart(2, '0')}:00.000Z`,
  );

export interface UsageWorld {
  api: ApiUnderTest;
  tenant: Tenant;
  usage: ReturnType<typeof usageOf>;
  /** A user of the account. */
  ada: number;
}

/** One API for the file; for each test an account with 10,000 previews to spend, at noon of 10 March 2026. */
export function startUsageWorld(): UsageWorld {
  const world = {} as UsageWorld;
  let accountCount = 0;
  beforeAll(async () => {
    world.api = await startApi();
    return () => world.api.close();
  });
  beforeEach(async () => {
    world.tenant = await insertTenant(world.api.database, `tenant_${++accountCount}`);
    world.usage = usageOf(world.api, world.tenant);
    world.ada = 1_000 + accountCount;
    await insertUser(world.api, world.tenant.accountId, world.ada);
    await grantPreviews(world.api, world.tenant, { amount: 10_000, key: 'a' });
    setNoonOfMarch(world.api, 10);
  });
  return world;
}

/** Runs of one preview each, in the tenant's workspace, with credits for their cost granted before, and a few more. */
export async function insertPreviewRuns(
  api: ApiUnderTest,
  tenant: Tenant,
  previewJobIds: readonly string[],
): Promise<void> {
  const key = `for ${previewJobIds.join()}`;
  await grantPreviews(api, tenant, { amount: previewJobIds.length + 10, key });
  for (const previewJobId of previewJobIds)
    await recordPreviewRun(
      { database: api.database, now: () => api.clock.nowMs },
      {
        accountId: tenant.accountId,
        environmentId: tenant.environmentId,
        previewJobId,
        userId: null,
        quantity: 1,
        hasAllowance: true,
        origin: { actor: { type: 'system' } },
      },
    );
}

/** As the workers do it: everything up to that day. */
export async function closeDays(
  { database }: Pick<ApiUnderTest, 'database'>,
  through: string,
): Promise<void> {
  while ((await closeUsageDays(database, through, 100)) > 0);
}

/** A user of the account whose first name is `Ada`. */
export const insertUser = (
  { database }: Pick<ApiUnderTest, 'database'>,
  accountId: number,
  userId: number,
) =>
  sql`
    insert into users (account_id, user_id, email, first_name, last_name, role, status)
    values (${accountId}, ${userId}, ${`${userId}@example.com`}, 'Ada', ${`L${userId}`}, 'member', 'active')`.execute(
    database,
  );

/** A further workspace of the account. */
export async function insertWorkspace(
  { database }: Pick<ApiUnderTest, 'database'>,
  accountId: number,
  name: string,
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into environments (account_id, name, webhook_signing_key) values (${accountId}, ${name}, 'key')
    returning environment_id as id`.execute(database);
  return rows[0]!.id;
}

/** Calls the usage routes of one tenant, which must succeed. */
export function usageOf(api: ApiUnderTest, tenant: Tenant) {
  const base = `/v1/accounts/${tenant.accountId}/billing/inbox_previews`;
  const get = (path: string, query: Record<string, string>) =>
    api.call('GET', `${base}/${path}?${new URLSearchParams(query).toString()}`, {
      key: tenant.token,
    });
  const usage = {
    get,
    base,
    async log(query: Record<string, string> = {}): Promise<UsageLogWire> {
      const answer = await get('usage_log', query);
      expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
      return answer.json();
    },
    /** Every page, one after the other. */
    async wholeLog(query: Record<string, string>): Promise<UsageLogWire> {
      const first = await usage.log(query);
      const entries = [...first.entries];
      for (let cursor = first.next_cursor; cursor !== null;) {
        const page = await usage.log({ ...query, cursor });
        expect(page).toMatchObject({ total: first.total, range: first.range });
        entries.push(...page.entries);
        cursor = page.next_cursor;
      }
      return { ...first, entries };
    },
    async summaries(query: Record<string, string> = {}): Promise<UsageSummariesWire> {
      const answer = await get('usage_summaries', query);
      expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
      return answer.json();
    },
    async record(previewJobId: string, quantity = 1, changes: object = {}) {
      const body = {
        preview_job_id: previewJobId,
        environment_id: tenant.environmentId,
        quantity,
        ...changes,
      };
      const answer = await api.call('POST', `${base}/runs`, { key: tenant.token, body });
      expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
      return answer.json().run as { date: string };
    },
    async refund(previewJobId: string, quantity?: number) {
      const url = `${base}/runs/${encodeURIComponent(previewJobId)}/refund`;
      const body = quantity === undefined ? {} : { quantity };
      const answer = await api.call('POST', url, { key: tenant.token, body });
      expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
    },
  };
  return usage;
}

export interface UsageLogWire {
  readonly entries: readonly {
    readonly source: 'run' | 'rollup';
    readonly date: string;
    readonly preview_job_id?: string;
    readonly quantity: number;
    readonly refunded: number;
    readonly net: number;
    readonly environment_id: number;
    readonly workspace_name: string | null;
    readonly user_id: number | null;
    readonly run_by_name: string | null;
  }[];
  readonly total: number;
  readonly next_cursor: string | null;
  readonly range: { readonly start: string; readonly end: string };
}

interface Sums {
  readonly used: number;
  readonly refunded: number;
  readonly net: number;
}

export interface UsageSummariesWire {
  readonly range: { readonly start: string; readonly end: string; readonly granularity: string };
  readonly totals: Sums & { readonly runs: number };
  readonly series: readonly (Sums & {
    readonly bucket_start: string;
    readonly bucket_end: string;
  })[];
  readonly groups?: readonly (Sums & {
    readonly key: { readonly environment_id?: number; readonly user_id?: number | null };
    readonly name: string | null;
    readonly series: readonly Sums[];
  })[];
  readonly credit_balance: {
    readonly pools: readonly { readonly pool: string; readonly granted: number }[];
  };
  readonly rollup_through: string | null;
}

/** Of entries, points or groups. */
export const addUp = (list: readonly { readonly refunded: number; readonly net: number }[]) => ({
  refunded: list.reduce((sum, each) => sum + each.refunded, 0),
  net: list.reduce((sum, each) => sum + each.net, 0),
});
