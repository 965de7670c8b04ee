/**
 * OAuth2 client credentials of a webhook, with a real token server. The receiver refuses unknown tokens. The workers
 * share a real Postgres: one fetches a token at its time, and a delivery without a token fails.
 */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { claimToken, keepToken } from '@sluice/database/webhooks/webhook-tokens';
import { deleteWebhook } from '@sluice/database/webhooks/webhooks';
import type { OAuth2Client } from '@sluice/domain/delivery/webhook';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { sql } from 'kysely';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { AccessTokens } from '../../../src/delivery/access-tokens.ts';
import { authorizedPost } from '../../../src/delivery/authorized-post.ts';
import { createHttpClient, type HttpClientOptions } from '../../../src/http/http-client.ts';
import { webhookSecrets } from '../../../src/maintenance/encrypt-secrets.ts';
import {
  startTokenReceiver,
  startTokenServer,
  type TokenReceiver,
  type TokenServer,
} from '../../support/token-server.ts';
import { createGate, createLaneWorld, until, type LaneWorld } from '../support/lane-world.ts';

/** Generous: a busy machine may stand still for seconds while a token is fetched. */
const TIMEOUT_MS = 20_000;
const closes: (() => void)[] = [];
const encryptedText = createEncryptedText([{ id: 'one', key: Buffer.alloc(32, 1) }]);
const secrets = webhookSecrets(encryptedText);
let database: Database;
let tokens: TokenServer;
let receiver: TokenReceiver;
let clock = 0;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  tokens = await startTokenServer();
  receiver = await startTokenReceiver();
  closes.push(
    () => tokens.close(),
    () => receiver.close(),
  );
  clock = 0;
});
afterEach(() => {
  for (let close = closes.pop(); close; close = closes.pop()) close();
});

/** A worker's way to send: its own memory, its own connections. Its monotonic clock may be ahead by `clock`. */
function worker(options: Partial<HttpClientOptions> = {}, timeoutMs = TIMEOUT_MS) {
  const http = createHttpClient({ timeoutMs, allowPrivateAddresses: true, ...options });
  closes.push(() => http.close());
  const deps = { post: http.post, monotonicNow: () => performance.now() + clock };
  const kept = new AccessTokens({
    ...deps,
    ...secrets,
    database,
    fetchTimeoutMs: timeoutMs / 2,
  });
  return {
    post: authorizedPost({ ...deps, tokens: kept, timeoutMs }),
    openSecret: secrets.openSecret,
  };
}

const clientOf = (changes: Partial<OAuth2Client> = {}): OAuth2Client => ({
  token_url: tokens.url,
  client_id: 'sluice',
  client_secret: 'open sesame',
  client_authentication: 'basic',
  ...changes,
});
const credentialsOf = (changes: Partial<OAuth2Client> = {}) => ({
  endpointCredentials: JSON.stringify({ oauth2: clientOf(changes) }),
});
const worldOf = (changes: Partial<OAuth2Client> = {}): Promise<LaneWorld> =>
  createLaneWorld(database, { endpoint: receiver.url, ...credentialsOf(changes) });

/** As if so much time had passed for Postgres as well as for workers. */
async function pass(durationMs: number): Promise<void> {
  clock += durationMs;
  await sql`
    update webhook_tokens set usable_until = usable_until - ${durationMs} * interval '1 millisecond'`.execute(
    database,
  );
}

async function deliverOne(world: LaneWorld, by: ReturnType<typeof worker>) {
  await world.log(1);
  return world.deliverAll(by);
}

test('a token is fetched once, kept in the database encrypted, and sent with every delivery', async () => {
  const world = await worldOf({ scope: 'hooks:write', audience: 'https://receiver.example' });
  await world.log(20);
  expect(await world.deliverAll(worker())).toEqual({ outcome: 'idle' });
  expect(receiver.arrivals).toHaveLength(20);
  expect(receiver.arrivals.filter((each) => !each.endsWith(' Bearer token_1 200'))).toEqual([]);
  expect(tokens.requests).toEqual([
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
  const world = await worldOf();
  await deliverOne(world, worker());
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
  const world = await worldOf({ client_authentication: 'body' });
  await deliverOne(world, worker());
  expect(tokens.requests).toEqual([
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
  const world = await worldOf();
  const by = worker();
  await deliverOne(world, by);
  await pass(3_560_000);
  await deliverOne(world, by);
  expect(tokens.requests).toHaveLength(1);
  await pass(11_000);
  await deliverOne(world, by);
  expect(receiver.arrivals).toEqual([
    'e1 Bearer token_1 200',
    'e2 Bearer token_1 200',
    'e3 Bearer token_2 200',
  ]);
});

test('a token without a stated end is kept for five minutes; one that is good for no time is fetched each time', async () => {
  tokens.lifetimeSeconds = undefined;
  const world = await worldOf();
  const by = worker();
  await deliverOne(world, by);
  await pass(260_000);
  await deliverOne(world, by);
  expect(tokens.requests).toHaveLength(1);
  tokens.lifetimeSeconds = 0;
  await pass(20_000);
  await deliverOne(world, by);
  await deliverOne(world, by);
  expect(receiver.arrivals.at(-1)).toBe('e4 Bearer token_3 200');
});

test('a 401 renews the token once, and the delivery is sent again within the attempt', async () => {
  const world = await worldOf();
  const by = worker();
  await deliverOne(world, by);
  // Revoked, long before its end.
  receiver.takes = (token) => token !== 'token_1';
  await deliverOne(world, by);
  expect(receiver.arrivals.slice(1)).toEqual(['e2 Bearer token_1 401', 'e2 Bearer token_2 200']);
  expect(await world.attempts(2)).toMatchObject([
    { attempt: 1, outcome: 'delivered', status: 200 },
  ]);
  await deliverOne(world, by);
  expect(tokens.requests).toHaveLength(2);
});

test('many deliveries that get a 401 at once renew the token once', async () => {
  const world = await worldOf();
  const by = worker();
  await world.log(30);
  await world.deliverAll(by);
  receiver.takes = (token) => token !== 'token_1';
  await world.log(30);
  expect(await world.deliverAll(by)).toEqual({ outcome: 'idle' });
  expect(receiver.arrivals.filter((each) => each.endsWith(' 200'))).toHaveLength(60);
  expect(tokens.requests).toHaveLength(2);
  expect(tokens.atOnceMax).toBe(1);
});

test('an endpoint that takes no token at all gets two requests an attempt, and its 401 is the answer', async () => {
  const world = await worldOf();
  const by = worker();
  receiver.takes = () => false;
  const waiting = await deliverOne(world, by);
  expect(waiting).toMatchObject({ outcome: 'waiting' });
  // A token that was fetched for this very request is not renewed.
  expect(receiver.arrivals).toEqual(['e1 Bearer token_1 401']);
  if (waiting.outcome === 'waiting') world.nowMs = waiting.untilMs;
  expect(await world.deliverAll(by)).toMatchObject({ outcome: 'waiting' });
  expect(receiver.arrivals.slice(1)).toEqual(['e1 Bearer token_1 401', 'e1 Bearer token_2 401']);
  expect(await world.attempts(1)).toMatchObject([
    { attempt: 1, failure: 'status', status: 401 },
    { attempt: 2, failure: 'status', status: 401 },
  ]);
});

test.each([
  [
    { status: 401, body: '{"error":"invalid_client","error_description":"no such client"}' },
    'the token URL answered 401 (invalid_client)',
  ],
  [{ status: 302, body: '' }, 'the token URL answered 302'],
  [
    { status: 200, body: '<html>' },
    'the answer of the token URL is not a JSON object; correct oauth2.token_url',
  ],
  [{ status: 200, body: '{}' }, /has no access_token/],
  [{ status: 200, body: '{"access_token":"a\\r\\nx: y"}' }, /has no access_token/],
  [{ status: 200, body: '{"access_token":"a","token_type":"mac"}' }, /is not Bearer/],
])(
  'a token server that gives no token is a failed attempt with a class and a message of its own: %j',
  async (refusal, message) => {
    const world = await worldOf();
    const by = worker();
    tokens.refusal = refusal;
    const waiting = await deliverOne(world, by);
    expect(waiting).toMatchObject({ outcome: 'waiting' });
    expect(receiver.arrivals).toEqual([]);
    const [attempt] = await world.attempts(1);
    expect(attempt).toMatchObject({
      outcome: 'retrying',
      failure: 'token_unavailable',
      status: null,
      responseHead: null,
      responseBody: null,
    });
    expect(attempt?.failureMessage).toMatch(message);
    // It goes on as soon as there are tokens again.
    tokens.refusal = undefined;
    if (waiting.outcome === 'waiting') world.nowMs = waiting.untilMs;
    expect(await world.deliverAll(by)).toEqual({ outcome: 'idle' });
    expect(receiver.arrivals).toEqual(['e1 Bearer token_2 200']);
  },
);

test('a token server that does not answer takes half of the attempt’s time, and leaves no fetch behind', async () => {
  const world = await worldOf();
  const gate = createGate();
  closes.push(() => gate.open());
  tokens.hold = () => gate.opened;
  const startedAtMs = performance.now();
  // The claim in Postgres and the lateness of a busy machine are part of the other half.
  await deliverOne(world, worker({}, 6_000));
  expect(performance.now() - startedAtMs).toBeLessThan(20_000);
  const [attempt] = await world.attempts(1);
  expect(attempt).toMatchObject({ failure: 'token_unavailable' });
  expect(attempt?.failureMessage).toContain('no complete answer within 3000 ms');
  expect(attempt?.durationMs).toBeLessThan(6_000);
  tokens.hold = () => Promise.resolve();
  world.nowMs += 3_600_000;
  expect(await world.deliverAll(worker())).toEqual({ outcome: 'idle' });
});

// Security: the address rules hold for the token URL as for the endpoint.
test('a token URL at an address that is refused is never called', async () => {
  const world = await createLaneWorld(database, {
    endpoint: receiver.url.replace('127.0.0.1', 'receiver.test'),
    ...credentialsOf(),
  });
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
  const production = worker({ allowPrivateAddresses: false, resolve });
  await deliverOne(world, production);
  const [attempt] = await world.attempts(1);
  expect(attempt).toMatchObject({ failure: 'token_unavailable' });
  expect(attempt?.failureMessage).toContain('refused address');
  expect(tokens.requests).toEqual([]);
  expect(receiver.arrivals).toEqual([]);
});

test('a changed client is in force for the next attempt, and the token of the former one is not sent again', async () => {
  const world = await worldOf();
  const by = worker();
  await deliverOne(world, by);
  await world.change(credentialsOf({ client_secret: 'another' }));
  await deliverOne(world, by);
  expect(tokens.requests[1]?.authorization).toBe(
    `Basic ${Buffer.from('sluice:another').toString('base64')}`,
  );
  await world.change({ endpointCredentials: null });
  await deliverOne(world, by);
  expect(receiver.arrivals).toEqual([
    'e1 Bearer token_1 200',
    'e2 Bearer token_2 200',
    'e3 none 200',
  ]);
});

test('the token takes the place of an authorization header of the webhook’s own', async () => {
  const world = await createLaneWorld(database, {
    endpoint: receiver.url,
    customHeaders: '{"authorization":"Basic abc"}',
    ...credentialsOf(),
  });
  await deliverOne(world, worker());
  expect(receiver.arrivals).toEqual(['e1 Bearer token_1 200']);
});

test('workers share one token, and fetch one at a time', async () => {
  const world = await worldOf();
  const gate = createGate();
  tokens.hold = () => gate.opened;
  const workers = [worker(), worker(), worker()];
  const requestOf = (eventId: string) => ({
    endpoint: receiver.url,
    headers: {},
    body: JSON.stringify({ event_id: eventId }),
    tokenSource: { webhook: world.key, endpointVersion: 0, client: clientOf(), tls: undefined },
  });
  const sent = workers.flatMap(({ post }, which) =>
    [1, 2, 3].map((each) => post(requestOf(`w${which}e${each}`))),
  );
  await until(() => tokens.requests.length > 0);
  // The others have asked Postgres meanwhile, and wait.
  await new Promise((resolve) => setTimeout(resolve, 200));
  gate.open();
  for (const answer of await Promise.all(sent)) expect(answer).toMatchObject({ status: 200 });
  expect(tokens.requests).toHaveLength(1);
  // All of them have it refused at once, and renew it once.
  receiver.takes = (token) => token !== 'token_1';
  const again = workers.flatMap(({ post }, which) =>
    [1, 2, 3].map((each) => post(requestOf(`v${which}e${each}`))),
  );
  for (const answer of await Promise.all(again)) expect(answer).toMatchObject({ status: 200 });
  expect(tokens.requests).toHaveLength(2);
  expect(tokens.atOnceMax).toBe(1);
});

test('a worker that still has the former client does not send with the token of the new one', async () => {
  const world = await worldOf();
  const { post } = worker();
  const requestOf = (endpointVersion: number) => ({
    endpoint: receiver.url,
    headers: {},
    body: '{"event_id":"x"}',
    tokenSource: { webhook: world.key, endpointVersion, client: clientOf(), tls: undefined },
  });
  await post(requestOf(2));
  expect(await post(requestOf(1))).toMatchObject({
    outcome: 'failure',
    failure: 'token_unavailable',
    message: expect.stringContaining('was changed'),
  });
  expect(tokens.requests).toHaveLength(1);
});

test('a token whose encryption key is gone is fetched anew', async () => {
  const world = await worldOf();
  await deliverOne(world, worker());
  const other = createEncryptedText([{ id: 'two', key: Buffer.alloc(32, 2) }]);
  const stored = other.encrypt('token_1', `environment ${world.environmentId}`);
  await sql`update webhook_tokens set token = ${stored} where environment_id = ${world.environmentId}`.execute(
    database,
  );
  await deliverOne(world, worker());
  expect(receiver.arrivals.at(-1)).toBe('e2 Bearer token_2 200');
});
