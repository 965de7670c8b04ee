/** The role of each service has the rights for its SQL (`database/src/schema/database-roles.ts`). */
import { grantDatabaseRoles } from '@sluice/database/schema/database-roles';
import type { DatabaseRole } from '@sluice/database/schema/role-grants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertedColumnsOf, statementsOf, type ServiceName } from './service-statements.ts';

let owner: pg.Client;
beforeAll(async () => {
  const { database, url } = await createTestDatabase();
  await grantDatabaseRoles(database);
  owner = new pg.Client({ connectionString: url });
  await owner.connect();
});
// Before the database is dropped.
afterAll(() => owner.end());

test.each<[ServiceName, DatabaseRole]>([
  ['intake', 'sluice_intake'],
  ['worker', 'sluice_worker'],
  ['api', 'sluice_api'],
])('%s may do all that the statements of its code do', async (service, role) => {
  const { rows } = await owner.query<{ table: string }>(
    `select relname as table from pg_class
      where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')`,
  );
  const tables = new Set(rows.map(({ table }) => table));
  const needed = [...statementsOf(service)].flatMap(([table, verbs]) =>
    tables.has(table) ? [...verbs].map((verb) => ({ table, verb })) : [],
  );
  expect(needed.length).toBeGreaterThan(4);
  const missing: string[] = [];
  for (const { table, verb } of needed) {
    // There is no right to delete for a part of the columns.
    const look = verb === 'delete' ? 'has_table_privilege' : 'has_any_column_privilege';
    const { rows: found } = await owner.query<{ isGranted: boolean }>(
      `select ${look}($1::name, $2::text, $3::text) as "isGranted"`,
      [role, table, verb],
    );
    if (found[0]?.isGranted !== true) missing.push(`${verb} ${table}`);
  }
  expect(missing).toEqual([]);
});

test.each([
  'account_products',
  'accounts',
  'credit_accounts',
  'credit_entries',
  'credit_grants',
  'credit_transactions',
  'inbox_preview_runs',
  'runs',
  'usage_watermarks',
  'vendor_customers',
  'vendor_events',
])(
  'in a new row of %s the API fills the columns that its statements name, and no others',
  async (table) => {
    const { rows } = await owner.query<{ column: string }>(
      `select attname as column from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped
        and has_column_privilege('sluice_api', attrelid, attnum, 'insert')`,
      [table],
    );
    const granted = rows.map(({ column }) => column).toSorted();
    expect(granted).toEqual([...(insertedColumnsOf('api').get(table) ?? [])].toSorted());
  },
);

test('the API inserts no step of a purchase, receipt or hold of credits', async () => {
  const { rows } = await owner.query(
    `select t from unnest(array['run_steps', 'receipts', 'credit_holds']) as t
      where has_any_column_privilege('sluice_api', t, 'insert, update')`,
  );
  expect(rows).toEqual([]);
});
