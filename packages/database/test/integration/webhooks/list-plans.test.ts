/**
 * A page of each list reads only a page's rows.
 *
 * The workspace has 100,000 applications, endpoints and deliveries. Each page uses an index. The statements are the
 * ones that the routes send, as Postgres runs them.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listAttempts, listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { listLaneStates } from '@sluice/database/delivery/lane-states';
import { listRecentDeliveries } from '@sluice/database/events/recent-deliveries';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { countWebhooks, findWebhook, listWebhooks } from '@sluice/database/webhooks/webhooks';
import {
  findApplication,
  listApplications,
  listEndpoints,
} from '@sluice/database/webhooks/applications';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { explain, rowsRead } from '../support/explain.ts';
import { FILL_TIMEOUT_MS } from '../support/fill-timeout.ts';

const TENANT = 7;
const COUNT = 100_000;
/** A page, and one more row, whose presence means that there is another page. */
const PAGE = 51;
const OWN = 100;
/** The webhook with the many deliveries; it is one of the workspace's own. */
const BUSY = { environmentId: TENANT, webhookId: 1 };
const ENDPOINTS_EACH = 50;

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await fill();
}, FILL_TIMEOUT_MS);

async function fill(): Promise<void> {
  await sql`
    insert into applications (environment_id, application_id, name)
    select ${TENANT}, 'customer-' || lpad(n::text, 6, '0'), 'Customer' from generate_series(0, ${COUNT - 1}::int) n`.execute(
    database,
  );
  // The workspace's own come first, so that they stand among the pages of the others.
  await sql`
    insert into webhooks (environment_id, webhook_id, name, endpoint, events, signing_key, application_id)
    overriding system value
    select ${TENANT}, n, 'n', 'https://example.com/', '{event}', 'key',
           case when n > ${OWN}::int then 'customer-' || lpad(((n - ${OWN}::int - 1) / ${ENDPOINTS_EACH}::int)::text, 6, '0') end
      from generate_series(1, ${OWN + COUNT}::int) n`.execute(database);
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
  await sql`vacuum analyze`.execute(database);
}

test.each<[string, number, (database: Database) => Promise<unknown>]>([
  ['the first applications', PAGE, (db) => listApplications(db, TENANT, PAGE)],
  [
    'applications in the middle',
    PAGE,
    (db) => listApplications(db, TENANT, PAGE, 'customer-050000'),
  ],
  [
    'applications that begin with a text',
    PAGE,
    (db) => listApplications(db, TENANT, PAGE, '', 'customer-07'),
  ],
  [
    'the same after a position',
    PAGE,
    (db) => listApplications(db, TENANT, PAGE, 'customer-079900', 'customer-07'),
  ],
  ['an application', 1, (db) => findApplication(db, TENANT, 'customer-000777')],
  [
    'endpoints of an application',
    ENDPOINTS_EACH,
    (db) => listEndpoints(db, TENANT, 'customer-000777', PAGE),
  ],
  [
    'endpoints after a position',
    1,
    (db) => listEndpoints(db, TENANT, 'customer-000000', PAGE, OWN + ENDPOINTS_EACH - 1),
  ],
  ["the workspace's own webhooks", OWN, (db) => listWebhooks(db, TENANT)],
  ["how many are the workspace's own", OWN, (db) => countWebhooks(db, TENANT)],
  [
    'webhooks of an application in its portal',
    ENDPOINTS_EACH,
    (db) => listWebhooks(db, TENANT, { of: 'application', applicationId: 'customer-000777' }),
  ],
  [
    'webhooks of a link to the portal',
    6,
    (db) => listWebhooks(db, TENANT, { of: 'portal_link', portalLinkId: 'link' }),
  ],
  ['a webhook', 1, (db) => findWebhook(db, TENANT, OWN + 77_777)],
  // Of each its lane, and the minute of its last success.
  [
    'the states of the own webhooks',
    3 * OWN,
    (db) =>
      listLaneStates(
        db,
        TENANT,
        Array.from({ length: OWN }, (_, place) => place + 1),
      ),
  ],
  // Each with its last attempt.
  ['the newest deliveries', 2 * PAGE, (db) => listDeliveries(db, BUSY, PAGE)],
  ['deliveries in the middle', 2 * PAGE, (db) => listDeliveries(db, BUSY, PAGE, 50_000)],
  [
    'attempts of a page',
    PAGE,
    (db) =>
      listAttempts(
        db,
        BUSY,
        Array.from({ length: PAGE }, (_, place) => 70_000 + place),
      ),
  ],
  [
    'the newest deliveries of all webhooks',
    2 * PAGE,
    (db) =>
      listRecentDeliveries(
        db,
        TENANT,
        Array.from({ length: OWN }, (_, place) => ({
          webhookId: place + 1,
          beforeSequence: Number.MAX_SAFE_INTEGER,
        })),
        {},
        { limit: PAGE, scanLimit: PAGE },
      ),
  ],
])('%s: by index, at most %i rows read', async (_name, rowsMax, use) => {
  const nodes = await explain(database, use);
  const plan = nodes.map(
    (node) =>
      `${node['Node Type']} ${node['Relation Name']} ${node['Actual Rows']}×${node['Actual Loops']} -${node['Rows Removed by Filter'] ?? 0}`,
  );
  const scanned = nodes.filter(
    (node) => node['Node Type'] === 'Seq Scan' && node['Actual Rows'] > 0,
  );
  expect(
    scanned.filter((node) => node['Relation Name'] !== 'portal_link_webhooks'),
    plan.join('\n'),
  ).toEqual([]);
  expect(rowsRead(nodes), plan.join('\n')).toBeLessThanOrEqual(rowsMax);
});
