/** Purchases in manual review, counted for the operators. */
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { countPurchasesInReview } from '../../../src/billing/purchases-in-review.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

test('purchases in review are counted up to a bound, pending or ended, through their own index', async () => {
  const { database } = await createTestDatabase();
  await sql`insert into accounts (account_id, name) select n, 'A' from generate_series(1, 3000) n`.execute(
    database,
  );
  await sql`insert into audit_chains (account_id) select n from generate_series(1, 3000) n on conflict do nothing`.execute(
    database,
  );
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, next_at, created_at, status, finished_at)
    select n, 'r' || n, 'invoiced', 'credits', 'invoiced', 'f', '{}', '{}', now(), now(),
           case when n % 2 = 0 then 'pending' else 'failed' end, case when n % 2 = 1 then now() end
      from generate_series(1, 3000) n`.execute(database);
  expect(await countPurchasesInReview(database, 10)).toBe(0);
  await sql`update runs set review_reason = 'paid after it was declined' where account_id in (1, 2, 3)`.execute(
    database,
  );
  expect(await countPurchasesInReview(database, 10)).toBe(3);
  expect(await countPurchasesInReview(database, 2)).toBe(2);

  await sql`vacuum analyze runs`.execute(database);
  const [statement] = await statementsSentBy(() => countPurchasesInReview(database, 10));
  const { rows } = await sql
    .raw<{ 'QUERY PLAN': string }>(`explain ${String(statement?.text).replace('$1', '10')}`)
    .execute(database);
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('runs_set_aside');
});
