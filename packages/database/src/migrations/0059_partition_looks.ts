/**
 * Partition functions that Citus accepts. They select a column when they look for rows that came before their
 * partition: Citus refuses `select from` without any if several nodes have the rows. The functions keep their owner and
 * their `search_path`.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const partitionLooks: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    for (const name of ['make_event_partitions', 'make_visitor_partitions']) {
      const { rows } = await sql<{ definition: string }>`
        select pg_get_functiondef(${`${name}(date, int)`}::regprocedure) as definition`.execute(
        database,
      );
      const definition = (rows[0]?.definition ?? '').replace('select from', 'select 1 from');
      await sql`${sql.raw(definition)}`.execute(database);
    }
  },
};
