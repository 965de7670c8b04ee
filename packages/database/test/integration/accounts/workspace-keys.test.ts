import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listWorkspaceKeys, saveKeyUses } from '@sluice/database/accounts/workspace-keys';
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

test('the last use of a key goes forward only, and is written once a minute', async () => {
  const { database } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const [{ accountId, credentialId } = { accountId: '', credentialId: '' }] =
    await listWorkspaceKeys(database);
  const startMs = Date.parse('2026-11-25T12:00:00Z');
  const afterUse = async (seconds: number): Promise<number[]> => {
    const usedAtMs = startMs + seconds * 1_000;
    await saveKeyUses(database, [
      { accountId: Number(accountId), credentialId: Number(credentialId), usedAtMs },
    ]);
    const { rows } = await sql<{ at: Date }>`
      select last_used_at as at from api_credentials where last_used_at is not null`.execute(
      database,
    );
    return rows.map(({ at }) => (at.getTime() - startMs) / 1_000);
  };
  expect(await afterUse(0)).toEqual([0]);
  expect(await afterUse(30)).toEqual([0]);
  expect(await afterUse(61)).toEqual([61]);
  expect(await afterUse(5)).toEqual([61]);
});
