/** Plans of Postgres for the statements that the routes send. The tables are large enough to matter. */
import { listActivities } from '@sluice/database/people/activity-reads';
import type { Database } from '@sluice/database/connection/connection';
import { findAppKey } from '@sluice/database/accounts/credentials';
import {
  findPersonProfile,
  listDevices,
  listRelationships,
} from '@sluice/database/people/customer-reads';
import { listDeliveries, listMatchingDeliveries } from '@sluice/database/delivery/delivery-reads';
import {
  findEventArrival,
  findEventAt,
  listAttemptsOf,
  listDeliveriesOfEvent,
} from '@sluice/database/events/event-traces';
import { listImportProblems } from '@sluice/database/imports/import-problems';
import { claimImport } from '@sluice/database/imports/import-claims';
import { findImport, listImports } from '@sluice/database/imports/imports';
import { findLaneState } from '@sluice/database/delivery/lane-states';
import {
  findUnknownKeys,
  listIngestionIssues,
} from '@sluice/database/events/ingestion-issue-reads';
import {
  findObjectProfile,
  findObjects,
  listObjectRelationships,
  listObjectTypes,
} from '@sluice/database/people/object-reads';
import { countMatching } from '@sluice/database/replays/replay-log';
import { findReplay, listAttemptsOfReplay, listReplays } from '@sluice/database/replays/replays';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { beforeAll, expect, test } from 'vitest';
import { explain, rowsRead } from '../support/explain.ts';
import { FILL_TIMEOUT_MS } from '../support/fill-timeout.ts';
import { fillTables, TENANT } from '../support/full-tables.ts';

const UNKNOWN_KEYS_SINCE_MS = Date.parse('2026-03-30T12:00:00Z');
const LANE = { environmentId: TENANT, webhookId: 1 };

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await fillTables(database);
}, FILL_TIMEOUT_MS);

const activities = {
  environmentId: TENANT,
  personId: '7',
  notBeforeMs: 0,
  kind: undefined,
  name: undefined,
  limit: 11,
};

test.each<[string, number, (database: Database) => Promise<unknown>]>([
  ['a key', 1, (db) => findAppKey(db, Buffer.alloc(32))],
  [
    'a person by email',
    2,
    (db) =>
      findPersonProfile(db, { environmentId: TENANT, kind: 'email', value: '77@example.com' }),
  ],
  [
    'a person by svc_id',
    1,
    (db) => findPersonProfile(db, { environmentId: TENANT, kind: 'person_id', value: '77' }),
  ],
  ['devices', 1, (db) => listDevices(db, TENANT, '77')],
  [
    'relationships',
    30,
    (db) =>
      listRelationships(db, { environmentId: TENANT, personId: '7', after: '2000', limit: 11 }),
  ],
  // One more than asked for: whether it is of the same instant, which is sorted.
  ['the first activities', 12, (db) => listActivities(db, { ...activities, after: undefined })],
  [
    'activities after a position',
    12,
    (db) =>
      listActivities(db, {
        ...activities,
        after: {
          occurredAtMicros: String((Date.now() - 3_600_000) * 1000),
          receivedAtMicros: String((Date.now() - 3_600_000) * 1000),
          eventId: 'x',
        },
      }),
  ],
  [
    'issues after a position',
    11,
    (db) =>
      listIngestionIssues(db, {
        environmentId: TENANT,
        code: undefined,
        source: undefined,
        field: undefined,
        sinceMs: undefined,
        after: { day: '2026-01-20', code: 'invalid', source: 'source', field: 'field-50' },
        limit: 11,
      }),
  ],
  // Of two days of 90.
  ['calls with unknown keys', 20, (db) => findUnknownKeys(db, UNKNOWN_KEYS_SINCE_MS, 5)],
  ['an import', 1, (db) => findImport(db, { environmentId: TENANT, importId: 4000 })],
  ['imports after a position', 11, (db) => listImports(db, TENANT, 4000, 11)],
  [
    'the errors of an import after a position',
    11,
    (db) =>
      listImportProblems(
        db,
        { environmentId: TENANT, importId: 1 },
        'error',
        { rowNumber: 3000, position: 0 },
        11,
      ),
  ],
  ['the import that waits longest', 2, (db) => claimImport(db, 60_000)],
  ['how an event came', 2, (db) => findEventArrival(db, TENANT, 'arrived-1234')],
  [
    'an event by its id and arrival',
    1,
    (db) =>
      findEventAt(
        db,
        TENANT,
        'arrived-1234',
        new Date(Date.parse('2026-01-01T00:00:00Z') + 1_234 * 300_000),
      ),
  ],
  // Three webhooks got it, each row with its webhook, its attempt and its commit batch.
  ['deliveries of an event', 15, (db) => listDeliveriesOfEvent(db, TENANT, '777', 200)],
  [
    'deliveries that an event caused',
    15,
    (db) => listDeliveriesOfEvent(db, TENANT, 'cause-777', 200),
  ],
  [
    'attempts of deliveries of several webhooks',
    3,
    (db) =>
      listAttemptsOf(
        db,
        TENANT,
        [1, 2, 3].map((webhookId) => ({ webhookId, sequence: 777 })),
      ),
  ],
  // The lane, its head, and the deliveries that were tried beyond the cursor.
  ['the state of a lane', 30, (db) => findLaneState(db, LANE)],
  [
    'object types',
    6,
    (db) => listObjectTypes(db, { environmentId: TENANT, after: undefined, limit: 11 }),
  ],
  [
    'an object by its id',
    1,
    (db) =>
      findObjectProfile(db, {
        environmentId: TENANT,
        objectTypeId: 3,
        kind: 'object_id',
        value: 'object-77',
      }),
  ],
  [
    'an object by svc_object_id',
    1,
    (db) =>
      findObjectProfile(db, {
        environmentId: TENANT,
        objectTypeId: 3,
        kind: 'object_number',
        value: '77',
      }),
  ],
  [
    'objects that match nothing, after a position',
    200,
    (db) =>
      findObjects(db, {
        environmentId: TENANT,
        objectTypeId: 3,
        filter: { kind: 'equals', field: 'name', value: 'none' },
        after: 'object-2',
        limit: 10,
        scanLimit: 200,
      }),
  ],
  [
    'people of an object that has thousands, after a position',
    30,
    (db) =>
      listObjectRelationships(db, {
        environmentId: TENANT,
        objectNumber: '5000',
        after: '3000',
        limit: 11,
      }),
  ],
  ['replays', 15, (db) => listReplays(db, LANE, 11)],
  ['a replay', 5, (db) => findReplay(db, { ...LANE, replayId: 3 })],
  [
    'attempts of a replay after a position',
    15,
    (db) => listAttemptsOfReplay(db, { ...LANE, replayId: 3 }, { sequence: 9_000, attempt: 1 }, 11),
  ],
  [
    'a thousand rows of the log for a replay',
    1_001,
    (db) =>
      countMatching(
        db,
        LANE,
        { eventTypes: ['email_opened'], person: { kind: 'id', value: 'ada' } },
        { afterSequence: 5_000, throughSequence: 20_000 },
        1_000,
      ),
  ],
  ['deliveries', 30, (db) => listDeliveries(db, LANE, 11, 12_000)],
  [
    'deliveries of a state that nothing has',
    25,
    (db) =>
      listMatchingDeliveries(
        db,
        LANE,
        { state: 'retrying' },
        {
          beforeSequence: 20_000,
          limit: 10,
          scanLimit: 1_000,
        },
      ),
  ],
  [
    'deliveries of a rare state',
    2_100,
    (db) =>
      listMatchingDeliveries(
        db,
        LANE,
        { state: 'abandoned' },
        {
          beforeSequence: 20_000,
          limit: 10,
          scanLimit: 1_000,
        },
      ),
  ],
])('%s: by index, at most %i rows read', async (_name, rowsMax, use) => {
  const nodes = await explain(database, use);
  const read = rowsRead(nodes);
  // A partition without a row may be read any way, and so may `lanes` while it is one page.
  const scanned = nodes.filter(
    (node) =>
      node['Node Type'] === 'Seq Scan' &&
      node['Actual Rows'] > 0 &&
      node['Relation Name'] !== 'lanes',
  );
  const plan = nodes.map(
    (node) =>
      `${node['Node Type']} ${node['Relation Name']} ${node['Actual Rows']}×${node['Actual Loops']} -${node['Rows Removed by Filter'] ?? 0}`,
  );
  expect(scanned, plan.join('\n')).toEqual([]);
  expect(read, plan.join('\n')).toBeLessThanOrEqual(rowsMax);
});

test('activities: the months that came before the time asked for are not looked at', async () => {
  const notBeforeMs = Date.parse('2026-03-10T00:00:00Z');
  const person = { ...activities, personId: '1007', after: undefined };
  const readOf = async (since: number) =>
    (await explain(database, (db) => listActivities(db, { ...person, notBeforeMs: since })))
      .map((node) => node['Relation Name'])
      .filter((name) => name?.startsWith('events_2026_0'));
  expect(await readOf(0)).toContain('events_2026_01');
  expect(await readOf(notBeforeMs)).not.toContain('events_2026_01');
  expect(await readOf(notBeforeMs)).not.toContain('events_2026_02');
  expect(await readOf(notBeforeMs)).toContain('events_2026_03');
});
