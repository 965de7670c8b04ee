/** Which way Postgres takes for the very statements that the routes send, on tables large enough to matter. */
import { listActivities } from '@sluice/database/activity-reads';
import type { Database } from '@sluice/database/connection';
import { findAppKey } from '@sluice/database/credentials';
import { findPersonProfile, listDevices, listRelationships } from '@sluice/database/customer-reads';
import { listDeliveries, listDeliveriesOfState } from '@sluice/database/delivery-reads';
import {
  findEventArrival,
  findEventAt,
  listAttemptsOf,
  listDeliveriesOfEvent,
} from '@sluice/database/event-traces';
import { listImportProblems } from '@sluice/database/import-problems';
import { claimImport, findImport, listImports } from '@sluice/database/imports';
import { findLaneState } from '@sluice/database/lane-states';
import { listIngestionIssues } from '@sluice/database/ingestion-issue-reads';
import {
  findObjectProfile,
  findObjects,
  listObjectRelationships,
  listObjectTypes,
} from '@sluice/database/object-reads';
import { countMatching } from '@sluice/database/replay-log';
import { findReplay, listAttemptsOfReplay, listReplays } from '@sluice/database/replays';
import { createTestDatabase } from '@sluice/database/testing';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { explain, rowsRead } from './explain.ts';

const TENANT = 7;
const LANE = { environmentId: TENANT, webhookId: 1 };

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
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
});

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
  ['the first activities', 11, (db) => listActivities(db, { ...activities, after: undefined })],
  [
    'activities after a position',
    12,
    (db) =>
      listActivities(db, {
        ...activities,
        after: { occurredAtMicros: String((Date.now() - 3_600_000) * 1000), eventId: 'x' },
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
  ['the import that waits longest', 2, (db) => claimImport(db, 60_000, Date.now())],
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
  // Three webhooks were told, each row with its webhook, its attempt and its envelope.
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
  // The lane, its head, and what was tried beyond the cursor.
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
      listDeliveriesOfState(db, LANE, 'retrying', {
        beforeSequence: 20_000,
        limit: 10,
        scanLimit: 1_000,
      }),
  ],
  [
    'deliveries of a rare state',
    2_100,
    (db) =>
      listDeliveriesOfState(db, LANE, 'abandoned', {
        beforeSequence: 20_000,
        limit: 10,
        scanLimit: 1_000,
      }),
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
