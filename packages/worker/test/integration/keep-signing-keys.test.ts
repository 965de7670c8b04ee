/** Security: no signing key stands in the database as it is once a worker has started. */
import type { Database } from '@sluice/database/connection';
import { startRotation } from '@sluice/database/signing-keys';
import { createTestDatabase } from '@sluice/database/testing';
import { secretContext } from '@sluice/domain/webhook';
import { createSealedText } from '@sluice/platform/sealed-text';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { keepSigningKeys } from '../../src/keep-signing-keys.ts';
import { createLaneWorld, SIGNING_KEY, type LaneWorld } from './lane-world.ts';

const OLD = { id: 'old', key: Buffer.alloc(32, 1) };
const NEW = { id: 'new', key: Buffer.alloc(32, 2) };
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
});

const keep = (...keys: [typeof OLD, ...(typeof OLD)[]]) =>
  keepSigningKeys({ database, sealedText: createSealedText(keys), now: () => world.nowMs });

async function storedKeys(): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    select webhook_signing_key as key from environments
    union all select signing_key from webhooks
    union all select next_signing_key from webhooks where next_signing_key is not null`.execute(
    database,
  );
  return rows.map((row) => row.key);
}

async function openedKeys(...keys: [typeof OLD, ...(typeof OLD)[]]): Promise<string[]> {
  const sealedText = createSealedText(keys);
  return (await storedKeys()).map((key) =>
    sealedText.open(key, secretContext(world.environmentId)),
  );
}

test('what stands there as plain text is sealed: the workspace’s, the webhook’s and the next one', async () => {
  await keep(OLD);
  expect((await storedKeys()).filter((key) => !key.startsWith('sealed:old:'))).toEqual([]);
  expect(await openedKeys(OLD)).toEqual([SIGNING_KEY, SIGNING_KEY, 'the next key']);
});

test('more keys than one step takes are all sealed', async () => {
  await sql`
    insert into webhooks (environment_id, name, endpoint, events, signing_key)
    select ${world.environmentId}, 'x', 'http://x.test', '{email_sent}', 'key ' || n from generate_series(1, 1100) n`.execute(
    database,
  );
  await keep(OLD);
  const opened = await openedKeys(OLD);
  expect(opened).toHaveLength(1_103);
  expect(opened).toContain('key 1100');
  expect((await storedKeys()).filter((key) => !key.startsWith('sealed:old:'))).toEqual([]);
});

test('all of it is sealed anew under the first key, after which the others are not needed', async () => {
  await keep(OLD);
  await keep(NEW, OLD);
  expect(await openedKeys(NEW)).toEqual([SIGNING_KEY, SIGNING_KEY, 'the next key']);
});

test('what is sealed already is left as it is', async () => {
  await keep(OLD);
  const before = await storedKeys();
  await keep(OLD, NEW);
  expect(await storedKeys()).toEqual(before);
});

test('without the key that sealed it, it says so and changes nothing', async () => {
  await keep(OLD);
  const before = await storedKeys();
  await expect(keep(NEW)).rejects.toMatchObject({ code: 'SECRET_UNREADABLE' });
  expect(await storedKeys()).toEqual(before);
});

test('a rotation that is over leaves one key', async () => {
  await keep(OLD);
  world.nowMs += 1_000;
  await keep(OLD);
  expect(await openedKeys(OLD)).toEqual([SIGNING_KEY, 'the next key']);
});
