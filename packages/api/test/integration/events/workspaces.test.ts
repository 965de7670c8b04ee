import { findWorkspaceTotals } from '@sluice/database/accounts/environments';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { CompiledQuery, sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertPerson } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

test('the list shows only the workspace of the key, with its counts', async () => {
  await insertPerson(api.database, api.a.environmentId, { personId: 1, id: '1' });
  await insertPerson(api.database, api.a.environmentId, { personId: 2, id: '2' });
  await insertPerson(api.database, api.b.environmentId, { personId: 3, id: '3' });
  await sql`
    insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
    values (${api.a.environmentId}, 1, 1, 'a', '{}', now(), now()), (${api.a.environmentId}, 2, 1, 'b', '{}', now(), now()),
           (${api.a.environmentId}, 3, 2, 'c', '{}', now(), now())`.execute(api.database);
  expect((await api.call('GET', '/v1/workspaces')).json()).toEqual({
    workspaces: [
      {
        id: api.a.environmentId,
        name: 'workspace of key_of_a',
        people: 2,
        object_types: 2,
        objects: 3,
        messages_sent: 0,
        billable_messages_sent: 0,
      },
    ],
  });
});

test('it is counted again after ten seconds', async () => {
  await api.call('GET', '/v1/workspaces');
  await insertPerson(api.database, api.a.environmentId, { personId: 9, id: '9' });
  const peopleAfter = async (ms: number) => {
    api.clock.nowMs += ms;
    return (await api.call('GET', '/v1/workspaces')).json().workspaces[0].people;
  };
  expect(await peopleAfter(9_999)).toBe(2);
  expect(await peopleAfter(1)).toBe(3);
});

test('the outgoing addresses come from the setting', async () => {
  expect((await api.call('GET', '/v1/info/ip_addresses')).json()).toEqual({ ip_addresses: [] });
});

test('people are not counted one by one, however many there are', async () => {
  const sent = await statementsSentBy(() => findWorkspaceTotals(api.database, api.a.environmentId));
  expect(sent).toHaveLength(1);
  const { rows } = await api.database.executeQuery<{ 'QUERY PLAN': string }>(
    CompiledQuery.raw(`explain ${sent[0]!.text}`, [...sent[0]!.values]),
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toContain(' on objects');
  expect(plan).not.toMatch(/ on people\b/);
});
