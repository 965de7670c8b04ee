/** A purchase that is asked for twice is bought once: a double click, a call whose answer was lost. */
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
beforeEach(async () => {
  billing = await startBilling();
});
afterEach(() => billing.api.close());

describe('the same purchase by card', () => {
  // Not by `call`, which takes no 503 for an answer: no worker makes the invoice here.
  const buy = (path: string, payload: object) =>
    billing.api.app.inject({
      method: 'POST',
      url: `${billing.base}${path}`,
      headers: { authorization: `Bearer ${billing.api.a.token}` },
      payload,
    });

  test.each([
    ['/inbox_previews/payment_intent', { pack: 'pack_100' }, { pack: 'pack_500' }],
    ['/ai_credits/payment_intent', { quantity: 1_000 }, { quantity: 2_000 }],
    ['/builder_credits/payment_intent', { quantity: 100 }, { quantity: 200 }],
    ['/credits/purchase', { llm: { quantity: 1_000 } }, { llm: { quantity: 2_000 } }],
  ])(
    '%s: 50 equal starts at once make one purchase, and a different start makes another',
    async (path, same, other) => {
      await billing.setAccount("billing_rail = 'card'");
      const answers = await Promise.all(Array.from({ length: 50 }, () => buy(path, same)));
      expect(new Set(answers.map((answer) => answer.json().meta.run_id)).size).toBe(1);
      expect(await billing.countPurchases()).toBe(1);
      await buy(path, other);
      expect(await billing.countPurchases()).toBe(2);
    },
  );

  test('the old way and the new way buy the same', async () => {
    await billing.setAccount("billing_rail = 'card'");
    await buy('/ai_credits/payment_intent', { quantity: 1_000 });
    await buy('/credits/purchase', { llm: { quantity: 1_000 } });
    expect(await billing.countPurchases()).toBe(1);
  });

  test('may be paid for the whole time again once it is joined, and is bought anew when the time is over', async () => {
    await billing.setAccount("billing_rail = 'card'");
    const pack = { pack: 'pack_100' };
    await buy('/inbox_previews/payment_intent', pack);
    billing.api.clock.nowMs += 3_000_000;
    await buy('/inbox_previews/payment_intent', pack);
    // Without the second call the first would be over by now.
    billing.api.clock.nowMs += 3_000_000;
    await buy('/inbox_previews/payment_intent', pack);
    expect(await billing.countPurchases()).toBe(1);
    billing.api.clock.nowMs += 3_600_000;
    await buy('/inbox_previews/payment_intent', pack);
    expect(await billing.countPurchases()).toBe(2);
  });
});

describe.each(['card', 'invoiced'] as const)('a purchase that credit has paid, by %s', (rail) => {
  const path = `/inbox_previews/${rail === 'card' ? 'payment_intent' : 'invoiced_purchase'}`;
  const buy = () => billing.call('POST', path, { body: { pack: 'pack_100' } });
  const grant = (ago: number, isPaidByCredit: boolean) =>
    sql`
    update runs set status = 'success', finished_at = ${new Date(billing.api.clock.nowMs - ago)},
           result = ${JSON.stringify({ charged: null, invoiceId: 'in_1', ...(isPaidByCredit && { isPaidByCredit }) })}`.execute(
      billing.api.database,
    );
  beforeEach(async () => {
    await billing.setAccount(`billing_rail = '${rail}'`);
    await billing.api.app.inject({
      method: 'POST',
      url: `${billing.base}${path}`,
      headers: { authorization: `Bearer ${billing.api.a.token}` },
      payload: { pack: 'pack_100' },
    });
  });

  test('is bought once: a repeated call is answered with it', async () => {
    await grant(1_000, true);
    const again = await buy();
    expect(again.statusCode).toBe(200);
    expect(again.json()).toMatchObject({ status: 'granted', payment: null, client_secret: null });
    expect(await billing.countPurchases()).toBe(1);
  });

  test.each([
    ['two minutes later', 120_001, true],
    ['where a card has paid the first', 1_000, false],
  ])('is bought again %s', async (_, ago, isPaidByCredit) => {
    await grant(ago, isPaidByCredit);
    await billing.api.app.inject({
      method: 'POST',
      url: `${billing.base}${path}`,
      headers: { authorization: `Bearer ${billing.api.a.token}` },
      payload: { pack: 'pack_100' },
    });
    expect(await billing.countPurchases()).toBe(2);
  });
});

describe('a purchase that the customer’s credit pays, by card', () => {
  beforeEach(async () => {
    await billing.api.close();
    billing = await startBilling({ purchaseWaitMs: 60_000 });
  });

  /** Asks, and ends the purchase workflow as the worker does that finds the invoice paid as it is finalized. */
  async function askAndGrant(path: string, body: unknown) {
    await billing.setAccount("billing_rail = 'card'");
    const asked = billing.call('POST', path, { body });
    const runId = await vi.waitFor(
      async () => {
        const { rows } = await sql<{ runId: string }>`
          select run_id::text as "runId" from runs where status = 'pending'`.execute(
          billing.api.database,
        );
        expect(rows).toHaveLength(1);
        return rows[0]!.runId;
      },
      { timeout: 30_000, interval: 20 },
    );
    await billing.endPurchaseWorkflow(runId, 'success');
    return { runId, answer: await asked };
  }

  test.each([
    ['/inbox_previews/payment_intent', { pack: 'pack_100' }],
    ['/ai_credits/payment_intent', { quantity: 1_000 }],
    ['/builder_credits/payment_intent', { quantity: 100 }],
  ])('%s: the purchase is granted without a payment to confirm', async (path, body) => {
    const { answer } = await askAndGrant(path, body);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({
      status: 'granted',
      payment: null,
      client_secret: null,
      amount: { amount: 0, currency: 'usd' },
    });
    expect(answer.headers['retry-after']).toBeUndefined();
  });

  test('/credits/purchase: is a purchase without a payment, whose state can be asked for', async () => {
    const { answer } = await askAndGrant('/credits/purchase', { llm: { quantity: 1_000 } });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({
      rail: 'card',
      status: 'granted',
      payment: null,
      client_secret: null,
    });
    const state = await billing.call(
      'GET',
      `/credits/purchase_status?purchase_id=${encodeURIComponent(answer.json().purchase_id)}`,
    );
    expect(state.statusCode).toBe(200);
  });
});
