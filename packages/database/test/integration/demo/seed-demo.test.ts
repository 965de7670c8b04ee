import { createHash } from 'node:crypto';
import { findAccountToken } from '@sluice/database/accounts/account-tokens';
import { findAppKey } from '@sluice/database/accounts/credentials';
import { DEMO, revokeDemoCredentials, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listWorkspaceKeys } from '@sluice/database/accounts/workspace-keys';
import { sql } from 'kysely';
import { expect, test } from 'vitest';

const hash = (secret: string): Buffer => createHash('sha256').update(secret).digest();

test('the demo workspace is made once, however often it is seeded, and its keys open environment 1', async () => {
  const { database } = await createTestDatabase();
  await seedDemoWorkspace(database);
  await seedDemoWorkspace(database);
  const keys = await listWorkspaceKeys(database);
  expect(keys.map(({ kind, siteId, environmentId }) => ({ kind, siteId, environmentId }))).toEqual(
    expect.arrayContaining([
      { kind: 'pipelines', siteId: null, environmentId: 1 },
      { kind: 'track', siteId: 'demo_site', environmentId: 1 },
      { kind: 'pipelines', siteId: null, environmentId: 3 },
      { kind: 'track', siteId: 'demo_paid_site', environmentId: 3 },
    ]),
  );
  expect(keys).toHaveLength(4);
  expect(await findAppKey(database, hash('demo_app_key'))).toEqual({
    accountId: 1,
    environmentId: 1,
    credentialId: expect.any(Number),
    name: 'Demo',
    isReadOnly: false,
    ipAllowlist: [],
    isFactorMissing: false,
  });
  for (const [token, accountId] of [
    [DEMO.accountToken, 1],
    [DEMO.invoicedAccountToken, 2],
    [DEMO.paidAccountToken, 3],
  ] as const) {
    expect(await findAccountToken(database, hash(token))).toMatchObject({
      accountId,
      role: 'account_admin',
      isReadOnly: false,
    });
  }
});

// Security: the demo keys are public knowledge.
test('an account that has a number of the demo is never opened by its keys', async () => {
  const { database } = await createTestDatabase();
  await sql`insert into accounts (account_id, name) values (1, 'A real one'), (2, 'Another'), (3, 'A third')`.execute(
    database,
  );
  await seedDemoWorkspace(database);
  expect(await listWorkspaceKeys(database)).toEqual([]);
  expect(await findAppKey(database, hash('demo_app_key'))).toBeUndefined();
  expect(await findAccountToken(database, hash(DEMO.accountToken))).toBeUndefined();
  expect(await findAccountToken(database, hash(DEMO.invoicedAccountToken))).toBeUndefined();
  expect(await findAccountToken(database, hash(DEMO.paidAccountToken))).toBeUndefined();
  expect(await findAppKey(database, hash('demo_paid_app_key'))).toBeUndefined();
});

test('an account made after the demo gets an id of its own', async () => {
  const { database } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const { rows } = await sql<{ account_id: string }>`
    insert into accounts (name) values ('Next') returning account_id`.execute(database);
  expect(Number(rows[0]?.account_id)).toBeGreaterThan(1);
});

// Security: the demo keys are public knowledge.
test('revoked demo keys are invalid until the workspace is seeded again', async () => {
  const { database } = await createTestDatabase();
  await seedDemoWorkspace(database);
  await revokeDemoCredentials(database);
  expect(await listWorkspaceKeys(database)).toEqual([]);
  expect(await findAppKey(database, hash('demo_app_key'))).toBeUndefined();
  expect(await findAccountToken(database, hash(DEMO.accountToken))).toBeUndefined();
  expect(await findAppKey(database, hash('demo_paid_app_key'))).toBeUndefined();
  await seedDemoWorkspace(database);
  expect(await listWorkspaceKeys(database)).toHaveLength(4);
});
