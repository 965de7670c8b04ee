/** Security: no secret of a webhook stands in the database as it is once a worker has started. */
import type { Database } from '@sluice/database/connection/connection';
import { startRotation } from '@sluice/database/webhooks/signing-keys';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { clientSecretContext } from '@sluice/domain/accounts/identity-provider';
import { secondFactorContext } from '@sluice/domain/accounts/second-factor';
import { secretContext } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { encryptSecrets } from '../../../src/maintenance/encrypt-secrets.ts';
import { createLaneWorld, SIGNING_KEY, type LaneWorld } from '../support/lane-world.ts';

const OLD = { id: 'old', key: Buffer.alloc(32, 1) };
const NEW = { id: 'new', key: Buffer.alloc(32, 2) };
/** As a person writes it by hand. */
const CREDENTIALS = '{"certificate_authority":"x"}';
const HEADERS = '{"authorization":"Basic abc"}';
let database: Database;
let world: LaneWorld;

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  world = await createLaneWorld(database);
  await startRotation(
    database,
    world.key,
    { signingKey: 'the next key', signsFromMs: world.nowMs + 1_000 },
    world.nowMs,
  );
  // As the API stores them.
  const headers = createEncryptedText([OLD]).encrypt(HEADERS, secretContext(world.environmentId));
  await sql`update webhooks set custom_headers = ${headers}, endpoint_credentials = ${CREDENTIALS}`.execute(
    database,
  );
});

const keep = (...keys: [typeof OLD, ...(typeof OLD)[]]) =>
  encryptSecrets({ database, encryptedText: createEncryptedText(keys), now: () => world.nowMs });

async function storedSecrets(): Promise<string[]> {
  const { rows } = await sql<{ secret: string }>`
    select webhook_signing_key as secret from environments
    union all select signing_key from webhooks
    union all select next_signing_key from webhooks where next_signing_key is not null
    union all select custom_headers from webhooks where custom_headers is not null
    union all select endpoint_credentials from webhooks where endpoint_credentials is not null`.execute(
    database,
  );
  return rows.map((row) => row.secret);
}

async function openedSecrets(...keys: [typeof OLD, ...(typeof OLD)[]]): Promise<string[]> {
  const encryptedText = createEncryptedText(keys);
  return (await storedSecrets()).map((secret) =>
    encryptedText.decrypt(secret, secretContext(world.environmentId)),
  );
}

test('plain text is encrypted: the secrets of the workspace and the webhook, and the next one', async () => {
  await keep(OLD);
  expect((await storedSecrets()).filter((key) => !key.startsWith('sealed:old:'))).toEqual([]);
  expect(await openedSecrets(OLD)).toEqual([
    SIGNING_KEY,
    SIGNING_KEY,
    'the next key',
    HEADERS,
    CREDENTIALS,
  ]);
});

test('more secrets than one step takes are all encrypted', async () => {
  await sql`
    insert into webhooks (environment_id, name, endpoint, events, signing_key)
    select ${world.environmentId}, 'x', 'http://x.test', '{email_sent}', 'key ' || n from generate_series(1, 1100) n`.execute(
    database,
  );
  await keep(OLD);
  const opened = await openedSecrets(OLD);
  expect(opened).toHaveLength(1_105);
  expect(opened).toContain('key 1100');
  expect((await storedSecrets()).filter((key) => !key.startsWith('sealed:old:'))).toEqual([]);
});

test('all of it is encrypted anew under the first key, after which the others are not needed', async () => {
  await keep(OLD);
  await keep(NEW, OLD);
  expect(await openedSecrets(NEW)).toEqual([
    SIGNING_KEY,
    SIGNING_KEY,
    'the next key',
    HEADERS,
    CREDENTIALS,
  ]);
});

test('encrypted secrets are left as they are', async () => {
  await keep(OLD);
  const before = await storedSecrets();
  await keep(OLD, NEW);
  expect(await storedSecrets()).toEqual(before);
});

test('without the key that encrypted a secret, an error is reported and all secrets stay as they are', async () => {
  await keep(OLD);
  const before = await storedSecrets();
  await expect(keep(NEW)).rejects.toMatchObject({ code: 'SECRET_UNREADABLE' });
  expect(await storedSecrets()).toEqual(before);
});

test('a rotation that is over leaves one key', async () => {
  await keep(OLD);
  world.nowMs += 1_000;
  await keep(OLD);
  expect(await openedSecrets(OLD)).toEqual([SIGNING_KEY, 'the next key', HEADERS, CREDENTIALS]);
});

test('the second factor of a user is encrypted again too, and opens for that user alone', async () => {
  const { rows } = await sql<{ accountId: number; userId: number }>`
    insert into users (account_id, email, first_name, last_name, role, status)
    select account_id, 'ada@example.com', 'Ada', 'L', 'member', 'active' from environments
     where environment_id = ${world.environmentId}
    returning account_id::int as "accountId", user_id as "userId"`.execute(database);
  const { accountId, userId } = rows[0]!;
  const context = secondFactorContext(accountId, userId);
  await sql`
    insert into second_factors (account_id, user_id, secret)
    values (${accountId}, ${userId}, ${createEncryptedText([OLD]).encrypt('ABCD', context)})`.execute(
    database,
  );
  await keep(NEW, OLD);
  const stored = await sql<{ secret: string }>`select secret from second_factors`.execute(database);
  const { secret } = stored.rows[0]!;
  expect(secret).toMatch(/^sealed:new:/);
  expect(createEncryptedText([NEW]).decrypt(secret, context)).toBe('ABCD');
});

test('the client secret of an identity provider is encrypted anew, and opens for its account', async () => {
  const { rows } = await sql<{ accountId: number }>`
    select account_id::int as "accountId" from environments
     where environment_id = ${world.environmentId}`.execute(database);
  const { accountId } = rows[0]!;
  const context = clientSecretContext(accountId);
  await sql`
    insert into identity_providers (account_id, issuer, client_id, client_secret)
    values (${accountId}, 'https://login.example.com', 'sluice',
            ${createEncryptedText([OLD]).encrypt('client secret', context)})`.execute(database);
  await keep(NEW, OLD);
  const stored = await sql<{ secret: string }>`
    select client_secret as secret from identity_providers`.execute(database);
  const { secret } = stored.rows[0]!;
  expect(secret).toMatch(/^sealed:new:/);
  expect(createEncryptedText([NEW]).decrypt(secret, context)).toBe('client secret');
});
