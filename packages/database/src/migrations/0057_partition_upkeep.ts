/**
 * Makes and drops partitions by functions of the schema's owner.
 *
 * They act as the owner, so that the worker's login need not own the tables (`schema/database-roles.ts`). Each touches
 * only partitions of its own tables, by their names.
 *
 * Only a worker may call them: the first three were everybody's, as functions are. Without roles the owner itself
 * calls.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

const MAKERS = [
  'make_event_partitions(date, int)',
  'make_visitor_partitions(date, int)',
  'make_delivery_partitions(date, int)',
] as const;

export const partitionUpkeep: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Names are looked up in the tables' schema, and never among the caller's temporary tables first.
    const { rows } = await sql<{ name: string }>`
      select quote_ident(current_schema()) as name`.execute(database);
    const path = sql.raw(`search_path = ${rows[0]?.name ?? 'public'}, pg_temp`);
    for (const maker of MAKERS)
      await sql`alter function ${sql.raw(maker)} security definer set ${path}`.execute(database);
    await sql`
      create function require_partition(parent text, partition_name text) returns void
      language plpgsql stable as $body$
      begin
        if not exists (select from pg_inherits where inhparent = to_regclass(parent)
                                                 and inhrelid = to_regclass(partition_name)) then
          raise exception '% is no partition of %', partition_name, parent using errcode = 'undefined_table';
        end if;
      end
      $body$`.execute(database);
    await sql`
      create function drop_visitor_partition(partition_name text) returns void
      language plpgsql security definer set ${path} as $body$
      begin
        perform require_partition('visitors', partition_name);
        execute format('drop table %I', partition_name);
      end
      $body$`.execute(database);
    await sql`
      create function require_delivery_partition(parent text, partition_name text, partition_day date) returns void
      language plpgsql stable as $body$
      begin
        if parent not in ('delivery_log', 'delivery_attempts')
           or partition_name not in (parent || to_char(partition_day, '_YYYY_MM_DD'),
                                     parent || to_char(partition_day, '_YYYY_MM_DD') || '_kept') then
          raise exception '% is no day of %', partition_name, parent using errcode = 'undefined_table';
        end if;
        perform require_partition(parent, partition_name);
      end
      $body$`.execute(database);
    // With its indexes and its bounds, so that attaching it needs no scan.
    await sql`
      create function make_kept_delivery_partition(parent text, partition_name text, partition_day date) returns void
      language plpgsql security definer set ${path} as $body$
      begin
        perform require_delivery_partition(parent, partition_name, partition_day);
        execute format(
          'create table %I (like %I including defaults including constraints including indexes,
                            constraint day_bounds check (day = %L::date))',
          partition_name || '_kept', parent, partition_day);
      end
      $body$`.execute(database);
    await sql`
      create function drop_delivery_partition(parent text, partition_name text, partition_day date, has_kept boolean)
      returns void
      language plpgsql security definer set ${path} as $body$
      begin
        perform require_delivery_partition(parent, partition_name, partition_day);
        execute format('alter table %I detach partition %I', parent, partition_name);
        execute format('drop table %I', partition_name);
        if has_kept then
          execute format('alter table %I attach partition %I for values from (%L) to (%L)',
            parent, partition_name || '_kept', partition_day, partition_day + 1);
        end if;
      end
      $body$`.execute(database);
    for (const made of [
      ...MAKERS,
      'drop_visitor_partition(text)',
      'make_kept_delivery_partition(text, text, date)',
      'drop_delivery_partition(text, text, date, boolean)',
    ])
      await sql`revoke execute on function ${sql.raw(made)} from public`.execute(database);
  },
};
