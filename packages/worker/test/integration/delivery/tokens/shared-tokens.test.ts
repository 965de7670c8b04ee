/** Workers that share the token of a webhook: one fetches at a time, also after its client was changed. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { createGate, until } from '../../support/lane-world.ts';
import { deliverOne, startTokenWorld, type TokenWorld } from './token-world.ts';

let database: Database;
let oauth: TokenWorld;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  oauth = await startTokenWorld(database);
});

test('a changed client is in force for the next attempt, and the token of the former one is not sent again', async () => {
  const world = await oauth.worldOf();
  const by = oauth.worker();
  await deliverOne(world, by);
  await world.change(oauth.credentialsOf({ client_secret: 'another' }));
  await deliverOne(world, by);
  expect(oauth.tokens.requests[1]?.authorization).toBe(
    `Basic ${Buffer.from('sluice:another').toString('base64')}`,
  );
  await world.change({ endpointCredentials: null });
  await deliverOne(world, by);
  expect(oauth.receiver.arrivals).toEqual([
    'e1 Bearer token_1 200',
    'e2 Bearer token_2 200',
    'e3 none 200',
  ]);
});

test('workers share one token, and fetch one at a time', async () => {
  const world = await oauth.worldOf();
  const gate = createGate();
  oauth.tokens.hold = () => gate.opened;
  const workers = [oauth.worker(), oauth.worker(), oauth.worker()];
  const requestOf = (eventId: string) => ({
    endpoint: oauth.receiver.url,
    headers: {},
    body: JSON.stringify({ event_id: eventId }),
    tokenSource: {
      webhook: world.key,
      endpointVersion: 0,
      client: oauth.clientOf(),
      tls: undefined,
    },
  });
  const sent = workers.flatMap(({ post }, which) =>
    [1, 2, 3].map((each) => post(requestOf(`w${which}e${each}`))),
  );
  await until(() => oauth.tokens.requests.length > 0);
  // The others have asked Postgres meanwhile, and wait.
  await new Promise((resolve) => setTimeout(resolve, 200));
  gate.open();
  for (const answer of await Promise.all(sent)) expect(answer).toMatchObject({ status: 200 });
  expect(oauth.tokens.requests).toHaveLength(1);
  // All of them have it refused at once, and renew it once.
  oauth.receiver.takes = (token) => token !== 'token_1';
  const again = workers.flatMap(({ post }, which) =>
    [1, 2, 3].map((each) => post(requestOf(`v${which}e${each}`))),
  );
  for (const answer of await Promise.all(again)) expect(answer).toMatchObject({ status: 200 });
  expect(oauth.tokens.requests).toHaveLength(2);
  expect(oauth.tokens.atOnceMax).toBe(1);
});

test('a worker that still has the former client does not send with the token of the new one', async () => {
  const world = await oauth.worldOf();
  const { post } = oauth.worker();
  const requestOf = (endpointVersion: number) => ({
    endpoint: oauth.receiver.url,
    headers: {},
    body: '{"event_id":"x"}',
    tokenSource: { webhook: world.key, endpointVersion, client: oauth.clientOf(), tls: undefined },
  });
  await post(requestOf(2));
  expect(await post(requestOf(1))).toMatchObject({
    outcome: 'failure',
    failure: 'token_unavailable',
    message: expect.stringContaining('was changed'),
  });
  expect(oauth.tokens.requests).toHaveLength(1);
});
