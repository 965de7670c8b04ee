/**
 * The path of `GET /v1/events/{id}/trace`: from an event's id to its envelope, row and deliveries.
 *
 *   event_ids ── envelope_number ──▶ envelopes
 *       └─ received_at ────────────▶ events: one partition, and in it one millisecond of one workspace
 *   delivery_log ── event_id, cause_event_id ◀── the reporting event, and the client's event behind it
 *
 * Events have no index by their id. Ids that clients make are random, so that each event would write
 * a page of its own, and `event_ids` has that index already. It has the time of receipt, and
 * arrival grows, so that the index by arrival is written at its end.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const eventTraces: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Null in earlier rows: adding them rewrites no row. A default that is set afterwards is for new rows only.
    await sql`create sequence envelope_numbers`.execute(database);
    await sql`alter table envelopes add column envelope_number bigint`.execute(database);
    await sql`
      alter table envelopes alter column envelope_number set default nextval('envelope_numbers')`.execute(
      database,
    );
    await sql`
      create unique index envelopes_by_number on envelopes (envelope_number)`.execute(database);
    await sql`
      alter table event_ids
        add column received_at timestamptz,
        add column envelope_number bigint,
        -- Which call brought it; null where that is not known.
        add column source text collate "C"`.execute(database);
    await sql`
      create index events_by_arrival on events (environment_id, received_at)`.execute(database);

    await sql`
      alter table delivery_log
        add column envelope_number bigint,
        -- The id of the client's event that was reported; null where what was reported has none.
        add column cause_event_id text collate "C"`.execute(database);
    await sql`
      create index delivery_log_by_event on delivery_log (environment_id, event_id)`.execute(
      database,
    );
    await sql`
      create index delivery_log_by_cause
        on delivery_log (environment_id, cause_event_id) where cause_event_id is not null`.execute(
      database,
    );
  },
};
