/** Tokens that the endpoint refuses, and failing token servers. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createGate, createLaneWorld } from '../../support/lane-world.ts';
import { deliverOne, startTokenWorld, type TokenWorld } from './token-world.ts';

/** Of an attempt. Half of it is longer than a stall of a busy machine. */
const TIMEOUT_MS = 16_000;

let database: Database;
let oauth: TokenWorld;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  oauth = await startTokenWorld(database);
});

test('a 401 renews the token once, and the delivery is sent again within the attempt', async () => {
  const world = await oauth.worldOf();
  const by = oauth.worker();
  await deliverOne(world, by);
  // Revoked, long before its end.
  oauth.receiver.takes = (token) => token !== 'token_1';
  await deliverOne(world, by);
  expect(oauth.receiver.arrivals.slice(1)).toEqual([
    'e2 Bearer token_1 401',
    'e2 Bearer token_2 200',
  ]);
  expect(await world.attempts(2)).toMatchObject([
    { attempt: 1, outcome: 'delivered', status: 200 },
  ]);
  await deliverOne(world, by);
  expect(oauth.tokens.requests).toHaveLength(2);
});

test('many deliveries that get a 401 at once renew the token once', async () => {
  const world = await oauth.worldOf();
  const by = oauth.worker();
  await world.log(30);
  await world.deliverAll(by);
  oauth.receiver.takes = (token) => token !== 'token_1';
  await world.log(30);
  expect(await world.deliverAll(by)).toEqual({ outcome: 'idle' });
  expect(oauth.receiver.arrivals.filter((each) => each.endsWith(' 200'))).toHaveLength(60);
  expect(oauth.tokens.requests).toHaveLength(2);
  expect(oauth.tokens.atOnceMax).toBe(1);
});

test('an endpoint that takes no token at all gets two requests an attempt, and its 401 is the answer', async () => {
  const world = await oauth.worldOf();
  const by = oauth.worker();
  oauth.receiver.takes = () => false;
  const waiting = await deliverOne(world, by);
  expect(waiting).toMatchObject({ outcome: 'waiting' });
  // A token that was fetched for this very request is not renewed.
  expect(oauth.receiver.arrivals).toEqual(['e1 Bearer token_1 401']);
  if (waiting.outcome === 'waiting') world.nowMs = waiting.untilMs;
  expect(await world.deliverAll(by)).toMatchObject({ outcome: 'waiting' });
  expect(oauth.receiver.arrivals.slice(1)).toEqual([
    'e1 Bearer token_1 401',
    'e1 Bearer token_2 401',
  ]);
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
    const world = await oauth.worldOf();
    const by = oauth.worker();
    oauth.tokens.refusal = refusal;
    const waiting = await deliverOne(world, by);
    expect(waiting).toMatchObject({ outcome: 'waiting' });
    expect(oauth.receiver.arrivals).toEqual([]);
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
    oauth.tokens.refusal = undefined;
    if (waiting.outcome === 'waiting') world.nowMs = waiting.untilMs;
    expect(await world.deliverAll(by)).toEqual({ outcome: 'idle' });
    expect(oauth.receiver.arrivals).toEqual(['e1 Bearer token_2 200']);
  },
);

test('a token server that does not answer takes half of the attempt’s time, and leaves no fetch behind', async () => {
  const world = await oauth.worldOf();
  const gate = createGate();
  onTestFinished(() => gate.open());
  oauth.tokens.hold = () => gate.opened;
  const startedAtMs = performance.now();
  // The claim in Postgres and the lateness of a busy machine are part of the other half.
  await deliverOne(world, oauth.worker({}, TIMEOUT_MS));
  expect(performance.now() - startedAtMs).toBeLessThan(60_000);
  const [attempt] = await world.attempts(1);
  expect(attempt).toMatchObject({ failure: 'token_unavailable' });
  expect(attempt?.failureMessage).toContain(`no complete answer within ${TIMEOUT_MS / 2} ms`);
  expect(attempt?.durationMs).toBeLessThan(TIMEOUT_MS);
  oauth.tokens.hold = () => Promise.resolve();
  world.nowMs += 3_600_000;
  expect(await world.deliverAll(oauth.worker())).toEqual({ outcome: 'idle' });
});

// Security: the address rules hold for the token URL as for the endpoint.
test('a token URL at an address that is refused is never called', async () => {
  const world = await createLaneWorld(database, {
    endpoint: oauth.receiver.url.replace('127.0.0.1', 'receiver.test'),
    ...oauth.credentialsOf(),
  });
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
  const production = oauth.worker({ allowPrivateAddresses: false, resolve });
  await deliverOne(world, production);
  const [attempt] = await world.attempts(1);
  expect(attempt).toMatchObject({ failure: 'token_unavailable' });
  expect(attempt?.failureMessage).toContain('refused address');
  expect(oauth.tokens.requests).toEqual([]);
  expect(oauth.receiver.arrivals).toEqual([]);
});
