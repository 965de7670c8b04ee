import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertTestReceipt } from '../support/inserted-rows.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
beforeEach(async () => {
  billing = await startBilling();
});
afterEach(() => billing.api.close());

describe('one purchase in flight', () => {
  test('I11: of 200 starts at once of two packs, starts of the same pack join one purchase and the others get 409', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        billing.buyPack(index % 2 ? 'pack_100' : 'pack_500'),
      ),
    );
    const joined = answers.filter((answer) => answer.statusCode === 200);
    const refused = answers.filter((answer) => answer.statusCode === 409);
    expect([joined.length, refused.length]).toEqual([100, 100]);
    expect(new Set(joined.map((answer) => answer.json().run_id)).size).toBe(1);
    expect(new Set(joined.map((answer) => answer.json().pack)).size).toBe(1);
    for (const answer of refused.slice(0, 3)) {
      expectProblem(answer, 409, 'purchase_in_flight');
      expect(answer.json().meta.run_id).toBe(joined[0]!.json().run_id);
    }
    expect(await billing.countPurchases()).toBe(1);
    expect(billing.api.wokenPurchases).toHaveLength(1);
    const { rows } = await sql<{ count: number }>`
      select count(*)::int from audit_logs where object_type = 'purchase'`.execute(
      billing.api.database,
    );
    expect(rows[0]!.count).toBe(1);
  });

  test('I12: another kind of purchase of the payment method type, old or new way, is another purchase', async () => {
    const pack = await billing.buyPack('pack_100');
    expectProblem(
      await billing.buyCredits({ llm: { quantity: 1_000 } }),
      409,
      'purchase_in_flight',
    );
    await billing.endPurchaseWorkflow(pack.json().run_id, 'success');
    const credits = await billing.buyCredits({ llm: { quantity: 1_000 } });
    expect(credits.json()).toMatchObject({ rail: 'invoiced', status: 'pending', payment: null });
    const old = await billing.call('POST', '/ai_credits/invoiced_purchase', {
      body: { quantity: 1_000 },
    });
    expect(old.json()).toEqual({ run_id: credits.json().run_id, status: 'pending' });
    expectProblem(
      await billing.call('POST', '/ai_credits/invoiced_purchase', { body: { quantity: 2_000 } }),
      409,
      'purchase_in_flight',
    );
    expectProblem(await billing.buyPack('pack_100'), 409, 'purchase_in_flight');
  });

  test('I13: after its end the same call is a new purchase, and other accounts never notice', async () => {
    const first = (await billing.buyPack('pack_100')).json().run_id;
    await billing.endPurchaseWorkflow(first, 'declined');
    expect((await billing.buyPack('pack_100')).json().run_id).not.toBe(first);
    await sql`update accounts set billing_rail = 'invoiced', plan_tier = 'premium'
               where account_id = ${billing.api.b.accountId}`.execute(billing.api.database);
    const other = await billing.api.call(
      'POST',
      `/v1/accounts/${billing.api.b.accountId}/billing/inbox_previews/invoiced_purchase`,
      { key: billing.api.b.token, body: { pack: 'pack_500' } },
    );
    expect(other.statusCode).toBe(200);
  });

  test('add-ons have one purchase in flight of their own, and the order of prices makes no difference', async () => {
    await billing.setAccount("billing_rail = 'card'");
    const add = (...skus: string[]) =>
      billing.call('POST', '/addons', { body: { skus: { add: skus } } });
    const first = await add('price_addon_ip_month', 'price_addon_sms_month');
    expect(first.json()).toEqual({ run_id: expect.any(String), status: 'pending' });
    expect(Number(first.headers['retry-after'])).toBe(1);
    expect((await add('price_addon_sms_month', 'price_addon_ip_month')).json()).toEqual(
      first.json(),
    );
    expectProblem(await add('price_addon_sms_month'), 409, 'purchase_in_flight');
    const status = await billing.call('GET', `/addons/status/${first.json().run_id}`);
    expect(status.json()).toMatchObject({ status: 'pending', items: [], charged: null });
    // Distinguished later, even if the catalogue has changed by then.
    const { rows } = await sql<{ prices: unknown }>`
      select content -> 'prices' as prices from runs where kind = 'addons'`.execute(
      billing.api.database,
    );
    expect(rows[0]!.prices).toContainEqual({ sku: 'price_addon_sms_month', addon: 'sms' });
  });
});

describe('the state of a purchase', () => {
  test('names its receipt, which is there for this account alone', async () => {
    const { api } = billing;
    const bought = (await billing.buyCredits({ llm: { quantity: 1_000 } })).json();
    const paths = [
      `/credits/purchase_status?purchase_id=${bought.purchase_id}`,
      `/runs/${bought.run_id}`,
    ];
    for (const path of paths)
      expect((await billing.call('GET', path)).json()).toMatchObject({ receipt_id: null });
    await insertTestReceipt(api.database, api.a.accountId, bought.run_id);
    await billing.endPurchaseWorkflow(bought.run_id, 'success', bought.run_id);
    for (const path of paths) {
      const { receipt_id: id } = (await billing.call('GET', path)).json();
      const read = (key: string) => api.call('GET', `/settings/receipts/${id}`, { key });
      expect((await read(api.a.token)).statusCode).toBe(200);
      expectProblem(await read(api.b.token), 404, 'not_found');
    }
  });

  test('I14: is the same by every handle until the purchase ends, and then stays final', async () => {
    const bought = (await billing.buyCredits({ llm: { quantity: 1_000 } })).json();
    const status = () =>
      billing.call('GET', `/credits/purchase_status?purchase_id=${bought.purchase_id}`);
    const pending = await status();
    expect(pending.json()).toMatchObject({ status: 'pending', state: 'pending', balance: null });
    expect(pending.headers['retry-after']).toBeDefined();
    await billing.endPurchaseWorkflow(bought.run_id, 'success');
    const ended = await status();
    expect(ended.json()).toMatchObject({
      status: 'success',
      state: 'succeeded',
      granted_at: expect.any(String),
      balance: { credit_type: 'llm' },
    });
    expect(ended.headers['retry-after']).toBeUndefined();
    await billing.endPurchaseWorkflow(bought.run_id, 'declined');
    expect((await status()).json()).toEqual({
      ...ended.json(),
    });
    const old = await billing.call(
      'GET',
      `/ai_credits/invoiced_purchase_status?run_id=${bought.run_id}`,
    );
    expect(old.json()).toMatchObject({ run_id: bought.run_id, status: 'success' });
    const workflow = await billing.call('GET', `/runs/${bought.run_id}`);
    expect(workflow.json()).toMatchObject({ status: 'success', kind: 'credits', steps: [] });
    expect((await billing.call('GET', '/runs')).json().runs).toHaveLength(1);
  });

  test('shows a later refund and keeps the ending', async () => {
    const bought = (await billing.buyPack('pack_100')).json();
    await billing.endPurchaseWorkflow(bought.run_id, 'success');
    const list = async () => (await billing.call('GET', '/runs')).json().runs;
    expect(await list()).toMatchObject([{ status: 'success', refunded: null }]);
    const reversal = {
      cause: 'dispute',
      amount: { amount: 2_000, currency: 'usd' },
      isWhole: true,
      creditsTaken: 70,
      atMs: Date.UTC(2026, 10, 23),
    };
    await sql`
      update runs set result = result || ${JSON.stringify({ reversal })}::jsonb`.execute(
      billing.api.database,
    );
    const refunded = {
      cause: 'dispute',
      amount: { amount: 2_000, currency: 'usd' },
      whole: true,
      credits_taken: 70,
      refunded_at: '2026-11-23T00:00:00.000Z',
    };
    expect(await list()).toMatchObject([{ status: 'success', refunded }]);
    const one = await billing.call('GET', `/runs/${bought.run_id}`);
    expect(one.json()).toMatchObject({ status: 'success', refunded });
  });

  test('is 404 for another account, for a forged handle and by the path of another kind of purchase', async () => {
    const bought = (await billing.buyCredits({ builder: { quantity: 100 } })).json();
    const other = `/v1/accounts/${billing.api.b.accountId}/billing`;
    const asB = { key: billing.api.b.token };
    for (const path of [
      `/credits/purchase_status?purchase_id=${bought.purchase_id}`,
      `/runs/${bought.run_id}`,
      `/addons/status/${bought.run_id}`,
      `/inbox_previews/invoiced_purchase_status?run_id=${bought.run_id}`,
    ])
      expectProblem(await billing.api.call('GET', `${other}${path}`, asB), 404, 'not_found');
    // The right account, the wrong kind: the purchase was not of AI credits.
    for (const path of [
      `/addons/status/${bought.run_id}`,
      `/inbox_previews/invoiced_purchase_status?run_id=${bought.run_id}`,
      `/ai_credits/invoiced_purchase_status?run_id=${bought.run_id}`,
    ])
      expectProblem(await billing.call('GET', path), 404, 'not_found');
    const forged = `${bought.purchase_id.slice(0, -3)}AAA`;
    expectProblem(
      await billing.call('GET', `/credits/purchase_status?purchase_id=${forged}`),
      404,
      'not_found',
    );
  });

  test('a long poll ends with the purchase workflow, and not before', async () => {
    const { run_id: runId } = (await billing.buyPack('pack_100')).json();
    const waiting = billing.call('GET', `/runs/${runId}?wait=20`);
    const first = await Promise.race([
      waiting,
      new Promise((done) => setTimeout(done, 300, 'waits')),
    ]);
    expect(first).toBe('waits');
    await billing.endPurchaseWorkflow(runId, 'success');
    expect((await waiting).json()).toMatchObject({ status: 'success' });
  });
});

test('the status of an invoice comes from the database while the payment provider is away', async () => {
  await billing.setAccount("billing_rail = 'card'");
  await billing.api.app.inject({
    method: 'POST',
    url: `${billing.base}/inbox_previews/payment_intent`,
    headers: { authorization: `Bearer ${billing.api.a.token}` },
    payload: { pack: 'pack_100' },
  });
  await sql`update runs set invoice_id = 'in_1'`.execute(billing.api.database);
  const status = async () =>
    (await billing.call('GET', '/inbox_previews/purchase_status?invoice_id=in_1')).json();
  expect(await status()).toEqual({ invoice_id: 'in_1', status: 'draft' });
  await sql`
    insert into run_steps (account_id, run_id, step, attempt, state, idempotency_key, input, output, started_at)
    select account_id, run_id, 'finalize', 1, 'done', 'key', '{}', '{}', now() from runs`.execute(
    billing.api.database,
  );
  expect(await status()).toEqual({ invoice_id: 'in_1', status: 'open' });
});

test('a pending purchase keeps its price when the catalogue changes', async () => {
  const { run_id: runId } = (await billing.buyPack('pack_100')).json();
  const { rows } = await sql<{ content: { purchase: object } }>`
    select content from runs where run_id = ${runId}`.execute(billing.api.database);
  expect(rows[0]!.content.purchase).toMatchObject({
    price: { amount: 2_000, currency: 'usd' },
    catalogueVersion: 1,
  });
});

test('a card purchase that outlives its wait answers 503 with its run id and goes on', async () => {
  await billing.setAccount("billing_rail = 'card'");
  // Not by `call`, which takes no 503 for an answer.
  const answer = await billing.api.app.inject({
    method: 'POST',
    url: `${billing.base}/credits/purchase`,
    headers: { authorization: `Bearer ${billing.api.a.token}` },
    payload: { llm: { quantity: 1_000 } },
  });
  const { message } = expectProblem(answer, 503, 'unavailable');
  expect(message).toMatch(/the purchase goes on; ask for its state before you buy again$/);
  const state = await billing.call('GET', `/runs/${answer.json().meta.run_id}`);
  expect(state.json()).toMatchObject({ status: 'pending' });
});
