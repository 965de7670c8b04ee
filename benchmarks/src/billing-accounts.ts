/** Accounts of the billing benchmark. Each has a workspace, a token and credits. */
import type { Database } from '@sluice/database/connection/connection';
import { grantCredits } from '@sluice/database/credits/credits';
import { sql } from 'kysely';
import type { ChildServer } from './child-server.ts';

/** Far from the ids of the demo. */
export const FIRST_ACCOUNT = 1_001;
/** The first of them have credits. */
export const DEBITED_ACCOUNTS = 100;

export const tokenOf = (accountId: number): string => `sa_sandbox_bench_${accountId}`;

/** Uses each token once. Its last use is written at most once a minute, so not again while we measure. */
export async function useTokens(
  server: ChildServer,
  accountIds: readonly number[],
  concurrency: number,
): Promise<void> {
  const left = accountIds.values();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const accountId of left) {
        const answer = await fetch(`${server.url}/v1/accounts/${accountId}`, {
          headers: { Authorization: `Bearer ${tokenOf(accountId)}` },
        });
        await answer.arrayBuffer();
        if (answer.status !== 200) throw new Error(`a token is answered ${answer.status}`);
      }
    }),
  );
}

/** Invoiced, on a paid plan, each with a workspace and a token of its own. */
export async function insertAccounts(database: Database, count: number): Promise<void> {
  const first = FIRST_ACCOUNT - 1;
  const last = FIRST_ACCOUNT + count;
  const numbers = sql`generate_series(${first}::int, ${last}::int) n`;
  await sql`
    insert into accounts (account_id, name, plan_id, plan_name, plan_tier, billing_rail)
    select n, 'Bench', 'premium_month', 'Premium', 'premium', 'invoiced' from ${numbers}`.execute(
    database,
  );
  await sql`
    insert into vendor_customers (account_id, customer_id, has_card)
    select n, 'cus_bench_' || n, true from ${numbers}`.execute(database);
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    select n, n, 'Bench', 'key' from ${numbers}`.execute(database);
  await sql`
    insert into service_accounts (account_id, service_account_id, name, role)
    select n, n, 'Bench', 'account_admin' from ${numbers}`.execute(database);
  await sql`
    insert into api_credentials
      (account_id, service_account_id, kind, name, secret_hash, secret_hint, scopes)
    select n, n, 'service_account', 'Bench', sha256(convert_to('sa_sandbox_bench_' || n, 'UTF8')), 'hint',
           '{usage:write}'
      from ${numbers}`.execute(database);
  await sql`vacuum analyze`.execute(database);
}

/** More credits than are ever taken. */
export async function grantPreviews(database: Database): Promise<void> {
  for (let index = 0; index < DEBITED_ACCOUNTS; index++)
    await database
      .transaction()
      .execute((transaction) =>
        grantCredits(
          transaction,
          { accountId: FIRST_ACCOUNT + index, kind: 'inbox_previews' },
          { pool: 'purchased', amount: 1_000_000_000, expiresAtMs: null, key: 'bench' },
          Date.now(),
        ),
      );
}
