/**
 * The rule on keys, held against the migrated schema: rows of a tenant can be put on any node by its tenant alone.
 * `table-places.ts` has the place of each table.
 */
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { TABLE_PLACES, TENANT_COLUMNS } from '../../../src/schema/table-places.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

interface ForeignKey {
  readonly table: string;
  readonly columns: readonly string[];
  readonly target: string;
  readonly targetColumns: readonly string[];
}

let database: Database;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

test('every table has its one place', async () => {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname not like 'kysely\\_%'`.execute(database);
  expect(Object.keys(TABLE_PLACES).toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
});

test('every table with a column of a tenant has a column that statements name', async () => {
  const { rows } = await sql<{ table: string; columns: string[] }>`
    select relname as table, array_agg(attname::text) as columns
      from pg_class join pg_attribute on attrelid = pg_class.oid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and attname in ('account_id', 'environment_id') and not attisdropped
     group by 1`.execute(database);
  expect([...TENANT_COLUMNS.keys()].toSorted()).toEqual(rows.map(({ table }) => table).toSorted());
  for (const { table, columns } of rows) expect(columns).toContain(TENANT_COLUMNS.get(table));
});

test('every unique key of a tenant’s table has the tenant in it, and every primary key begins with it', async () => {
  const { rows } = await sql<{
    name: string;
    table: string;
    isPrimary: boolean;
    columns: string[];
  }>`
    select i.relname as name, t.relname as table, x.indisprimary as "isPrimary",
           array(select coalesce(a.attname, '(expression)') from unnest(x.indkey) with ordinality as k (attnum, place)
                 left join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum and k.attnum > 0
                 order by place)::text[] as columns
      from pg_index x
      join pg_class i on i.oid = x.indexrelid
      join pg_class t on t.oid = x.indrelid
     where t.relnamespace = 'public'::regnamespace and not t.relispartition and x.indisunique`.execute(
    database,
  );
  const wrong = rows.filter(({ table, isPrimary, columns }) => {
    const tenantColumn = TABLE_PLACES[table]?.tenantColumn;
    if (tenantColumn === undefined) return false;
    return isPrimary ? columns[0] !== tenantColumn : !columns.includes(tenantColumn);
  });
  expect(wrong).toEqual([]);
  expect(
    rows.filter(({ table }) => TABLE_PLACES[table]?.tenantColumn !== undefined).length,
  ).toBeGreaterThan(30);
});

test('a reference stays within a tenant or leads to the installation, and connects only tables of the same place', async () => {
  const { rows } = await sql<ForeignKey>`
    select t.relname as table, f.relname as target,
           array(select attname from unnest(c.conkey) with ordinality as k (attnum, place)
                 join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum order by place)::text[] as columns,
           array(select attname from unnest(c.confkey) with ordinality as k (attnum, place)
                 join pg_attribute a on a.attrelid = f.oid and a.attnum = k.attnum order by place)::text[] as "targetColumns"
      from pg_constraint c
      join pg_class t on t.oid = c.conrelid
      join pg_class f on f.oid = c.confrelid
     where c.contype = 'f' and t.relnamespace = 'public'::regnamespace and not t.relispartition`.execute(
    database,
  );
  const isKept = ({ table, columns, target, targetColumns }: ForeignKey): boolean => {
    const from = TABLE_PLACES[table];
    const to = TABLE_PLACES[target];
    if (from?.kind !== to?.kind) return false;
    if (to?.tenantColumn === undefined) return true;
    const place = columns.indexOf(from?.tenantColumn ?? '');
    return (
      place >= 0 &&
      from?.tenantColumn === to.tenantColumn &&
      targetColumns[place] === to.tenantColumn
    );
  };
  expect(rows.filter((key) => !isKept(key))).toEqual([]);
  expect(rows.length).toBeGreaterThan(10);
});
