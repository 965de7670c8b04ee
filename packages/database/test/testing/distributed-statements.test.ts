/** Statements about distributed tables. Citus refuses no such statement, and no node computes its own value. */
import { expect, test } from 'vitest';
import { DISTRIBUTED_TABLES } from '../../src/schema/table-places.ts';
import {
  findDistributedFaults,
  type DistributedFault,
} from '../../src/testing/distributed-statements.ts';
import { ON_ONE_SERVER, readStatements } from '../support/read-statements.ts';

const faultsIn = (text: string): DistributedFault[] =>
  findDistributedFaults(text, DISTRIBUTED_TABLES);

test('no write has a volatile function, no lock or look-up is about two tenants, no row is named by its place', () => {
  const statements = readStatements().filter(({ text }) => !text.includes(ON_ONE_SERVER));
  const found = statements.flatMap(({ place, text }) =>
    faultsIn(text).map((fault) => `${place}: ${fault}`),
  );
  expect(found).toEqual([]);
  // Locks, reads and changes of people and of their devices and relationships.
  expect(statements.filter(({ text }) => text.includes('of one tenant')).length).toBeGreaterThan(
    20,
  );
});

test.each<[string, DistributedFault[]]>([
  [
    'update people set updated_at = clock_timestamp() where environment_id = $1',
    ['volatile-write'],
  ],
  ['update people set updated_at = $1 where environment_id = $1', []],
  ['select clock_timestamp() from people', []],
  ["insert into events (name) values ('random()')", []],
  ['insert into events (name) select gen_random_uuid()', ['volatile-write']],
  ['update lanes set lease_until = clock_timestamp()', []],
  [
    'select 1 from people p join unnest($1) as k using (x) for update of p',
    ['locks-tenants', 'spans-tenants'],
  ],
  ['select 1 from people p where true /* of one tenant */ for no key update', []],
  ['select 1 from people where environment_id = $1 for share', []],
  ['select 1 from lanes for update', []],
  [
    'select 1 from unnest($1) as e, lateral (select 1 from visitors v limit 1) x',
    ['looks-up-tenants', 'spans-tenants'],
  ],
  [
    'select 1 from unnest($1) as e, lateral (select 1 from visitors v where true /* of one tenant */ limit 1) x',
    [],
  ],
  ['select 1 from unnest($1) as n join ingestion_issues i using (x)', ['spans-tenants']],
  ['select 1 from unnest($1) as n join people p using (x) where true /* of one tenant */', []],
  ['insert into events (name) select unnest($1)', []],
  [
    'with gone as materialized (select * from unnest($1)) delete from devices d using gone where true /* of one tenant */',
    ['shared-list'],
  ],
  ['delete from devices d using unnest($1) as k where true /* of one tenant */', []],
  ['delete from devices where ctid in (select ctid from devices limit 1)', ['ctid']],
  [
    'insert into objects (name) select unnest($1) on conflict (name) do update set name = $2',
    ['late-parameter'],
  ],
  ['insert into objects (name) select unnest($1) on conflict (name) do update set name = 2', []],
  ['lock table people in share mode', ['table-lock']],
  ['lock table merge_gate in share mode', []],
])('%s', (text, faults) => {
  expect(faultsIn(text)).toEqual(faults);
});
