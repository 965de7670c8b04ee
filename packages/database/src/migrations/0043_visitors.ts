/**
 * Data of anonymous visitors until a person identifies with their id. It is attributes, relationships and devices, in
 * partitions of a week, by the last write, so that data older than a month is dropped and not deleted row by row.
 *
 * Also the write times of a person's attributes, for the comparison with a visitor's trait.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const visitors: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table people add column attribute_places jsonb`.execute(database);
    await sql`
      create table visitors (
        environment_id int not null,
        -- Counted from 1970-01-01. A row whose week changes moves.
        week date not null,
        anonymous_id text collate "C" not null,
        -- The last write of an attribute; null where there is none.
        newest_place text collate "C",
        profile jsonb not null,
        primary key (environment_id, anonymous_id, week)
      ) partition by range (week)`.execute(database);
    // The newest one of a workspace: whether writes of people need be recorded.
    await sql`
      create index visitors_by_place on visitors (environment_id, newest_place)
        where newest_place is not null`.execute(database);
    // Takes rows without a partition of their week, so that an insert never fails.
    await sql`create table visitors_default partition of visitors default`.execute(database);
    // Made apart and then attached: attaching lets reads and writes of the others go on.
    await sql`
      create function make_visitor_partitions(first_day date, weeks int) returns int
      language plpgsql as $body$
      declare
        first_week date := first_day - ((first_day - date '1970-01-01') % 7);
        week_start date;
        partition_name text;
        made int := 0;
      begin
        perform pg_advisory_xact_lock(hashtext('visitor_partitions'));
        for offset_weeks in 0 .. weeks - 1 loop
          week_start := first_week + 7 * offset_weeks;
          partition_name := 'visitors' || to_char(week_start, '_YYYY_MM_DD');
          continue when to_regclass(partition_name) is not null;
          -- Rows that came before their week was made stay where they are, and so does their week.
          continue when exists (
            select from visitors_default where week >= week_start and week < week_start + 7);
          execute format('create table %I (like visitors including defaults including constraints including indexes)', partition_name);
          execute format('alter table visitors attach partition %I for values from (%L) to (%L)',
            partition_name, week_start, week_start + 7);
          made := made + 1;
        end loop;
        return made;
      end
      $body$`.execute(database);
    await sql`select make_visitor_partitions((now() at time zone 'UTC')::date, 3)`.execute(
      database,
    );
  },
};
