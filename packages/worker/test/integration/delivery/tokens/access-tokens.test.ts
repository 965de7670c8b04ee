/** The access token of a webhook: fetched once, kept encrypted, sent with each delivery, used until its end. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { claimToken, keepToken } from '@sluice/database/webhooks/webhook-tokens';
import { deleteWebhook } from '@sluice/database/webhooks/webhooks';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { createLaneWorld } from '../../support/lane-world.ts';
import { deliverOne, startTokenWorld, type TokenWorld } from './token-world.ts';

let database: Database;
let oauth: TokenWorld;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  oauth = await startTokenWorld(database);
});

test('a token is fetched once, kept in the database encrypted, and sent with every delivery', async () => {
  const world = await oauth.worldOf({ scope: 'hooks:write', audience: 'https://receiver.example' });
  await world.log(20);
  expect(await world.deliverAll(oauth.worker())).toEqual({ outcome: 'idle' });
  expect(oauth.receiver.arrivals).toHaveLength(20);
  expect(oauth.receiver.arrivals.filter((each) => !each.endsWith(' Bearer token_1 200'))).toEqual(
    [],
  );
  expect(oauth.tokens.requests).toEqual([
    {
      authorization: `Basic ${Buffer.from('sluice:open%20sesame').toString('base64')}`,
      fields: {
        grant_type: 'client_credentials',
        scope: 'hooks:write',
        audience: 'https://receiver.example',
      },
    },
  ]);
  const { rows } = await sql<{ row: string }>`
    select webhook_tokens::text as row from webhook_tokens where environment_id = ${world.environmentId}`.execute(
    database,
  );
  expect(rows[0]?.row).toContain('sealed:one:');
  expect(rows[0]?.row).not.toContain('token_1');
});

test('a token goes at once with its webhook, and is neither fetched nor kept for one that is deleted', async () => {
  const world = await oauth.worldOf();
  await deliverOne(world, oauth.worker());
  const { environmentId, webhookId } = world;
  const webhook = { environmentId, webhookId };
  const countTokens = async () =>
    (
      await sql`select from webhook_tokens where environment_id = ${environmentId}`.execute(
        database,
      )
    ).rows.length;
  expect(await countTokens()).toBe(1);
  // A worker is fetching the next one meanwhile.
  const { rows } = await sql<{ number: number; version: number }>`
    update webhook_tokens set fencing = fencing + 1 where environment_id = ${environmentId}
    returning fencing as number, endpoint_version as version`.execute(database);
  const [claim] = rows;
  if (!claim) throw new Error('there is no claim');
  expect(await deleteWebhook(database, environmentId, webhookId)).toBe(true);
  expect(await countTokens()).toBe(0);
  const fetched = { token: 'late', endpointVersion: claim.version, usableMs: 60_000 };
  await keepToken(database, webhook, claim.number, fetched);
  const asked = { webhook, endpointVersion: claim.version, rejected: null, claimMs: 1_000 };
  expect(await claimToken(database, asked)).toEqual({ outcome: 'busy' });
  expect(await countTokens()).toBe(0);
});

test('id and secret stand in the body if the token server wants them there', async () => {
  const world = await oauth.worldOf({ client_authentication: 'body' });
  await deliverOne(world, oauth.worker());
  expect(oauth.tokens.requests).toEqual([
    {
      authorization: undefined,
      fields: {
        grant_type: 'client_credentials',
        client_id: 'sluice',
        client_secret: 'open sesame',
      },
    },
  ]);
});

test('a token is used until shortly before its end, and then another one', async () => {
  const world = await oauth.worldOf();
  const by = oauth.worker();
  await deliverOne(world, by);
  await oauth.pass(3_540_000);
  await deliverOne(world, by);
  expect(oauth.tokens.requests).toHaveLength(1);
  await oauth.pass(31_000);
  await deliverOne(world, by);
  expect(oauth.receiver.arrivals).toEqual([
    'e1 Bearer token_1 200',
    'e2 Bearer token_1 200',
    'e3 Bearer token_2 200',
  ]);
});

test('a token without a stated end is kept for five minutes; one that is good for no time is fetched each time', async () => {
  oauth.tokens.lifetimeSeconds = undefined;
  const world = await oauth.worldOf();
  const by = oauth.worker();
  await deliverOne(world, by);
  await oauth.pass(240_000);
  await deliverOne(world, by);
  expect(oauth.tokens.requests).toHaveLength(1);
  oauth.tokens.lifetimeSeconds = 0;
  await oauth.pass(40_000);
  await deliverOne(world, by);
  await deliverOne(world, by);
  expect(oauth.receiver.arrivals.at(-1)).toBe('e4 Bearer token_3 200');
});

test('the token takes the place of an authorization header of the webhook’s own', async () => {
  const world = await createLaneWorld(database, {
    endpoint: oauth.receiver.url,
    customHeaders: '{"authorization":"Basic abc"}',
    ...oauth.credentialsOf(),
  });
  await deliverOne(world, oauth.worker());
  expect(oauth.receiver.arrivals).toEqual(['e1 Bearer token_1 200']);
});

test('a token whose encryption key is gone is fetched anew', async () => {
  const world = await oauth.worldOf();
  await deliverOne(world, oauth.worker());
  const other = createEncryptedText([{ id: 'two', key: Buffer.alloc(32, 2) }]);
  const stored = other.encrypt('token_1', `environment ${world.environmentId}`);
  await sql`update webhook_tokens set token = ${stored} where environment_id = ${world.environmentId}`.execute(
    database,
  );
  await deliverOne(world, oauth.worker());
  expect(oauth.receiver.arrivals.at(-1)).toBe('e2 Bearer token_2 200');
});
