/**
 * The delivery log and its attempts in partitions of a day.
 *
 * So old rows are dropped with their partition and not deleted row by row. By the day on which a row was written; UTC.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

const TABLES = [
  { table: 'delivery_log', key: 'environment_id, webhook_id, sequence, day' },
  { table: 'delivery_attempts', key: 'environment_id, webhook_id, sequence, attempt, day' },
] as const;

export const deliveryPartitions: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    for (const { table, key } of TABLES) {
      const [name, before, standard] = [table, `${table}_before`, `${table}_default`].map((part) =>
        sql.table(part),
      );
      await sql`alter table ${name} rename to ${before}`.execute(database);
      await sql`alter table ${before} rename constraint ${sql.ref(`${table}_pkey`)} to ${sql.ref(`${table}_before_pkey`)}`.execute(
        database,
      );
      await sql`
        create table ${name} (
          like ${before} including defaults including constraints,
          day date not null default (now() at time zone 'UTC')::date,
          -- A lane's sequence has no repetition in any case; the day is there because a partition asks for it.
          primary key (${sql.raw(key)})
        ) partition by range (day)`.execute(database);
      const { rows: indexes } = await sql<{ name: string; definition: string }>`
        select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
         where indrelid = ${`${table}_before`}::regclass and not indisprimary`.execute(database);
      for (const { name: index, definition } of indexes) {
        await sql`drop index ${sql.table(index)}`.execute(database);
        const onNew = definition.replace(/ ON \S+ /, ` ON ${table} `);
        await sql`${sql.raw(onNew)}`.execute(database);
      }
      // Takes rows without a partition of their day, so that an insert never fails.
      await sql`create table ${standard} partition of ${name} default`.execute(database);
    }
    // Made apart and then attached: attaching lets reads and writes of the others go on.
    await sql`
      create function make_delivery_partitions(first_day date, days int) returns int
      language plpgsql as $body$
      declare
        parent text;
        partition_day date;
        partition_name text;
        has_rows boolean;
        made int := 0;
      begin
        perform pg_advisory_xact_lock(hashtext('delivery_partitions'));
        foreach parent in array array['delivery_log', 'delivery_attempts'] loop
          for offset_days in 0 .. days - 1 loop
            partition_day := first_day + offset_days;
            partition_name := parent || to_char(partition_day, '_YYYY_MM_DD');
            continue when to_regclass(partition_name) is not null;
            -- Rows that came before their day was made stay where they are, and so does their day.
            execute format('select exists (select from %I where day = %L)', parent || '_default', partition_day) into has_rows;
            continue when has_rows;
            execute format('create table %I (like %I including defaults including constraints including indexes)', partition_name, parent);
            execute format('alter table %I attach partition %I for values from (%L) to (%L)',
              parent, partition_name, partition_day, partition_day + 1);
            made := made + 1;
          end loop;
        end loop;
        return made;
      end
      $body$`.execute(database);
    await sql`select make_delivery_partitions((now() at time zone 'UTC')::date, 4)`.execute(
      database,
    );
    for (const { table } of TABLES) {
      const before = sql.table(`${table}_before`);
      const { rows } = await sql<{ columns: string }>`
        select string_agg(quote_ident(attname), ', ' order by attnum) as columns from pg_attribute
         where attrelid = ${`${table}_before`}::regclass and attnum > 0 and not attisdropped`.execute(
        database,
      );
      const columns = sql.raw(rows[0]?.columns ?? '');
      await sql`insert into ${sql.table(table)} (${columns}) select ${columns} from ${before}`.execute(
        database,
      );
      await sql`drop table ${before}`.execute(database);
    }
    // Deliveries beyond the cursor are not from a day before this one; null if that is not known.
    await sql`alter table lanes add column read_from_day date`.execute(database);
  },
};
