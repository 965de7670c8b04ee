/**
 * A worker is killed while it fetches or uses a token.
 *
 * It is a real process. The next worker fetches another token, or uses the kept one, and every delivery arrives in
 * order.
 */
import { changeWebhook } from '@sluice/database/webhooks/webhook-changes';
import { BY_TEST } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTokenServer, type TokenServer } from '../../../support/token-server.ts';
import { createCrashWorld, expectAllInOrder, type CrashWorld } from '../../support/crash-world.ts';
import { createGate, until } from '../../support/lane-world.ts';

let world: CrashWorld;
let tokens: TokenServer;
beforeAll(async () => {
  world = await createCrashWorld();
  tokens = await startTokenServer();
  const { environmentId, webhookId } = world.lane;
  const oauth2 = {
    token_url: tokens.url,
    client_id: 'sluice',
    client_secret: 'open sesame',
    client_authentication: 'basic',
  };
  await changeWebhook(
    world.database,
    environmentId,
    webhookId,
    { endpointCredentials: JSON.stringify({ oauth2 }) },
    BY_TEST,
    Date.now(),
  );
}, 120_000);
afterAll(async () => {
  tokens.close();
  await world.close();
});

const isFetching = async (): Promise<boolean> => {
  const { rows } = await sql`
    select from webhook_tokens where fetching_until > clock_timestamp()`.execute(world.database);
  return rows.length > 0;
};

test('a worker that dies while it fetches a token holds up the next one for its claim at most', async () => {
  const gate = createGate();
  tokens.hold = () => gate.opened;
  await world.log(3);
  await until(() => tokens.requests.length === 1);
  expect(await isFetching()).toBe(true);
  await world.kill();
  tokens.hold = () => Promise.resolve();
  gate.open();
  await world.replace();
  await world.allArrive();
  expectAllInOrder(world.arrivals, 3);
  expect(tokens.requests).toHaveLength(2);
  expect(await isFetching()).toBe(false);
}, 240_000);

test('a worker that dies between token and answer leaves the token to the next one', async () => {
  const request = world.catchRequest();
  await world.log(1);
  await request.came;
  await world.kill();
  world.answer = () => 200;
  request.answer();
  await world.replace();
  await world.allArrive();
  expectAllInOrder(world.arrivals, 4);
  expect(tokens.requests).toHaveLength(2);
}, 240_000);
