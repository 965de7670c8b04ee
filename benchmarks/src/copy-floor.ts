/**
 * Floor for all work that ends as rows in Postgres: one `COPY` of the same event rows. The server reads them
 * from a file into a table with the indexes of a month's partition.
 */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

export async function countOf(database: Database, table: string): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select count(*) as count from ${sql.table(table)}`.execute(database);
  return Number(rows[0]?.count);
}

/** One table with the indexes of a month's partition. */
export async function makeCopyTable(database: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select to_char(now() at time zone 'UTC', '"events_"YYYY_MM') as name`.execute(database);
  await sql`create table events_copied (like ${sql.table(rows[0]?.name ?? '')} including all)`.execute(
    database,
  );
}

/**
 * Every round begins with empty tables, and right after a checkpoint, so that the round itself has no
 * checkpoint.
 */
export async function emptyEvents(database: Database): Promise<void> {
  await sql`truncate events, event_ids, envelopes, events_copied`.execute(database);
  await sql`vacuum analyze people`.execute(database);
  await sql`checkpoint`.execute(database);
}

/** The very rows that ours wrote, in a file that the server reads itself: `COPY` at its best. */
export async function writeEventRows(database: Database): Promise<string> {
  const { rows } = await sql<{ file: string }>`
    select current_setting('data_directory') || '/events.copy' as file`.execute(database);
  const file = rows[0]?.file ?? '';
  await sql`copy (select * from events) to ${sql.lit(file)}`.execute(database);
  return file;
}

export async function copyRowsPerSecond(database: Database, file: string): Promise<number> {
  await emptyEvents(database);
  const startedAt = performance.now();
  await sql`copy events_copied from ${sql.lit(file)}`.execute(database);
  const seconds = (performance.now() - startedAt) / 1_000;
  return (await countOf(database, 'events_copied')) / seconds;
}
