/**
 * A Postgres that is taken for Citus: what is sent once a tenant there is tried without one. For tests.
 *
 * Its database has the name of the extension in the catalogue and nothing of what it does.
 */
import { sql } from 'kysely';
import type { Database } from '../connection/connection.ts';

/** To be called before the first statement that asks (`connection/tenant-statements.ts`). On Citus it has nothing to do. */
export async function pretendCitus(database: Database): Promise<void> {
  const { rows } = await sql`select from pg_extension where extname = 'citus'`.execute(database);
  if (rows.length > 0) return;
  await database.transaction().execute(async (transaction) => {
    await sql`set local allow_system_table_mods = on`.execute(transaction);
    await sql`
      insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
      select 999999, 'citus', extowner, extnamespace, false, '13.2-1' from pg_extension
       where extname = 'plpgsql'`.execute(transaction);
    // They go when tables are distributed (`schema/distribute.ts`).
    for (const trigger of ['people_inserted', 'people_deleted', 'people_truncated'])
      await sql`drop trigger if exists ${sql.ref(trigger)} on people`.execute(transaction);
  });
}
