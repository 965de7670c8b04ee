import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listWorkspaceKeys } from '@sluice/database/accounts/workspace-keys';
import { sql } from 'kysely';
import { expect, test } from 'vitest';

// Security: a workspace or account that has ended takes no more calls, as its other credentials are refused.
test.each([
  ['a workspace that is deleted', 'update environments set deleted_at = now()'],
  ['an account that is closed', "update accounts set status = 'closed'"],
])('intake gets no keys of %s', async (_name, end) => {
  const { database } = await createTestDatabase();
  await seedDemoWorkspace(database);
  expect(await listWorkspaceKeys(database)).toHaveLength(4);
  await sql.raw(end).execute(database);
  expect(await listWorkspaceKeys(database)).toEqual([]);
});
