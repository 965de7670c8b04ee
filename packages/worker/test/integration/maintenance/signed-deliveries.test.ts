/**
 * Deliveries over a real socket, against the verifiers of receivers.
 *
 * The verifiers are ours, a known client's, and Standard Webhooks'.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Database } from '@sluice/database/connection/connection';
import { promoteSigningKey, startRotation } from '@sluice/database/webhooks/signing-keys';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { secretContext, standardForm } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { verifyDelivery } from '@sluice/verify';
import { verifyRequestSignature } from 'customerio-node';
import { sql } from 'kysely';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/http/http-client.ts';
import { encryptSecrets } from '../../../src/maintenance/encrypt-secrets.ts';
import { createLaneWorld, SIGNING_KEY, type LaneWorld } from '../support/lane-world.ts';

const NEW_KEY = 'c0ffee00'.repeat(8);
const encryptedText = createEncryptedText([{ id: 'one', key: Buffer.alloc(32, 1) }]);
const received: { headers: IncomingHttpHeaders; body: string }[] = [];
const receiver = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (part: string) => (body += part));
  request.on('end', () => {
    received.push({ headers: request.headers, body });
    response.end();
  });
});
const http = createHttpClient({ timeoutMs: 4_000, allowPrivateAddresses: true });
let database: Database;
let endpoint: string;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
});
afterAll(() => {
  http.close();
  receiver.close();
});

/** The one request that the next event of this world makes. */
async function send(world: LaneWorld) {
  received.length = 0;
  await world.log(1);
  const outcome = await world.deliverAll({
    post: (request) => http.post(request),
    openSecret: (environmentId, encrypted) =>
      encryptedText.decrypt(encrypted, secretContext(environmentId)),
  });
  expect(outcome).toEqual({ outcome: 'idle' });
  expect(received).toHaveLength(1);
  return received[0] as (typeof received)[number];
}

const rotate = (world: LaneWorld, signsFromMs: number) =>
  startRotation(
    database,
    world.key,
    { signingKey: encryptedText.encrypt(NEW_KEY, secretContext(world.environmentId)), signsFromMs },
    world.nowMs,
  );

test('passes our verifier and the known client’s, and neither once it is changed', async () => {
  const world = await createLaneWorld(database, { endpoint });
  world.nowMs = Date.now();
  const { headers, body } = await send(world);
  expect(verifyDelivery(headers, body, SIGNING_KEY)).toBe(true);
  expect(verifyDelivery(headers, `${body} `, SIGNING_KEY)).toBe(false);
  const signed = {
    signingSecret: SIGNING_KEY,
    timestamp: Number(headers['x-svc-timestamp']),
    signature: String(headers['x-svc-signature']),
  };
  expect(verifyRequestSignature({ ...signed, body })).toBe(true);
  expect(verifyRequestSignature({ ...signed, body: `${body} ` })).toBe(false);
  expect(headers).not.toHaveProperty('webhook-signature');
});

test('during a rotation a receiver with either key verifies, also one that knows one header only', async () => {
  const world = await createLaneWorld(database, { endpoint });
  world.nowMs = Date.now();
  await rotate(world, world.nowMs + 86_400_000);
  const { headers, body } = await send(world);
  for (const key of [SIGNING_KEY, NEW_KEY]) expect(verifyDelivery(headers, body, key)).toBe(true);
  const timestamp = Number(headers['x-svc-timestamp']);
  const signature = String(headers['x-svc-signature']);
  const passes = (signingSecret: string) =>
    verifyRequestSignature({ signingSecret, timestamp, signature, body });
  expect([passes(SIGNING_KEY), passes(NEW_KEY)]).toEqual([true, false]);
});

test.each(['promoted by hand', 'at the end of its overlap'])(
  'a new key signs alone once it is %s',
  async (way) => {
    const world = await createLaneWorld(database, { endpoint });
    world.nowMs = Date.now();
    await rotate(world, world.nowMs + 60_000);
    await send(world);
    if (way === 'promoted by hand') await promoteSigningKey(database, world.key, world.nowMs);
    else world.nowMs += 60_000;
    const { headers, body } = await send(world);
    expect(headers).not.toHaveProperty('x-svc-signature-next');
    expect(verifyDelivery(headers, body, NEW_KEY)).toBe(true);
    expect(verifyDelivery(headers, body, SIGNING_KEY)).toBe(false);
    // The old key is gone from the database too, and the rest of the webhook is unchanged.
    await encryptSecrets({ database, encryptedText, now: () => world.nowMs });
    const again = await send(world);
    expect(verifyDelivery(again.headers, again.body, NEW_KEY)).toBe(true);
    const { rows } = await sql<{ key: string; next: string | null }>`
      select signing_key as key, next_signing_key as next from webhooks where webhook_id = ${world.webhookId}`.execute(
      database,
    );
    expect(rows[0]?.next).toBeNull();
    expect(encryptedText.decrypt(String(rows[0]?.key), secretContext(world.environmentId))).toBe(
      NEW_KEY,
    );
  },
);

// An owner who rotates without an overlap has lost the old key: a worker whose clock is behind must not use it any
// longer.
test('a key that replaces the old one at once signs alone, for any clock of the worker', async () => {
  const world = await createLaneWorld(database, { endpoint });
  world.nowMs = Date.now();
  await rotate(world, world.nowMs);
  world.nowMs -= 60_000;
  const { headers, body } = await send(world);
  expect(verifyDelivery(headers, body, NEW_KEY)).toBe(true);
  expect(verifyDelivery(headers, body, SIGNING_KEY)).toBe(false);
});

test('with the headers of Standard Webhooks passes its library, before, during and after a rotation', async () => {
  const world = await createLaneWorld(database, { endpoint, standardWebhooks: true });
  world.nowMs = Date.now();
  const verify = (key: string, { headers, body }: Awaited<ReturnType<typeof send>>) =>
    new StandardWebhook(standardForm(key, (text) => Buffer.from(text).toString('base64'))).verify(
      body,
      headers as Record<string, string>,
    );

  const before = await send(world);
  expect(verify(SIGNING_KEY, before)).toMatchObject({ event_id: before.headers['webhook-id'] });
  expect(() => verify(NEW_KEY, before)).toThrow('No matching signature');
  expect(() => verify(SIGNING_KEY, { ...before, body: `${before.body} ` })).toThrow(
    'No matching signature',
  );

  await rotate(world, world.nowMs + 60_000);
  const during = await send(world);
  for (const key of [SIGNING_KEY, NEW_KEY]) expect(verify(key, during)).toBeDefined();

  await promoteSigningKey(database, world.key, world.nowMs);
  const after = await send(world);
  expect(verify(NEW_KEY, after)).toBeDefined();
  expect(() => verify(SIGNING_KEY, after)).toThrow('No matching signature');
});
