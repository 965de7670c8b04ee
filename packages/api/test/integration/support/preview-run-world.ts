/** Runs of inbox previews that an account records and takes back. Over HTTP, with the account's credits afterwards. */
import { listBalances } from '@sluice/database/credits/credit-reads';
import { sql } from 'kysely';
import { beforeAll, beforeEach } from 'vitest';
import { startApi, type ApiUnderTest } from './api-under-test.ts';
import { insertTenant, type Tenant } from './inserted-rows.ts';
import { grantPreviews, insertUser } from './usage-world.ts';

const FIRST_MS = Date.parse('2026-03-01T12:00:00Z');

interface AccountUnderTest {
  api: ApiUnderTest;
  account: Tenant;
  /** A user of the account. */
  userId: number;
  /** Path for recording its runs. */
  path: string;
}

/** One API for the file; for each test an account on a paid plan that the catalogue has no allowance for, with one user. */
export function startPreviewRuns() {
  const world = {} as AccountUnderTest;
  let tenantCount = 0;
  beforeAll(async () => {
    world.api = await startApi();
    return () => world.api.close();
  });
  beforeEach(async () => {
    const { api } = world;
    api.clock.nowMs = FIRST_MS;
    world.account = await insertTenant(api.database, `tenant_${++tenantCount}`);
    const { accountId } = world.account;
    world.userId = 100 + tenantCount;
    world.path = `/v1/accounts/${accountId}/billing/inbox_previews/runs`;
    await sql`
      update accounts set plan_id = 'premium_of_old', plan_tier = 'premium'
       where account_id = ${accountId}`.execute(api.database);
    await insertUser(api, accountId, world.userId);
  });

  const body = (changes: object = {}) => ({
    preview_job_id: 'job-1',
    environment_id: world.account.environmentId,
    user_id: world.userId,
    quantity: 3,
    ...changes,
  });
  return Object.assign(world, {
    body,
    record: (changes: object = {}, key = world.account.token) =>
      world.api.call('POST', world.path, { key, body: body(changes) }),
    refund: (jobId: string, sent?: object, key = world.account.token) =>
      world.api.call('POST', `${world.path}/${encodeURIComponent(jobId)}/refund`, {
        key,
        ...(sent && { body: sent }),
      }),
    grant: (given: Parameters<typeof grantPreviews>[2]) =>
      grantPreviews(world.api, world.account, given),
    /** `pool: available/used` of every grant. */
    grants: async (): Promise<string[]> => {
      const { accountId } = world.account;
      const balances = await listBalances(world.api.database, accountId, ['inbox_previews']);
      const list = balances.get('inbox_previews')!;
      return list.map((grant) => `${grant.pool}: ${grant.available}/${grant.used}`);
    },
    /** Of the account's rows. */
    count: async (table: string): Promise<number> => {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int from ${sql.table(table)}
         where account_id = ${world.account.accountId}`.execute(world.api.database);
      return rows[0]!.count;
    },
  });
}
