/** Each statement of this package names its tables' tenants. Mutants that drop one are found. */
import { expect, test } from 'vitest';
import {
  CROSS_TENANT_STATEMENTS,
  STATEMENTS_OF_WORKSPACES,
} from '../support/cross-tenant-statements.ts';
import { unboundAt, unboundIn, unlistedAt } from '../support/judge-statement.ts';
import { readStatements } from '../support/read-statements.ts';

const statements = readStatements();
const tablesByPlace = (tablesOf: (statement: (typeof statements)[number]) => string[]) => {
  const byPlace: Record<string, string[]> = {};
  for (const statement of statements) {
    const tables = [...(byPlace[statement.place] ?? []), ...tablesOf(statement)];
    if (tables.length > 0) byPlace[statement.place] = [...new Set(tables)].toSorted();
  }
  return byPlace;
};

/** Their tables stand in no template. `watch-sent-statements.ts` reads the statements as they are sent. */
const MADE_AS_SENT = ['webhooks/encrypted-secrets.ts#listSecretsWithout'];

test('every statement names its tenant, except for the listed tables of listed statements', () => {
  expect(new Set(statements.map(({ place }) => place)).size).toBeGreaterThan(300);
  expect(tablesByPlace(unlistedAt)).toEqual({});
  const listed = Object.fromEntries(
    Object.entries(CROSS_TENANT_STATEMENTS).map(([place, [, ...tables]]) => [place, tables]),
  );
  const found = tablesByPlace(unboundAt);
  for (const place of MADE_AS_SENT) found[place] = listed[place] ?? [];
  expect(found).toEqual(listed);
});

test('a statement listed as one of a workspace lacks only the account of its workspace', () => {
  const strict = tablesByPlace(({ text }) => unboundIn(text));
  for (const place of Object.keys(STATEMENTS_OF_WORKSPACES)) {
    expect(strict[place], place).toContain('environments');
    for (const table of strict[place] ?? []) expect(['accounts', 'environments']).toContain(table);
  }
});

/** Comparisons with a tenant's column, as the end of a text is reached from a condition's start. */
const COMPARISON =
  /\b(and|where|on)\s+(?:\w+\.)?(?:environment_id|account_id)\s*=\s*(?:\$1|\w+\.\w+)/g;

const NO_TENANT = 'it is no tenant column of the table, which its account names';
const NAMED_TWICE = 'another condition compares the same tenant';
const IS_LIST = 'it compares lists of the statement, whose rows have their tenant';
/** Mutants that are of the same tenant still. */
const SURVIVORS: Readonly<Record<string, string>> = {
  'accounts/accounts.ts#findAccountByEnvironment: and e.environment_id = $1': NO_TENANT,
  'accounts/api-credential-changes.ts#countCredentials: and environment_id = $1': NO_TENANT,
  'accounts/api-credential-changes.ts#lockOwner: and environment_id = $1': NO_TENANT,
  'accounts/environments.ts#updateEnvironment: and environment_id = $1': NO_TENANT,
  'credits/inbox-preview-runs.ts#findUsageOwners: and environment_id = $1': NO_TENANT,
  'credits/inbox-preview-runs.ts#refundPreviewRun: and d.environment_id = g.environment_id':
    NO_TENANT,
  'credits/inbox-preview-usage-reads.ts#listUsage: and environment_id = $1': NO_TENANT,
  'credits/inbox-preview-usage-reads.ts#sumUsage: and environment_id = $1': NO_TENANT,
  'delivery/deliveries.ts#logOnce: where u.environment_id = r.environment_id': IS_LIST,
  'delivery/lane-progress.ts#recordOnce: on abandoned.environment_id = held.environment_id':
    IS_LIST,
  'delivery/lane-states.ts#findDisabling: and environment_id = e.environment_id': NO_TENANT,
  'events/event-traces.ts#listDeliveriesOfEvent: and webhooks.environment_id = $1': NAMED_TWICE,
  'events/event-traces.ts#listDeliveriesOfEvent: where log.environment_id = $1': NAMED_TWICE,
  'users/device-logins.ts#makeCredentials: and m.environment_id = $1': NO_TENANT,
};

test('each mutant that lost the tenant of a table is found, except for the listed mutants', () => {
  let foundCount = 0;
  const survivors = new Set<string>();
  for (const { place, text } of statements) {
    if (place in CROSS_TENANT_STATEMENTS) continue;
    for (const { 0: condition, 1: word, index } of text.matchAll(COMPARISON)) {
      const mutant = `${text.slice(0, index)}${word} true${text.slice(index + condition.length)}`;
      if (unlistedAt({ place, text: mutant }).length > 0) foundCount++;
      else survivors.add(`${place}: ${condition.replaceAll(/\s+/g, ' ')}`);
    }
  }
  expect(foundCount).toBeGreaterThan(500);
  expect([...survivors].toSorted()).toEqual(Object.keys(SURVIVORS).toSorted());
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
  ['select 1 from people where environment_id = $1 or person_id = $2', ['people']],
  [
    'select 1 from people where person_id = $2 or person_id = $3 and environment_id = $1',
    ['people'],
  ],
  ['select 1 from people where environment_id = $1 and (person_id = $2 or person_id = $3)', []],
  ['select 1 from people where (environment_id = $1 or $1 is null)', ['people']],
  ['select 1 from people where environment_id = $1 and x or environment_id = $2 and y', []],
  ['select 1 from people where not (environment_id = $1)', ['people']],
  ['select 1 from people where not environment_id = $1', ['people']],
  ['select 1 from people where environment_id not in ($1, $2)', ['people']],
  ['select 1 from people where (environment_id = $1) is not true', ['people']],
  ['select 1 from people where (environment_id = $1) = false', ['people']],
  ['select 1 from people where coalesce(environment_id = $1, true)', ['people']],
  ['select 1 from people where environment_id = coalesce($1, environment_id)', ['people']],
  ['select 1 from people where environment_id = all($1::int[])', ['people']],
  ['select 1 from people where environment_id = any($1::int[])', []],
  ['select 1 from people where case when $1 then environment_id = $2 else true end', ['people']],
  ['select 1 from people where case when $1 then true end and environment_id = $2', []],
  ['select 1 from people where x between $1 and $2 and environment_id = $3', []],
  [
    'select 1 from people p left join devices d on d.environment_id = p.environment_id and d.environment_id = $1',
    ['people'],
  ],
  [
    'select 1 from people p left join devices d on p.environment_id = $1 and d.environment_id = p.environment_id',
    ['people'],
  ],
  [
    'select 1 from people p left join devices d on d.environment_id = p.environment_id where p.environment_id = $1',
    [],
  ],
  [
    'select 1 from people p right outer join devices d on d.environment_id = p.environment_id and p.environment_id = $1',
    ['devices'],
  ],
  [
    'select 1 from people p full join devices d on d.environment_id = $1 and p.environment_id = $1',
    ['people', 'devices'],
  ],
  ['select 1 from unnest($1) k (environment_id) left join people using (environment_id)', []],
  [
    'select 1 from people left join unnest($1) k (environment_id) using (environment_id)',
    ['people'],
  ],
  // A column that is not the tenant's of its own table is known only if its row is.
  [
    'select 1 from people p join users u on u.environment_id = p.environment_id',
    ['people', 'users'],
  ],
  [
    'select 1 from people p join users u on u.environment_id = p.environment_id where u.account_id = $1',
    [],
  ],
  ['insert into people (environment_id) select x from people', ['people']],
  [
    'insert into people (environment_id) select x from devices on conflict do update set x = 1 where environment_id = $1',
    ['devices'],
  ],
  [
    'update people p set x = 1 from unnest($1) f (environment_id) join devices using (environment_id) where p.person_id = f.x',
    ['people'],
  ],
  [
    'select 1 from people p, unnest($1) f (environment_id) join devices d using (environment_id)',
    ['people'],
  ],
  ['select 1 from people where x is distinct from $1 and environment_id = $2', []],
  ['select 1 from people where environment_id is distinct from $1', ['people']],
  ['with people as (select 1 from people) select 1 from people', ['people']],
])('%s', (text, tables) => {
  expect(unboundIn(text).toSorted()).toEqual(tables.toSorted());
});
