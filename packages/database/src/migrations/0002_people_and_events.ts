/**
 * People, objects, relationships, events, envelopes and the issues log.
 *
 * An identifier (`id`, lower-cased `email`, `phone`, `anonymous_id`) is a row of `person_identifiers`; it names the
 * `person_id`. `people` is read by `person_id` only, and carries `id`, `email` and `phone` for display. The svc_id is
 * `person_id` written differently.
 *
 * Identifiers are a table of their own and not unique columns of `people`, because every transaction that works on an
 * identifier holds its row, also before it has a person (an anonymous visitor) and after it lost one (suppressed). So
 * two shards can neither create one person twice, nor bring back a suppressed one, nor leave an anonymous event behind
 * that is being attached: each meets the same row.
 * Ids are compared byte by byte (`collate "C"`): exact, and half the price of a locale's order.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const peopleAndEvents: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await createPeople(database);
    await createObjects(database);
    await createEvents(database);
    await createBookkeeping(database);
  },
};

async function createPeople(database: Kysely<unknown>): Promise<void> {
  // One value is a block of 1,000 numbers (`numbers.ts`), so that making a person costs no round trip.
  await sql`create sequence number_blocks`.execute(database);

  // Room in each page, so that a changed person stays in it and touches no index.
  await sql`
    create table people (
      person_id bigint not null,
      environment_id int not null,
      -- Null: never said. The attribute of this name is kept here only.
      unsubscribed boolean,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      -- The newest \`_timestamp\` that was applied; older ones are skipped.
      attributes_at timestamptz,
      id text collate "C",
      -- As first sent; compared through person_identifiers, where it is lower case.
      email text collate "C",
      -- Only where it identifies; a phone that is an ordinary attribute is in attributes only.
      phone text collate "C",
      attributes jsonb not null,
      primary key (environment_id, person_id)
    ) with (fillfactor = 85)`.execute(database);

  await sql`
    create table person_identifiers (
      -- Null: seen on anonymous events, nobody's yet. Of a suppressed identifier: whose it was.
      person_id bigint,
      environment_id int not null,
      suppressed boolean not null default false,
      kind text collate "C" not null check (kind in ('id', 'email', 'phone', 'anonymous_id')),
      -- Emails in lower case.
      value text collate "C" not null,
      primary key (environment_id, kind, value)
    )`.execute(database);
  // All identifiers of one person, when they are deleted, suppressed or merged.
  await sql`
    create index person_identifiers_by_person
      on person_identifiers (environment_id, person_id) where person_id is not null`.execute(
    database,
  );

  await sql`
    create table devices (
      person_id bigint not null,
      environment_id int not null,
      token text collate "C" not null,
      platform text not null,
      last_used_at timestamptz,
      attributes jsonb not null,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      primary key (environment_id, person_id, token)
    )`.execute(database);

  await sql`
    create table segment_members (
      person_id bigint not null,
      environment_id int not null,
      segment_id int not null,
      added_at timestamptz not null,
      primary key (environment_id, segment_id, person_id)
    )`.execute(database);
  await sql`create index segment_members_by_person on segment_members (environment_id, person_id)`.execute(
    database,
  );

  // Messages that something was reported about: their channel and the person behind them.
  await sql`
    create table message_deliveries (
      person_id bigint,
      environment_id int not null,
      delivery_id text collate "C" not null,
      channel text not null,
      recipient text,
      created_at timestamptz not null,
      primary key (environment_id, delivery_id)
    )`.execute(database);
  await sql`
    create index message_deliveries_by_person
      on message_deliveries (environment_id, person_id) where person_id is not null`.execute(
    database,
  );
}

async function createObjects(database: Kysely<unknown>): Promise<void> {
  // object_number is the svc object id written as a number; it never comes back once deleted.
  await sql`
    create table objects (
      object_number bigint not null,
      environment_id int not null,
      object_type_id int not null,
      object_id text collate "C" not null,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      attributes_at timestamptz,
      attributes jsonb not null,
      primary key (environment_id, object_number),
      unique (environment_id, object_type_id, object_id)
    ) with (fillfactor = 85)`.execute(database);

  await sql`
    create table relationships (
      person_id bigint not null,
      object_number bigint not null,
      environment_id int not null,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      attributes jsonb not null,
      primary key (environment_id, person_id, object_number)
    )`.execute(database);
  await sql`create index relationships_by_object on relationships (environment_id, object_number)`.execute(
    database,
  );
}

async function createEvents(database: Kysely<unknown>): Promise<void> {
  // Events and the other activities of people, in one table, so that a person's history is one index scan. Partitioned
  // by arrival, so that old rows are dropped with their partition and never deleted row by row. It has no unique key:
  // event_ids holds the uniqueness, which a partition could not.
  await sql`
    create table events (
      -- Null until the anonymous id is somebody's.
      person_id bigint,
      occurred_at timestamptz not null,
      received_at timestamptz not null,
      -- Null while anonymous.
      processed_at timestamptz,
      environment_id int not null,
      -- 'event', 'page', 'screen', or an activity: 'attribute_change', 'profile_create', …
      kind text collate "C" not null,
      event_id text collate "C" not null,
      anonymous_id text collate "C",
      name text,
      data jsonb not null
    ) partition by range (received_at)`.execute(database);
  // A person's history, newest first, and the events that a merge moves.
  await sql`
    create index events_by_person
      on events (environment_id, person_id, occurred_at desc, event_id)
      where person_id is not null`.execute(database);
  // The events that an identify attaches. Empty for workspaces without anonymous traffic.
  await sql`
    create index events_by_anonymous_id
      on events (environment_id, anonymous_id, occurred_at)
      where person_id is null and anonymous_id is not null`.execute(database);
  // Takes rows without a partition of their month, so that an insert never fails.
  await sql`create table events_default partition of events default`.execute(database);
  // Made apart and then attached: attaching lets reads and writes of the others go on.
  await sql`
    create function make_event_partitions(first_day date, months int) returns int
    language plpgsql as $body$
    declare
      month_start timestamptz;
      month_end timestamptz;
      partition_name text;
      made int := 0;
    begin
      perform pg_advisory_xact_lock(hashtext('make_event_partitions'));
      for offset_months in 0 .. months - 1 loop
        month_start := (date_trunc('month', first_day) + make_interval(months => offset_months))::timestamp at time zone 'UTC';
        month_end := (date_trunc('month', first_day) + make_interval(months => offset_months + 1))::timestamp at time zone 'UTC';
        partition_name := 'events_' || to_char(month_start at time zone 'UTC', 'YYYY_MM');
        continue when to_regclass(partition_name) is not null;
        -- Rows that came before their month was made stay where they are, and so does their month.
        continue when exists (
          select from events_default where received_at >= month_start and received_at < month_end);
        execute format('create table %I (like events including defaults including constraints)', partition_name);
        execute format('alter table events attach partition %I for values from (%L) to (%L)',
          partition_name, month_start, month_end);
        made := made + 1;
      end loop;
      return made;
    end
    $body$`.execute(database);
  await sql`select make_event_partitions((now() - interval '1 month')::date, 4)`.execute(database);

  // Event ids that were taken: a second event with one is not counted, through any API.
  await sql`
    create table event_ids (
      created_at timestamptz not null default now(),
      environment_id int not null,
      event_id text collate "C" not null,
      primary key (environment_id, event_id)
    )`.execute(database);
}

async function createBookkeeping(database: Kysely<unknown>): Promise<void> {
  // The claim: an envelope's row is written with its effects, so a second run finds it. Holds the
  // operations of several workspaces, so it is no tenant's table.
  await sql`
    create table envelopes (
      processed_at timestamptz not null default now(),
      operation_count int not null,
      envelope_id text collate "C" primary key
    )`.execute(database);

  // Refused, skipped or corrected input, counted by day. Workspace 0: credentials that name no workspace.
  await sql`
    create table ingestion_issues (
      environment_id int not null,
      day date not null,
      code text collate "C" not null,
      source text collate "C" not null,
      -- '' where no one field is meant.
      field text collate "C" not null,
      count bigint not null,
      first_at timestamptz not null,
      last_at timestamptz not null,
      -- Of the latest.
      message text not null,
      sample text,
      primary key (environment_id, day, code, source, field)
    ) with (fillfactor = 80)`.execute(database);
}
