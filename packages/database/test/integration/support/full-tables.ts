/** Tables as full as a busy workspace's. In them, a plan that reads too many rows is noticed. */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

/** The workspace that everything belongs to. */
export const TENANT = 7;

/** Thousands of rows of each kind that the API reads, and the planner's statistics of them. */
export async function fillTables(database: Database): Promise<void> {
  await sql`
    insert into people (environment_id, person_id, id, email, attributes, created_at, updated_at)
    select ${TENANT}, n, 'id-' || n, n || '@example.com', '{}', now(), now() from generate_series(1, 5000) n`.execute(
    database,
  );
  await sql`
    insert into person_identifiers (environment_id, person_id, kind, value)
    select ${TENANT}, n, kind, case kind when 'id' then 'id-' || n else n || '@example.com' end
    from generate_series(1, 5000) n, unnest(array['id', 'email']) kind`.execute(database);
  await sql`
    insert into devices (environment_id, person_id, token, platform, attributes, created_at, updated_at)
    select ${TENANT}, n, 'token', 'ios', '{}', now(), now() from generate_series(1, 5000) n`.execute(
    database,
  );
  await sql`
    insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
    select ${TENANT}, n, 1 + n % 5, 'object-' || n, '{}', now(), now() from generate_series(1, 5000) n`.execute(
    database,
  );
  await sql`
    insert into relationships (environment_id, person_id, object_number, attributes, created_at, updated_at)
    select ${TENANT}, 1 + n % 50, n, '{}', now(), now() from generate_series(1, 5000) n`.execute(
    database,
  );
  await sql`
    insert into relationships (environment_id, person_id, object_number, attributes, created_at, updated_at)
    select ${TENANT}, n, 5000, '{}', now(), now() from generate_series(1000, 5000) n`.execute(
    database,
  );
  await sql`
    insert into events (environment_id, person_id, event_id, kind, name, data, occurred_at, received_at)
    select ${TENANT}, 1 + n % 50, 'event-' || n, 'event', 'bought', '{}', now() - n * interval '1 second', now()
    from generate_series(1, 10000) n`.execute(database);
  // Months of arrivals, each in a partition of its own.
  await sql`select make_event_partitions('2026-01-01'::date, 4)`.execute(database);
  await sql`
    insert into events (environment_id, person_id, event_id, kind, name, data, occurred_at, received_at)
    select ${TENANT}, 1000 + n % 50, 'arrived-' || n, 'event', 'bought', '{}', at, at
    from generate_series(1, 20000) n, lateral (select timestamptz '2026-01-01Z' + n * interval '5 minutes' as at) t`.execute(
    database,
  );
  await sql`
    insert into event_ids (environment_id, event_id, received_at, envelope_number)
    select environment_id, event_id, received_at, row_number() over () from events`.execute(
    database,
  );
  await sql`
    insert into envelopes (envelope_id, operation_count) select 'envelope-' || n, 1 from generate_series(1, 5000) n`.execute(
    database,
  );
  await sql`
    insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message)
    select ${TENANT}, date '2026-01-01' + n / 100, 'invalid', 'source', 'field-' || n % 100, 1, now(), now(), 'x'
    from generate_series(1, 5000) n`.execute(database);
  // Ten kinds of call with unknown keys a day, for 90 days.
  await sql`
    insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message, sample)
    select 0, date '2026-01-01' + n / 10, 'authentication_failed', 'source-' || n % 10, '', 1, now(), now(), 'x', 'rong'
    from generate_series(0, 899) n`.execute(database);
  await sql`
    insert into webhooks (environment_id, webhook_id, name, endpoint, events, signing_key)
    select ${TENANT}, n, 'a', 'https://example.com', array['email_sent'], 'key' from generate_series(1, 2000) n`.execute(
    database,
  );
  await sql`
    insert into lanes (environment_id, webhook_id, last_sequence, cursor_sequence, attempted_sequence)
    select ${TENANT}, n, 20000, 15000, 15010 from generate_series(1, 3) n`.execute(database);
  await sql`
    insert into delivery_log (environment_id, webhook_id, sequence, occurred_at, event_id, event_type, body, cause_event_id)
    select ${TENANT}, w, n, now(), n::text, 'email_sent', '{}', 'cause-' || n from generate_series(1, 3) w, generate_series(1, 20000) n`.execute(
    database,
  );
  await sql`
    insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, outcome)
    select ${TENANT}, w, n, 1, 1, now(), 'delivered' from generate_series(1, 3) w, generate_series(1, 15000) n`.execute(
    database,
  );
  await sql`
    insert into webhook_replays (environment_id, webhook_id, replay_id, created_at, ended_at, created_by, criteria,
                                 rate_per_second, through_sequence, cursor_sequence, endpoint, state)
    select ${TENANT}, 1 + n % 3, n, now(), now(), 'key', '{}', 1, 20000, 0, 'https://example.com', 'done'
    from generate_series(1, 5000) n`.execute(database);
  await sql`
    insert into replay_attempts (environment_id, webhook_id, replay_id, sequence, attempt, duration_ms, started_at, outcome)
    select ${TENANT}, 1, 3, n, 1, 1, now(), 'delivered' from generate_series(1, 15000) n`.execute(
    database,
  );
  await sql`insert into accounts (account_id, name) values (1, 'a')`.execute(database);
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    values (1, ${TENANT}, 'a', 'key')`.execute(database);
  await sql`
    insert into api_credentials (account_id, environment_id, kind, name, secret_hash, secret_hint)
    select 1, ${TENANT}, 'app', 'a', sha256(n::text::bytea), 'hint' from generate_series(1, 5000) n`.execute(
    database,
  );
  await sql`
    insert into imports (environment_id, name, identifier, data_to_process, state, created_at, updated_at)
    select ${TENANT}, 'a', 'id', 'all', case n when 5000 then 'preprocessed' else 'imported' end, now(), now()
    from generate_series(1, 5000) n`.execute(database);
  await sql`
    insert into import_problems (environment_id, import_id, severity, row_number, position, column_name, code, message, record)
    select ${TENANT}, 1, 'error', n, 0, '', 'invalid', 'x', '[]' from generate_series(1, 10000) n`.execute(
    database,
  );
  await sql`analyze`.execute(database);
}
