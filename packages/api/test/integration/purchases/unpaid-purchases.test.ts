/** The limit of one account's card purchases that wait to be paid. */
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { UNPAID_COUNT_MAX } from '../../../src/billing/start-purchase-workflow.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

test('with 20 unpaid card purchases an account starts no other, until one is over', async () => {
  const billing = await startBilling({ purchaseWaitMs: 100 });
  onTestFinished(() => billing.api.close());
  const { database } = billing.api;
  await billing.setAccount("billing_rail = 'card'");
  const buy = (quantity: number) => startCardPurchase(billing, quantity);
  expect((await buy(1_000)).statusCode).toBe(503);
  const { rows } = await sql<{ lane: string }>`select lane from runs`.execute(database);
  expect(rows).toEqual([{ lane: 'card' }]);
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, expires_at, next_at, created_at)
    select account_id, run_id || n, lane, kind, rail, fingerprint || n, content, origin, expires_at, next_at, created_at
      from runs, generate_series(2, ${UNPAID_COUNT_MAX}::int) as n`.execute(database);
  const refused = await buy(2_000);
  expect(refused.statusCode).toBe(409);
  expect(refused.json()).toMatchObject({ code: 'limit_reached', meta: { limit: 20 } });
  expect(await billing.countPurchases()).toBe(20);
  await sql`update runs set status = 'declined', message = 'ended', finished_at = now() where run_id like '%2'`.execute(
    database,
  );
  expect((await buy(2_000)).statusCode).toBe(503);
  expect(await billing.countPurchases()).toBe(21);
});

test('of 30 different card purchases that start at the same moment 20 are made', async () => {
  const billing = await startBilling({ purchaseWaitMs: 100 });
  onTestFinished(() => billing.api.close());
  await billing.setAccount("billing_rail = 'card'");
  const started = await Promise.all(
    Array.from({ length: 30 }, (_, index) => startCardPurchase(billing, 1_000 * (index + 1))),
  );
  const statuses = started.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b);
  expect(statuses).toEqual([
    ...Array.from({ length: 30 - UNPAID_COUNT_MAX }, () => 409),
    ...Array.from({ length: UNPAID_COUNT_MAX }, () => 503),
  ]);
  expect(await billing.countPurchases()).toBe(UNPAID_COUNT_MAX);
});

/**
 * Not by `call`, which expects an answer: without a worker the invoice is never made, so a start that succeeds answers
 * 503.
 */
const startCardPurchase = (billing: Billing, quantity: number) =>
  billing.api.app.inject({
    method: 'POST',
    url: `${billing.base}/credits/purchase`,
    headers: { authorization: `Bearer ${billing.api.a.token}` },
    payload: { llm: { quantity } },
  });
