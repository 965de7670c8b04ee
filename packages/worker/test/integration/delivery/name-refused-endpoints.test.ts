/** A worker names the stored webhooks that it will refuse. */
import { listWebhookEndpoints } from '@sluice/database/webhooks/webhook-endpoints';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { parseNetwork } from '@sluice/domain/delivery/network-address';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { nameRefusedEndpoints } from '../../../src/delivery/name-refused-endpoints.ts';

const ENDPOINTS = [
  'http://127.0.0.1:8092/metrics',
  'http://[::1]/',
  'https://10.2.3.4/hook',
  'https://inside.example/hook',
  'https://outside.example/hook',
  'https://gone.example/hook',
  'https://10.1.0.9/allowed',
];

async function webhooksAt(endpoints: readonly string[]) {
  const { database } = await createTestDatabase();
  await sql`insert into accounts (account_id, name) values (1, 'a')`.execute(database);
  await sql`insert into environments (account_id, environment_id, name, webhook_signing_key)
            values (1, 7, 'e', 'k')`.execute(database);
  await sql`insert into webhooks (environment_id, webhook_id, name, endpoint, events, signing_key, disabled, deleted_at)
            select 7, place, 'w', endpoint, array['x'], 'k', place = 901, case when place = 902 then now() end
              from unnest(${endpoints}::text[]) with ordinality as e (endpoint, place)`.execute(
    database,
  );
  return database;
}

test('each enabled webhook at a refused address is named, and no other', async () => {
  const others = Array.from({ length: 902 - ENDPOINTS.length }, () => 'https://outside.example/');
  const endpoints = [...ENDPOINTS, ...others];
  // Disabled, and deleted.
  endpoints[900] = 'http://127.0.0.1/';
  endpoints[901] = 'http://127.0.0.1/';
  const database = await webhooksAt(endpoints);
  const named: unknown[] = [];
  const count = await nameRefusedEndpoints({
    listEndpoints: (after, countMax) => listWebhookEndpoints(database, after, countMax),
    resolve: (hostname) => {
      if (hostname === 'gone.example') return Promise.reject(new Error('ENOTFOUND'));
      const address = hostname === 'inside.example' ? '192.168.0.9' : '93.184.216.34';
      return Promise.resolve([{ address, family: 4 }]);
    },
    policy: { allowPrivate: false, allowedNetworks: [parseNetwork('10.1.0.0/16') as never] },
    logger: { warn: (details: unknown) => void named.push(details) } as never,
    signal: new AbortController().signal,
  });
  expect(count).toBe(4);
  expect(named).toEqual(
    ['127.0.0.1:8092', '[::1]', '10.2.3.4', 'inside.example'].map((host, index) => ({
      environmentId: 7,
      webhookId: index + 1,
      host,
    })),
  );
});
