/** The one look for all reconcile loops. It finds work if the reconcile loop itself would take some, and only then. */
import { sql, type RawBuilder } from 'kysely';
import { expect, test } from 'vitest';
import { claimExport, listExportsToRun } from '../../../src/audit/audit-log-exports.ts';
import { findDueWork, type DueKind } from '../../../src/maintenance/due-work.ts';
import { claimImport } from '../../../src/imports/import-claims.ts';
import { listLanesToWake, PROBE_WAIT_MS_MAX } from '../../../src/delivery/lanes.ts';
import { claimReplay } from '../../../src/replays/replay-lanes.ts';
import { listDuePurchases } from '../../../src/billing/purchase-workflows.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import { claimProviderEvents } from '../../../src/billing/provider-events.ts';

const NOW_MS = Date.UTC(2030, 0, 2);
const SOONER = new Date(NOW_MS - 1_000);
const LATER = new Date(NOW_MS + 60_000);
const LEASE_MS = 60_000;

async function createWorld() {
  const { database } = await createTestDatabase();
  await insertTestWorkspace(database, 1);
  await insertTestWebhook(database, 1);
  await sql`insert into audit_chains (account_id) values (1)`.execute(database);
  const due = async (nowMs = NOW_MS) => [
    ...(await findDueWork(database, nowMs, PROBE_WAIT_MS_MAX)),
  ];
  return { database, due };
}

type World = Awaited<ReturnType<typeof createWorld>>;

interface Case {
  readonly kind: DueKind;
  /** Puts something in that is due at `at`; a replay and an import have no time of their own. */
  readonly put: (at: Date) => RawBuilder<unknown>;
  /** The reconcile loop's own question. */
  readonly isFound: (database: World['database']) => Promise<boolean>;
  readonly hasTime: boolean;
}

const CASES: readonly Case[] = [
  {
    kind: 'lanes',
    put: (at) => sql`update lanes set last_sequence = 1, lease_until = ${at}`,
    isFound: async (database) =>
      (await listLanesToWake(database, NOW_MS, 10, PROBE_WAIT_MS_MAX)).length > 0,
    hasTime: true,
  },
  {
    kind: 'runs',
    put: (at) => sql`
      insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, next_at, created_at)
      values (1, 'r', 'invoiced', 'credits', 'invoiced', 'f', '{}', '{}', ${at}, ${SOONER})`,
    isFound: async (database) => (await listDuePurchases(database, NOW_MS, 10)).length > 0,
    hasTime: true,
  },
  {
    kind: 'vendor-events',
    put: (at) => sql`
      insert into vendor_events (event_id, type, object_id, received_at, next_at)
      values ('e', 'invoice.paid', 'i', ${SOONER}, ${at})`,
    isFound: async (database) =>
      (await claimProviderEvents(database, NOW_MS, { firstMs: 1_000, mostMs: 1_000 }, 10)).length >
      0,
    hasTime: true,
  },
  {
    kind: 'imports',
    put: () => sql`
      insert into imports (environment_id, name, identifier, data_to_process, data_file_url, state, created_at, updated_at)
      values (1, 'n', 'id', 'all', 'http://127.0.0.1:1/', 'preprocessing', ${SOONER}, ${SOONER})`,
    isFound: async (database) => (await claimImport(database, LEASE_MS)) !== undefined,
    hasTime: false,
  },
  {
    kind: 'replays',
    put: () => sql`
      insert into webhook_replays (environment_id, webhook_id, criteria, rate_per_second, through_sequence, cursor_sequence, endpoint,
                                   send_window, created_by, created_at)
      values (1, 1, '{}', 1, 1, 0, 'http://127.0.0.1:1/', 1, 'a test', ${SOONER})`,
    isFound: async (database) =>
      (await claimReplay(database, LEASE_MS, NOW_MS, PROBE_WAIT_MS_MAX)) !== undefined,
    hasTime: false,
  },
  {
    kind: 'exports',
    put: () => sql`
      insert into audit_log_exports (account_id, export_id, created_at, until_id, format, filter)
      values (1, 'x', ${SOONER}, 0, 'csv', '{}')`,
    isFound: async (database) => {
      const [key] = await listExportsToRun(database, {
        attemptsMax: 5,
        expiresAtMs: NOW_MS,
        limit: 10,
      });
      return (
        key !== undefined && (await claimExport(database, key, LEASE_MS)).outcome === 'claimed'
      );
    },
    hasTime: false,
  },
];

test.each(CASES)(
  '$kind: the work that the reconciliation loop would take is due, by itself',
  async ({ kind, put, isFound, hasTime }) => {
    const { database, due } = await createWorld();
    expect(await due()).toEqual([]);
    await put(hasTime ? LATER : SOONER).execute(database);
    if (hasTime) {
      expect(await due()).toEqual([]);
      expect(await due(LATER.getTime())).toEqual([kind]);
      await sql`truncate runs, vendor_events cascade`.execute(database);
      await put(SOONER).execute(database);
    }
    expect(await due()).toEqual([kind]);
    expect(await isFound(database)).toBe(true);
  },
);

test('lanes: one whose probe is further away than any wait is due, one that only waits is not', async () => {
  const { database } = await createWorld();
  const waitMsMax = 3_600_000;
  const isDueAt = async (probeAtMs: number): Promise<boolean> => {
    await sql`
      update lanes set last_sequence = 1, state = 'failing', next_probe_at = ${new Date(probeAtMs)}`.execute(
      database,
    );
    return (await findDueWork(database, NOW_MS, waitMsMax)).has('lanes');
  };
  expect(await isDueAt(NOW_MS + waitMsMax + 60_000)).toBe(false);
  expect(await isDueAt(NOW_MS + 86_400_000)).toBe(true);
});

test('an export that has expired is due, so that its file is cleared away', async () => {
  const { database, due } = await createWorld();
  await sql`
    insert into audit_log_exports (account_id, export_id, created_at, until_id, format, filter, status, expires_at)
    values (1, 'x', ${SOONER}, 0, 'csv', '{}', 'failed', ${new Date(NOW_MS + 1)})`.execute(
    database,
  );
  expect(await due()).toEqual([]);
  expect(await due(NOW_MS + 1)).toEqual(['exports']);
});

test('ended and idle work is not scanned, because a partial index finds every part', async () => {
  const { database } = await createWorld();
  await sql`
    insert into webhooks (environment_id, webhook_id, name, endpoint, events, signing_key)
    select 1, n, 'W' || n, 'http://127.0.0.1:1/', '{email_sent}', 'k' from generate_series(2, 3000) n`.execute(
    database,
  );
  await sql`
    insert into lanes (environment_id, webhook_id) select 1, n from generate_series(2, 3000) n
    on conflict do nothing`.execute(database);
  await sql`
    insert into vendor_events (event_id, type, object_id, received_at, next_at, settled_at)
    select n::text, 't', 'o', ${SOONER}, ${SOONER}, ${SOONER} from generate_series(1, 3000) n`.execute(
    database,
  );
  await sql`
    insert into imports (environment_id, name, identifier, data_to_process, state, created_at, updated_at)
    select 1, 'n', 'id', 'all', 'imported', ${SOONER}, ${SOONER} from generate_series(1, 3000)`.execute(
    database,
  );
  await sql`vacuum analyze`.execute(database);
  const [statement] = await statementsSentBy(() =>
    findDueWork(database, NOW_MS, PROBE_WAIT_MS_MAX),
  );
  const text = String(statement?.text).replaceAll(
    /\$\d+/g,
    `timestamptz '${SOONER.toISOString()}'`,
  );
  const { rows } = await sql
    .raw<{ 'QUERY PLAN': string }>(`explain (analyze, costs off, timing off, summary off) ${text}`)
    .execute(database);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  for (const name of ['lanes', 'vendor_events', 'imports'])
    expect(plan).not.toContain(`Seq Scan on ${name}`);
  expect(plan).not.toContain('Rows Removed by Filter');
});
