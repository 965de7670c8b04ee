/** Each statement of this package names its tables' tenants. Mutants that drop one are found. */
import { expect, test } from 'vitest';
import { TABLE_PLACES } from '../../src/schema/table-places.ts';
import { findUnboundTables } from '../../src/testing/statement-tenants.ts';
import { CROSS_TENANT_STATEMENTS } from '../support/cross-tenant-statements.ts';
import { readStatements } from '../support/read-statements.ts';

/** Tables whose rows are a tenant's; `table-places.test.ts` holds that the list is whole. */
const TENANT_COLUMNS = new Map(
  Object.entries(TABLE_PLACES).flatMap(([table, { tenantColumn }]) =>
    tenantColumn === undefined ? [] : [[table, [tenantColumn]] as const],
  ),
);
const unboundIn = (text: string) => findUnboundTables(text, TENANT_COLUMNS);
const statements = readStatements();

test('every statement names its tenant, except for the listed statements that cross tenants', () => {
  expect(statements.length).toBeGreaterThan(300);
  const unbound = statements.filter(({ text }) => unboundIn(text).length > 0);
  expect([...new Set(unbound.map(({ place }) => place))].toSorted()).toEqual(
    Object.keys(CROSS_TENANT_STATEMENTS).toSorted(),
  );
});

/** Comparisons with a tenant's column, as the end of a text is reached from a condition's start. */
const COMPARISON =
  /\b(and|where)\s+(?:\w+\.)?(?:environment_id|account_id)\s*=\s*(?:\$1|\w+\.\w+)/g;

test('nine of ten mutants that lost the tenant of a table are found; the others name it twice', () => {
  let foundCount = 0;
  const survivors: string[] = [];
  for (const { place, text } of statements) {
    if (place in CROSS_TENANT_STATEMENTS) continue;
    const touches = [...TENANT_COLUMNS.keys()].some((table) =>
      new RegExp(`\\b${table}\\b`).test(text),
    );
    if (!touches) continue;
    for (const { 0: condition, 1: word, index } of text.matchAll(COMPARISON)) {
      const mutant = `${text.slice(0, index)}${word} true${text.slice(index + condition.length)}`;
      if (unboundIn(mutant).length > 0) foundCount++;
      else survivors.push(`${place}: ${condition}`);
    }
  }
  expect(foundCount).toBeGreaterThan(150);
  expect(foundCount / (foundCount + survivors.length), survivors.join('\n')).toBeGreaterThan(0.88);
});

test.each<[string, string[]]>([
  ['select 1 from people where environment_id = $1', []],
  ['select environment_id from people where person_id = $1', ['people']],
  ['select 1 from people p where p.environment_id = $1', []],
  [
    'select 1 from people p join devices d using (environment_id, person_id) where environment_id = $1',
    [],
  ],
  [
    'select 1 from people p join devices d using (person_id) where p.environment_id = $1',
    ['devices'],
  ],
  [
    'select 1 from people p join devices d on d.environment_id = p.environment_id',
    ['people', 'devices'],
  ],
  ['select 1 from people where (environment_id, person_id) in (select * from unnest($1, $2))', []],
  ['select 1 from people where (environment_id, person_id) > ($1, $2)', ['people']],
  ['update people set environment_id = $1 where person_id = $2', ['people']],
  [
    'update people p set x = k.x from unnest($1, $2) as k (environment_id, x) where p.environment_id = k.environment_id',
    [],
  ],
  ['delete from people using devices d where people.environment_id = $1', ['devices']],
  ['insert into people (environment_id, person_id) values ($1, $2)', []],
  ['insert into people (person_id) values ($2)', ['people']],
  [
    'insert into people (environment_id, x) select environment_id, 1 from devices where environment_id = $1',
    [],
  ],
  ['insert into people (environment_id, x) select environment_id, 1 from devices', ['devices']],
  [
    'with a as (select 1 from people), b as (select 1 from devices where environment_id = $1) select 1',
    ['people'],
  ],
  ['with people as (select 1) select 1 from people', []],
  ['select (select count(*) from people) from devices where environment_id = $1', ['people']],
  [
    'select 1 from devices d where environment_id = $1 and exists (select 1 from people p where p.environment_id = d.environment_id)',
    [],
  ],
  ['select 1 from devices where environment_id = $1 union select 1 from people', ['people']],
  ["select 'environment_id = $1' from people -- where environment_id = $1", ['people']],
  ['select 1 from people where environment_id is not null', ['people']],
  ['select 1 from people where environment_id <> $1', ['people']],
])('%s', (text, tables) => {
  expect(unboundIn(text).toSorted()).toEqual(tables.toSorted());
});
