/** Plans of Postgres for a page of the audit log. The account has many entries. */
import {
  findAuditLog,
  listAuditLogs,
  type AuditLogFilter,
} from '@sluice/database/audit/audit-log-reads';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { explain, rowsRead } from '../support/explain.ts';
import { FILL_TIMEOUT_MS } from '../support/fill-timeout.ts';

const ACCOUNT = 1;
const ENTRIES = 30_000;
const LIMIT = 21;
/** The page, and two probes for bounds in time. */
const ROWS_MAX = LIMIT + 2;

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await sql`insert into accounts (account_id, name) select n, 'A' from generate_series(1, 3) n`.execute(
    database,
  );
  await sql`insert into audit_chains (account_id) select n from generate_series(1, 3) n`.execute(
    database,
  );
  await sql`
    insert into users (account_id, user_id, email, first_name, last_name, role, status)
    select a, a * 1000 + n, a || '.' || n || '@example.com', 'A', 'B', 'member', 'active'
      from generate_series(1, 3) a, generate_series(1, 500) n`.execute(database);
  await sql`
    insert into audit_logs
      (account_id, audit_log_id, occurred_at, actor_type, user_id, service_account_id, action, object_type, object_id,
       session_id, ip_addr, changes, previous_hash, hash)
    select a, n, timestamptz '2026-01-01Z' + n * interval '1 minute',
           case when n % 10000 = 82 then 'portal' when n % 2 = 0 then 'service_account' else 'user' end,
           case when n % 10000 = 77 then 9999 else a * 1000 + 1 + n % 500 end,
           case when n % 10000 = 78 then 5 end, 'updated',
           case when n % 10000 = 79 then 'account' else 'reporting_webhook' end, (n % 2000)::text,
           case when n % 10000 = 81 then 6 else n % 3 end,
           case when n % 10000 = 80 then '192.0.2.7' else '10.0.' || n % 200 || '.1' end,
           '[{"attribute": "name", "from": 1, "to": 2, "redacted": false}]', sha256('a'), sha256('b')
      from generate_series(1, 3) a, generate_series(1, ${ENTRIES}::int) n`.execute(database);
  await sql`analyze`.execute(database);
}, FILL_TIMEOUT_MS);

const at = (minute: number): number => Date.parse('2026-01-01T00:00:00Z') + minute * 60_000;

test.each<[string, AuditLogFilter]>([
  ['everything', {}],
  ['a user with many entries', { userId: 1001 }],
  ['a user with few', { userId: 9999 }],
  ['a user with none', { userId: 7 }],
  ['a service account with few', { serviceAccountId: 5 }],
  ['a session with few', { sessionId: 6 }],
  ['a session with many', { sessionId: 2 }],
  ['a session with none', { sessionId: 7 }],
  ['a kind of actor that is rare', { actorType: 'portal' }],
  ['a kind of actor that is common', { actorType: 'user' }],
  ['a kind of actor that is not there', { actorType: 'system' }],
  ['addresses that are rare', { ipAddrPrefix: '192.0' }],
  ['addresses that are common', { ipAddrPrefix: '10.' }],
  ['addresses that nobody has', { ipAddrPrefix: '10.0.1%' }],
  ['a type that is rare', { objectType: 'account' }],
  ['a type that is common', { objectType: 'reporting_webhook' }],
  ['a type that is not there', { objectType: 'user' }],
  ['one object', { objectType: 'reporting_webhook', objectId: '78' }],
  ['from a time on', { startMs: at(15_000) }],
  ['up to a time', { endMs: at(15_000) }],
  ['between two times', { startMs: at(15_000), endMs: at(15_003) }],
  ['after all that is there', { startMs: at(ENTRIES + 10) }],
  ['a user between two times', { userId: 9999, startMs: at(5_000), endMs: at(25_000) }],
])('%s, both ways and from the middle: only rows that are shown', async (_name, filter) => {
  for (const order of ['asc', 'desc'] as const) {
    for (const cursor of [undefined, ENTRIES / 2]) {
      const nodes = await explain(database, (db) =>
        listAuditLogs(db, ACCOUNT, filter, { order, cursor, limit: LIMIT }),
      );
      const plan = nodes
        .map(
          (node) =>
            `${node['Node Type']} ${node['Index Name']} ${node['Actual Rows']}×${node['Actual Loops']} -${node['Rows Removed by Filter'] ?? 0}`,
        )
        .join('\n');
      // Actors are joined by key, or by a scan while there are few of them: Postgres chooses.
      const entries = nodes.filter((node) => node['Relation Name'] === 'audit_logs');
      expect(entries.map((node) => node['Node Type'])).not.toContain('Seq Scan');
      expect(rowsRead(entries), plan).toBeLessThanOrEqual(ROWS_MAX);
    }
  }
});

test('one entry: four rows', async () => {
  const nodes = await explain(database, (db) => findAuditLog(db, ACCOUNT, 7));
  expect(rowsRead(nodes)).toBeLessThanOrEqual(4);
});
