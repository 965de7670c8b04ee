/**
 * A page of each list reads only a page's rows.
 *
 * The workspace has 100,000 applications, endpoints and deliveries (`../support/crowded-workspace.ts`). Each page uses an
 * index. The statements are the ones that the routes send, as Postgres runs them. Rows are counted, because times depend on the other work of the machine.
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
import { beforeAll, expect, test } from 'vitest';
import { listFeeds } from '@sluice/database/feeds/feeds';
import { findEventType, listEventTypes } from '@sluice/database/webhooks/event-types';
import { listWebhookEndpoints } from '@sluice/database/webhooks/webhook-endpoints';
import {
  ARCHIVED,
  BUSY,
  ENDPOINTS_EACH,
  FEEDS,
  fillWebhooks,
  NAMED,
  OWN,
  TENANT,
} from '../support/crowded-workspace.ts';
import { explain, rowsRead } from '../support/explain.ts';
import { FILL_TIMEOUT_MS } from '../support/fill-timeout.ts';

/** A page, and one more row, whose presence means that there is another page. */
const PAGE = 51;

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await fillWebhooks(database);
}, FILL_TIMEOUT_MS);

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
  // Feeds stand beside them.
  ["the workspace's own webhooks", OWN + FEEDS, (db) => listWebhooks(db, TENANT)],
  ["how many are the workspace's own", OWN + FEEDS, (db) => countWebhooks(db, TENANT)],
  // Each with its lane.
  ['the feeds', 2 * FEEDS, (db) => listFeeds(db, TENANT)],
  [
    'endpoints of all workspaces, for a worker that starts',
    PAGE,
    (db) => listWebhookEndpoints(db, { environmentId: TENANT, webhookId: OWN + 50_000 }, PAGE),
  ],
  [
    'the event types in force',
    PAGE,
    (db) => listEventTypes(db, TENANT, PAGE, { after: 'type-0500' }),
  ],
  // The archived ones are passed over; a workspace has 1,000 types at most.
  [
    'the first event types, behind archived ones',
    ARCHIVED + PAGE,
    (db) => listEventTypes(db, TENANT, PAGE),
  ],
  [
    'event types with archived ones',
    PAGE,
    (db) => listEventTypes(db, TENANT, PAGE, { withArchived: true }),
  ],
  // For each of its webhooks the link has a row.
  [
    'event types that the webhooks of a link name',
    NAMED + 6,
    (db) =>
      listEventTypes(db, TENANT, PAGE, { namedBy: { of: 'portal_link', portalLinkId: 'link' } }),
  ],
  [
    'all event types in the portal of an application',
    1_000,
    (db) => listEventTypes(db, TENANT, 1_000),
  ],
  // With the row of its archival.
  ['an event type', 2, (db) => findEventType(db, TENANT, 'type-0700')],
  ['a version of an event type', 2, (db) => findEventType(db, TENANT, 'type-0700', 2)],
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
