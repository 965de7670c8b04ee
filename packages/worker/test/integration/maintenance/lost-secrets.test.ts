/**
 * A lost encryption key costs only the secrets that it encrypted.
 *
 * They are given up one by one, each with a message.
 */
import { findAccountOf } from '@sluice/database/accounts/environments';
import { deleteWebhook } from '@sluice/database/webhooks/webhooks';
import { findSigningKeys, startRotation } from '@sluice/database/webhooks/signing-keys';
import type { Database } from '@sluice/database/connection/connection';
import { listSecrets } from '@sluice/database/webhooks/encrypted-secrets';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { changeWebhook } from '@sluice/database/webhooks/webhook-changes';
import { clientSecretContext } from '@sluice/domain/accounts/identity-provider';
import { secondFactorContext } from '@sluice/domain/accounts/second-factor';
import { secretContext } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { encryptSecrets } from '../../../src/maintenance/encrypt-secrets.ts';
import {
  findLostSecrets,
  replaceLostSecrets,
  type ReplacedSecret,
} from '../../../src/maintenance/lost-secrets.ts';
import { createLaneWorld, SIGNING_KEY, type LaneWorld } from '../support/lane-world.ts';

const LOST = { id: 'lost', key: Buffer.alloc(32, 1) };
const KEPT = { id: 'kept', key: Buffer.alloc(32, 2) };
const encryptedText = createEncryptedText([KEPT]);
let database: Database;
let world: LaneWorld;
let secretCount: number;

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  world = await createLaneWorld(database);
  secretCount = 0;
});

const encrypt = (text: string, key = LOST) =>
  createEncryptedText([key]).encrypt(text, secretContext(world.environmentId));

const replaceAll = async (
  keyId = 'lost',
  onTold: (replaced: ReplacedSecret) => Promise<void> = async () => {},
) => {
  const done: string[] = [];
  await replaceLostSecrets(
    {
      database,
      encryptedText,
      newSecret: () => `new secret ${++secretCount}`,
      tell: async (replaced) => {
        const { place, webhookId, change } = replaced;
        const secret = 'secret' in replaced ? ` ${replaced.secret}` : '';
        done.push(`${place} ${webhookId} ${change}${secret}`);
        await onTold(replaced);
      },
      now: () => world.nowMs,
    },
    keyId,
  );
  return done;
};

/** The text of each secret now, by its place; of the first webhook. */
async function openedSecrets(): Promise<Record<string, string>> {
  const secrets = await listSecrets(database);
  return Object.fromEntries(
    secrets
      .filter(({ webhookId }) => webhookId === 0 || webhookId === world.webhookId)
      .map(({ place, environmentId, stored }) => [
        place,
        encryptedText.decrypt(stored, secretContext(environmentId)),
      ]),
  );
}

async function loseEverything(): Promise<void> {
  await encryptSecrets({
    database,
    encryptedText: createEncryptedText([LOST]),
    now: () => world.nowMs,
  });
  const headers = encrypt('{"authorization":"Basic abc"}');
  await sql`update webhooks set custom_headers = ${headers}`.execute(database);
}

test('secrets that no key opens are reported by webhook and by key, and stay as they are', async () => {
  await loseEverything();
  const before = await listSecrets(database);
  const { lost, count } = await findLostSecrets(database, encryptedText);
  const { environmentId, webhookId } = world;
  expect(count).toBe(3);
  expect(lost).toMatchObject([
    { place: 'environment', environmentId, webhookId: 0, keyId: 'lost' },
    { place: 'headers', environmentId, webhookId, keyId: 'lost' },
    { place: 'webhook', environmentId, webhookId, keyId: 'lost' },
  ]);
  expect(await listSecrets(database)).toEqual(before);
});

test('secrets that are given up are replaced once, open from then on, and have audit entries without a secret', async () => {
  await loseEverything();
  const { webhookId } = world;
  expect(await replaceAll()).toEqual([
    'environment 0 key_replaced new secret 1',
    `headers ${webhookId} headers_removed`,
    `webhook ${webhookId} key_replaced new secret 2`,
  ]);
  expect(await openedSecrets()).toEqual({ environment: 'new secret 1', webhook: 'new secret 2' });
  expect(await findLostSecrets(database, encryptedText)).toEqual({ lost: [], count: 2 });
  expect(await replaceAll()).toEqual([]);

  const accountId = await findAccountOf(database, world.environmentId);
  const { rows } = await sql<{ entry: string; object_type: string }>`
    select object_type, changes::text as entry from audit_logs where account_id = ${accountId}
     order by audit_log_id`.execute(database);
  expect(rows.map((row) => row.object_type)).toEqual([
    'environment',
    'reporting_webhook',
    'reporting_webhook',
  ]);
  expect(rows.map((row) => row.entry).join()).not.toMatch(/sealed:|new secret/);
});

test('a new key is reported before it is in force, and a failed report leaves the old key', async () => {
  await loseEverything();
  const keys = async () =>
    (await findLostSecrets(database, encryptedText)).lost
      .map(({ place }) => place)
      .filter((place) => place !== 'headers');
  const lostWhenTold: string[][] = [];
  await expect(
    replaceAll('lost', async ({ place }) => {
      if (place === 'headers') return;
      lostWhenTold.push(await keys());
      if (place === 'webhook') throw new Error('nobody reads');
    }),
  ).rejects.toThrow('nobody reads');
  expect(lostWhenTold).toEqual([['environment', 'webhook'], ['webhook']]);
  expect(await keys()).toEqual(['webhook']);
  expect(await replaceAll()).toEqual([`webhook ${world.webhookId} key_replaced new secret 3`]);
  expect(await openedSecrets()).toEqual({ environment: 'new secret 1', webhook: 'new secret 3' });
});

test('another key’s secrets stay, though they do not open either, and so does all that opens', async () => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  await sql`
    update webhooks set custom_headers = ${encrypt('{}', { id: 'other', key: Buffer.alloc(32, 3) })}`.execute(
    database,
  );
  const before = await listSecrets(database);
  expect(await replaceAll()).toEqual([]);
  expect(await replaceAll('kept')).toEqual([]);
  expect(await listSecrets(database)).toEqual(before);
});

test('a key of the same id but other bytes is recognised by the secrets that it opens', async () => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  await sql`
    update webhooks set signing_key = ${encrypt('unknown', { id: 'kept', key: Buffer.alloc(32, 3) })}`.execute(
    database,
  );
  expect(await replaceAll('kept')).toEqual([
    `webhook ${world.webhookId} key_replaced new secret 1`,
  ]);
  expect(await openedSecrets()).toEqual({ environment: SIGNING_KEY, webhook: 'new secret 1' });
});

test.each([
  [
    'of a key whose next one opens, the next one takes the place at once',
    { stored: { key: LOST, next: KEPT }, done: ['webhook rotation_promoted'], key: 'the next key' },
  ],
  [
    'of a next key that is lost the rotation is cancelled, and the key stays',
    { stored: { key: KEPT, next: LOST }, done: ['next rotation_cancelled'], key: 'the key' },
  ],
  [
    'of a rotation whose keys are both lost one new key is left',
    {
      stored: { key: LOST, next: LOST },
      done: ['next rotation_cancelled', 'webhook key_replaced new secret 1'],
      key: 'new secret 1',
    },
  ],
] as const)('%s', async (_, { stored, done, key }) => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  await sql`update webhooks set signing_key = ${encrypt('the key', stored.key)}`.execute(database);
  const signingKey = encrypt('the next key', stored.next);
  const rotation = { signingKey, signsFromMs: world.nowMs + 60_000 };
  await startRotation(database, world.key, rotation, world.nowMs);
  expect((await replaceAll()).map((line) => line.replace(` ${world.webhookId} `, ' '))).toEqual(
    done,
  );
  expect(await openedSecrets()).toEqual({ environment: SIGNING_KEY, webhook: key });
  expect(await findSigningKeys(database, world.key, world.nowMs)).toMatchObject({
    next: undefined,
  });
});

test('a leftover of a finished rotation does not replace the key that followed', async () => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  await sql`update webhooks set signing_key = ${encrypt('the key')}`.execute(database);
  const rotation = { signingKey: encrypt('the next key', KEPT), signsFromMs: world.nowMs + 1_000 };
  await startRotation(database, world.key, rotation, world.nowMs);
  world.nowMs += 1_000;
  expect(await replaceAll()).toEqual([]);
  expect(await openedSecrets()).toEqual({ environment: SIGNING_KEY, webhook: 'the next key' });
});

test.each([
  [
    'headers and a next key',
    ['custom_headers', 'next_signing_key'],
    ['webhook rotation_promoted'],
    { headers: 'changed', webhook: 'changed' },
  ],
  [
    'a key and a next key',
    ['signing_key', 'next_signing_key'],
    ['headers headers_removed'],
    { webhook: 'changed', next: 'changed' },
  ],
])('%s that are changed meanwhile stay', async (_, columns, done, opened) => {
  await loseEverything();
  const rotation = { signingKey: encrypt('the next key'), signsFromMs: world.nowMs + 60_000 };
  await startRotation(database, world.key, rotation, world.nowMs);
  const changed = sql.join(
    columns.map((column) => sql`${sql.ref(column)} = ${encrypt('changed', KEPT)}`),
  );
  const lines = await replaceAll('lost', async ({ place }) => {
    if (place === 'environment') await sql`update webhooks set ${changed}`.execute(database);
  });
  expect(lines.slice(1).map((line) => line.replace(` ${world.webhookId} `, ' '))).toEqual(done);
  expect(await openedSecrets()).toEqual({ environment: 'new secret 1', ...opened });
});

test('a client certificate or an OAuth2 client that is lost is removed, unless it was changed meanwhile', async () => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  const lose = () =>
    sql`update webhooks set endpoint_credentials = ${encrypt('{}')}`.execute(database);
  await lose();
  expect((await findLostSecrets(database, encryptedText)).lost).toMatchObject([
    { place: 'credentials', webhookId: world.webhookId, keyId: 'lost' },
  ]);
  expect(await replaceAll()).toEqual([`credentials ${world.webhookId} credentials_removed`]);
  expect(await openedSecrets()).not.toHaveProperty('credentials');

  await lose();
  const { lost } = await findLostSecrets(database, encryptedText);
  const changed = encrypt('changed', KEPT);
  await sql`update webhooks set endpoint_credentials = ${changed}`.execute(database);
  const { environmentId, webhookId } = world;
  const none = { endpointCredentials: null };
  const stored = { endpointCredentials: lost[0]!.stored };
  expect(
    await changeWebhook(database, environmentId, webhookId, none, BY_TEST, world.nowMs, { stored }),
  ).toBeUndefined();
  expect(await openedSecrets()).toMatchObject({ credentials: 'changed' });
});

test('a deleted webhook whose secrets do not open does not stop a worker from starting', async () => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  const deleted = await insertTestWebhook(database, world.environmentId, {
    customHeaders: encrypt('{}'),
  });
  expect((await findLostSecrets(database, encryptedText)).lost).toHaveLength(1);
  await deleteWebhook(database, world.environmentId, deleted.webhookId);
  expect((await findLostSecrets(database, encryptedText)).lost).toEqual([]);
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
});

const leftOf = (userId: number) =>
  sql`
    select is_two_factor_enabled as "isEnabled",
           (select count(*)::int from console_sessions where user_id = u.user_id) as sessions,
           (select count(*)::int from second_factors where user_id = u.user_id) as factors
      from users u where user_id = ${userId}`.execute(database);

test('a second factor that is lost is removed with the sessions of its user, who sets up another', async () => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  const accountId = (await findAccountOf(database, world.environmentId))!;
  const { rows } = await sql<{ userId: number }>`
    insert into users (account_id, email, first_name, last_name, role, status, is_two_factor_enabled)
    values (${accountId}, 'ada@example.com', 'Ada', 'L', 'member', 'active', true)
    returning user_id as "userId"`.execute(database);
  const userId = rows[0]!.userId;
  const stored = createEncryptedText([LOST]).encrypt(
    'ABCD',
    secondFactorContext(accountId, userId),
  );
  await sql`
    insert into second_factors (account_id, user_id, secret, confirmed_at)
    values (${accountId}, ${userId}, ${stored}, now())`.execute(database);
  await sql`
    insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr)
    values (${accountId}, ${userId}, '\\x00', 'code', now() + interval '1 day', '127.0.0.1')`.execute(
    database,
  );
  expect((await findLostSecrets(database, encryptedText)).lost).toMatchObject([
    { place: 'second_factor', accountId, userId, name: 'ada@example.com', keyId: 'lost' },
  ]);
  expect(await replaceAll()).toEqual(['second_factor 0 second_factor_removed']);
  expect((await leftOf(userId)).rows).toEqual([{ isEnabled: false, sessions: 0, factors: 0 }]);

  // One that is being set up opens no session, so its sessions stay.
  await sql`
    insert into second_factors (account_id, user_id, secret) values (${accountId}, ${userId}, ${stored})`.execute(
    database,
  );
  await sql`
    insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr)
    values (${accountId}, ${userId}, '\\x01', 'code', now() + interval '1 day', '127.0.0.1')`.execute(
    database,
  );
  expect(await replaceAll()).toEqual(['second_factor 0 second_factor_removed']);
  expect((await leftOf(userId)).rows).toEqual([{ isEnabled: false, sessions: 1, factors: 0 }]);
  expect((await findLostSecrets(database, encryptedText)).lost).toEqual([]);
});

test('a client secret of an identity provider that is lost is removed, and the provider stays', async () => {
  await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
  const accountId = (await findAccountOf(database, world.environmentId))!;
  const stored = createEncryptedText([LOST]).encrypt('secret', clientSecretContext(accountId));
  await sql`
    insert into identity_providers (account_id, issuer, client_id, client_secret)
    values (${accountId}, 'https://login.example.com', 'sluice', ${stored})`.execute(database);
  expect((await findLostSecrets(database, encryptedText)).lost).toMatchObject([
    { place: 'client_secret', accountId, name: 'https://login.example.com', keyId: 'lost' },
  ]);
  expect(await replaceAll()).toEqual(['client_secret 0 client_secret_removed']);
  const { rows } = await sql`select client_secret as secret from identity_providers`.execute(
    database,
  );
  expect(rows).toEqual([{ secret: null }]);
  expect((await findLostSecrets(database, encryptedText)).lost).toEqual([]);
});
