/** Usage of an account's plan. Beside `domain/src/billing/meters.ts`, which prices it. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/**
 * Profiles in all workspaces of the account that are in use, as they are kept
 * (`migrations/0027_people_counts.ts`): a few rows a workspace, however many people it has. By the
 * primary keys.
 */
export async function countProfiles(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select coalesce(sum(c.people), 0) as count
      from environments e
      join people_counts c using (environment_id)
     where e.account_id = ${accountId} and e.deleted_at is null`.execute(database);
  return Number(rows[0]?.count ?? 0);
}
