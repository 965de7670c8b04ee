/**
 * A Postgres that Sluice takes for Citus. For tests of statements that Citus needs once for each tenant.
 *
 * Its database has the name of the extension in the catalogue, without any function of the extension.
 */
import { sql } from 'kysely';
import type { Database } from '../connection/connection.ts';

/** To be called before the first statement that asks (`connection/tenant-statements.ts`). On Citus it has no effect. */
export async function pretendCitus(database: Database, version = '13.2-1'): Promise<void> {
  const { rows } = await sql`select from pg_extension where extname = 'citus'`.execute(database);
  if (rows.length > 0) return;
  await database.transaction().execute(async (transaction) => {
    await sql`set local allow_system_table_mods = on`.execute(transaction);
    await sql`
      insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
      select 999999, 'citus', extowner, extnamespace, false, ${version} from pg_extension
       where extname = 'plpgsql'`.execute(transaction);
    // They go when tables are distributed (`schema/distribute.ts`).
    for (const trigger of ['people_inserted', 'people_deleted', 'people_truncated'])
      await sql`drop trigger if exists ${sql.ref(trigger)} on people`.execute(transaction);
  });
}
