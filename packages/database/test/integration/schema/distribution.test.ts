/**
 * The rule on keys, held against the migrated schema: what belongs to a tenant can be put on any node by
 * its tenant alone. `infra/postgres/citus.sql` says which table is where.
 */
import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

type Place =
  | { readonly kind: 'distributed'; readonly column: string }
  | { readonly kind: 'reference' | 'local' };

interface ForeignKey {
  readonly table: string;
  readonly columns: readonly string[];
  readonly target: string;
  readonly targetColumns: readonly string[];
}

let places: ReadonlyMap<string, Place>;
let statementCount: number;
let database: Database;

beforeAll(async () => {
  const text = await readFile(
    new URL('../../../../../infra/postgres/citus.sql', import.meta.url),
    'utf8',
  );
  const found = [
    ...text.matchAll(
      /^select (create_distributed_table|create_reference_table|citus_add_local_table_to_metadata)\('(\w+)'(?:, '(\w+)')?/gm,
    ),
  ];
  statementCount = found.length;
  places = new Map(
    found.map(([, call, table = '', column = '']): [string, Place] => [
      table,
      call === 'create_distributed_table'
        ? { kind: 'distributed', column }
        : { kind: call === 'create_reference_table' ? 'reference' : 'local' },
    ]),
  );
  ({ database } = await createTestDatabase());
});

test('every table has its one statement', async () => {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname not like 'kysely\\_%'`.execute(database);
  expect([...places.keys()].toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
  expect(statementCount).toBe(places.size);
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
    const place = places.get(table);
    if (place?.kind !== 'distributed') return false;
    return isPrimary ? columns[0] !== place.column : !columns.includes(place.column);
  });
  expect(wrong).toEqual([]);
  expect(
    rows.filter(({ table }) => places.get(table)?.kind === 'distributed').length,
  ).toBeGreaterThan(30);
});

test('a reference from a tenant’s table stays with the tenant, or goes to what every node has', async () => {
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
    const from = places.get(table);
    const to = places.get(target);
    if (from?.kind !== 'distributed') return to?.kind === 'reference';
    if (to?.kind !== 'distributed') return to?.kind === 'reference';
    const place = columns.indexOf(from.column);
    return place >= 0 && from.column === to.column && targetColumns[place] === to.column;
  };
  expect(rows.filter((key) => !isKept(key))).toEqual([]);
  expect(rows.length).toBeGreaterThan(10);
});
