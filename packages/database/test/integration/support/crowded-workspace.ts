/**
 * A workspace with 100,000 applications, endpoints and deliveries.
 *
 * Fifty workspaces have event types, 50,000 in two versions each.
 */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

export const TENANT = 7;
const COUNT = 100_000;
/** The workspace's own webhooks. */
export const OWN = 100;
export const FEEDS = 20;
export const ENDPOINTS_EACH = 50;
/** The webhook with the many deliveries; it is one of the workspace's own. */
export const BUSY = { environmentId: TENANT, webhookId: 1 };
/** Event types of each workspace. The first of them are archived. */
const TYPES_EACH = 1_000;
export const ARCHIVED = 100;
/** Event types that the webhooks of the link name. */
export const NAMED = 7;

/** Fills an empty database, and lets Postgres count the rows. */
export async function fillWebhooks(database: Database): Promise<void> {
  await sql`
    insert into applications (environment_id, application_id, name)
    select ${TENANT}, 'customer-' || lpad(n::text, 6, '0'), 'Customer' from generate_series(0, ${COUNT - 1}::int) n`.execute(
    database,
  );
  // The workspace's own come first, so that they stand among the pages of the others.
  await sql`
    insert into webhooks (environment_id, webhook_id, name, endpoint, events, event_names, signing_key, application_id)
    overriding system value
    select ${TENANT}, n, 'n', 'https://example.com/', '{message}',
           case when n % 30000 = 0 then array['type-0' || (200 + n / 10000), 'type-0300', 'type-0' || (400 + n / 10000)] end, 'key',
           case when n > ${OWN}::int then 'customer-' || lpad(((n - ${OWN}::int - 1) / ${ENDPOINTS_EACH}::int)::text, 6, '0') end
      from generate_series(1, ${OWN + COUNT}::int) n`.execute(database);
  await sql`
    insert into webhooks (environment_id, webhook_id, name, endpoint, events, signing_key, feed_name)
    overriding system value
    select ${TENANT}, ${OWN + COUNT}::int + n, 'n', '', '{event}', 'key', 'feed-' || n
      from generate_series(1, ${FEEDS}::int) n`.execute(database);
  await sql`
    insert into lanes (environment_id, webhook_id, is_paused, last_sequence, cursor_sequence)
    select environment_id, webhook_id, false, ${COUNT}, ${COUNT} from webhooks`.execute(database);
  await sql`
    insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body)
    select ${TENANT}, ${BUSY.webhookId}, n, 'event-' || n, 'event', now(), '{}' from generate_series(1, ${COUNT}::int) n`.execute(
    database,
  );
  await sql`
    insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, outcome, status)
    select ${TENANT}, ${BUSY.webhookId}, n, 1, 5, now(), 'delivered', 200 from generate_series(1, ${COUNT}::int) n`.execute(
    database,
  );
  await sql`
    insert into portal_links (environment_id, portal_link_id, label, capabilities, theme, code_hash, code_ends_at, ends_at)
    values (${TENANT}, 'link', 'acme/jo', '{}', '{}', 'x', now(), now() + interval '1 hour')`.execute(
    database,
  );
  await sql`
    insert into portal_link_webhooks (environment_id, portal_link_id, webhook_id)
    select ${TENANT}, 'link', n * 30000 from generate_series(1, 3) n`.execute(database);
  // Each in two versions.
  await sql`
    insert into event_types (environment_id, name, version, description, schema, is_current, is_archived)
    select environment_id, 'type-' || lpad(n::text, 4, '0'), version, 'A type.', '{}', version = 2,
           version = 2 and n <= ${ARCHIVED}::int
      from generate_series(${TENANT - 5}::int, ${TENANT + 44}::int) environment_id,
           generate_series(1, ${TYPES_EACH}::int) n, generate_series(1, 2) version`.execute(
    database,
  );
  await sql`vacuum analyze`.execute(database);
}
