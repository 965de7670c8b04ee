/** Settings of the API whose effect is visible outside of it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startProcess } from '../support/process-under-test.ts';

test('the application of a startup goes to ANALYTICS_URL with ANALYTICS_WRITE_KEY', async () => {
  const testDatabase = await createTestDatabase();
  const received: unknown[] = [];
  const target = createServer((request, response) => {
    received.push({ path: request.url, authorization: request.headers.authorization });
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(target, 'listening');
  onTestFinished(() => void target.close());
  await sql`
    insert into outbox (topic, dedupe_key, payload)
    values ('analytics.startup_application', 'ann', ${JSON.stringify({ email: 'ann@startup.example' })})`.execute(
    testDatabase.database,
  );
  await startProcess(testDatabase, {
    ANALYTICS_URL: `http://127.0.0.1:${(target.address() as AddressInfo).port}`,
    ANALYTICS_WRITE_KEY: 'our_key',
  }).ready();
  await vi.waitFor(() => expect(received).toHaveLength(1), 60_000);
  const authorization = `Basic ${Buffer.from('our_key:').toString('base64')}`;
  expect(received[0]).toEqual({ path: '/v1/track', authorization });
});

test('an invoice by card may be paid for CARD_PAYMENT_MS', async () => {
  const testDatabase = await createTestDatabase();
  await seedDemoWorkspace(testDatabase.database);
  const url = await startProcess(testDatabase, {
    CARD_PAYMENT_MS: '120000',
    // No worker takes it on.
    PURCHASE_WAIT_MS: '100',
  }).ready();
  const before = Date.now();
  const bought = await fetch(`${url}/v1/accounts/${DEMO.accountId}/billing/credits/purchase`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEMO.accountToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ llm: { quantity: 2_000 } }),
  });
  await bought.text();
  const after = Date.now();
  const { rows } = await sql<{ expiresAt: Date }>`
    select expires_at as "expiresAt" from runs`.execute(testDatabase.database);
  expect(rows).toHaveLength(1);
  const expiresAtMs = rows[0]?.expiresAt.getTime() ?? 0;
  expect(expiresAtMs).toBeGreaterThanOrEqual(before + 120_000);
  expect(expiresAtMs).toBeLessThanOrEqual(after + 120_000);
});
