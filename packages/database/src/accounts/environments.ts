/** Workspaces as the API shows them, and their settings. */
import { sql } from 'kysely';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import { transactOnce } from '../changes/transact-once.ts';

export interface WorkspaceTotals {
  readonly environmentId: number;
  readonly name: string;
  /** int8, in decimal digits; so are the others. */
  readonly people: string;
  readonly objectTypes: string;
  readonly objects: string;
}

/** Whose workspace it is. Index: `environments_by_id`. */
export async function findAccountOf(
  database: DatabaseOrTransaction,
  environmentId: number,
): Promise<number | undefined> {
  const { rows } = await sql<{ accountId: string }>`
    select account_id as "accountId" from environments where environment_id = ${environmentId}`.execute(
    database,
  );
  return rows[0] && Number(rows[0].accountId);
}

/**
 * As {@link findAccountOf}, and locks it: until the transaction ends, no other transaction adds to the objects that are
 * counted for the workspace.
 */
export async function lockEnvironment(
  transaction: DatabaseOrTransaction,
  environmentId: number,
): Promise<number | undefined> {
  const { rows } = await sql<{ accountId: number }>`
    select account_id::int as "accountId" from environments
     where environment_id = ${environmentId} for no key update`.execute(transaction);
  return rows[0]?.accountId;
}

/** True if no other workspace is in use: then it shares its capacity with no other. Reads until it finds one. */
export async function isOnlyWorkspace(
  database: DatabaseOrTransaction,
  environmentId: number,
): Promise<boolean> {
  const { rows } = await sql<{ isOnly: boolean }>`
    select not exists (
      select from environments where environment_id <> ${environmentId} and deleted_at is null
    ) as "isOnly"`.execute(database);
  return rows[0]?.isOnly ?? false;
}

/** The account's workspaces that are in use. Index: the primary key. */
export async function listEnvironmentIds(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<number[]> {
  const { rows } = await sql<{ environmentId: number }>`
    select environment_id as "environmentId" from environments
     where account_id = ${accountId} and deleted_at is null order by environment_id`.execute(
    database,
  );
  return rows.map((row) => row.environmentId);
}

/**
 * One workspace with its totals. People are counted as they come and go (`migrations/0027_people_counts.ts`), objects
 * now. By `environments_by_id`, the primary key of `people_counts`, and the unique key of `objects` as an index-only
 * range. That range costs about 0.1 s a million objects, so callers keep the answer for a moment.
 */
export async function findWorkspaceTotals(
  database: DatabaseOrTransaction,
  environmentId: number,
): Promise<WorkspaceTotals | undefined> {
  const { rows } = await sql<WorkspaceTotals>`
    select e.environment_id as "environmentId", e.name,
           (select coalesce(sum(c.people), 0) from people_counts c
             where c.environment_id = ${environmentId}) as people,
           o.types as "objectTypes", o.objects
    from environments e
    cross join (
      select count(*) as objects, count(distinct object_type_id) as types
      from objects where environment_id = ${environmentId}) o
    where e.environment_id = ${environmentId}`.execute(database);
  return rows[0];
}

export interface EnvironmentSettings {
  readonly name: string;
  /** Whether a phone number names a person on Track v2. */
  readonly phoneIdentifies: boolean;
  /** Origins whose pages may show the portal in a frame. */
  readonly portalOrigins: readonly string[];
}

export interface Environment extends EnvironmentSettings {
  readonly environmentId: number;
}

/**
 * Changes the given settings and leaves the rest, with its entry of the audit log. Undefined if the account has no such
 * workspace in use. Index: the primary key.
 */
export async function updateEnvironment(
  database: Database,
  accountId: number,
  environmentId: number,
  settings: Partial<EnvironmentSettings>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Environment | undefined> {
  return transactOnce(
    database,
    origin.call,
    (outcome) => outcome !== undefined,
    async (transaction) => {
      const { rows } = await sql<EnvironmentSettings>`
        select name, phone_identifies as "phoneIdentifies", portal_origins as "portalOrigins" from environments
         where account_id = ${accountId} and environment_id = ${environmentId} and deleted_at is null
           for no key update`.execute(transaction);
      const [before] = rows;
      if (!before) return undefined;
      const after = { ...before, ...settings };
      await sql`
        update environments
           set name = ${after.name}, phone_identifies = ${after.phoneIdentifies},
               portal_origins = ${after.portalOrigins}::text[]
         where account_id = ${accountId} and environment_id = ${environmentId}`.execute(
        transaction,
      );
      await recordChange(
        transaction,
        accountId,
        origin,
        {
          objectType: 'environment',
          objectId: environmentId,
          objectName: after.name,
          environmentId,
          before: audited(before),
          after: audited(after),
        },
        nowMs,
      );
      return { environmentId, ...after };
    },
  );
}

const audited = ({ name, phoneIdentifies, portalOrigins }: EnvironmentSettings) => ({
  name,
  phone_identifies: phoneIdentifies,
  // An empty list is the first state, also for workspaces from before the portal.
  portal_origins: portalOrigins.length === 0 ? null : portalOrigins,
});
