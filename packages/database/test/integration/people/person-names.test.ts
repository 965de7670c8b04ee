/** Names of people whom calls name, in each workspace. */
import { svcId } from '@sluice/domain/values/svc-id';
import { expect, test } from 'vitest';
import { listNamesOfOwners } from '../../../src/people/person-names.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

test('the number of a person is a name in each workspace whose call has it, also beside other workspaces', async () => {
  const { database } = await createTestDatabase();
  const people = [1, 2].map((environmentId) => ({ environmentId, personId: 5 }));
  const names = await listNamesOfOwners(database, {
    identifiers: [],
    people,
    messageDeliveries: [],
  });
  expect(names).toHaveLength(2);
  expect(names).toEqual(
    expect.arrayContaining([
      { environmentId: 1, key: svcId(5) },
      { environmentId: 2, key: svcId(5) },
    ]),
  );
});
