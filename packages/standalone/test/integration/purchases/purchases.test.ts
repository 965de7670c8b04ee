/**
 * Purchases through real processes, paid at the simulated payment provider.
 *
 * They stand in one file because `npm run verify` compares the ledgers of all of them at its end.
 */
import { fileURLToPath } from 'node:url';
import { refundCharge } from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { runProgramUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { verifyDelivery } from '@sluice/verify';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  CARD,
  INVOICED,
  startPurchaseServices,
  WAIT,
  type PurchaseServices,
} from './purchase-services.ts';
import { finalizeUnusedTime, startReceiver } from './purchase-ends.ts';

/** `npm run verify` alone is run seven times. */
const TEST_TIMEOUT_MS = 480_000;

let services: PurchaseServices;
beforeAll(async () => {
  services = await startPurchaseServices(testRedisUrl());
}, TEST_TIMEOUT_MS);
afterAll(() => services.close());

test(
  'invoiced: 200 starts at once of two packs are one charge of the card on file',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const set = await services.call(INVOICED, '/payment_method/default', {
      payment_method_id: 'pm_card_visa',
    });
    expect(set.status).toBe(204);
    expect((await services.call(INVOICED, '/payment')).body).toMatchObject({
      payment_method: { card: { brand: 'visa', last4: '4242', expired: false } },
    });
    // The purchase may not end before all have asked.
    const haveAsked = Promise.withResolvers<void>();
    services.simulator.faults.add({
      kind: 'slow',
      method: 'POST',
      path: '/v1/invoices',
      count: 1,
      until: haveAsked.promise,
    });
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        services.call(INVOICED, '/inbox_previews/invoiced_purchase', {
          pack: index % 2 ? 'pack_100' : 'pack_500',
        }),
      ),
    ).finally(() => haveAsked.resolve());
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(100);
    expect(answers.filter((answer) => answer.status === 409)).toHaveLength(100);
    const ids = new Set(
      answers.flatMap(({ status, body }) => (status === 200 ? [body.run_id] : [])),
    );
    expect(ids.size).toBe(1);
    const [runId = ''] = ids;
    expect(await services.untilEnded(INVOICED, runId)).toMatchObject({ status: 'success' });
    expect(services.paid()).toMatchObject([{ runId, status: 'succeeded' }]);
    const status = await services.call(
      INVOICED,
      `/inbox_previews/invoiced_purchase_status?run_id=${runId}`,
    );
    expect(status.body).toEqual({ run_id: runId, status: 'success', message: null });
  },
);

test(
  'card: the customer pays the invoice, the payment provider reports it, and the credits are granted',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const bought = await services.call(CARD, '/credits/purchase', { llm: { quantity: 2_000 } });
    expect(bought.body).toMatchObject({
      rail: 'card',
      run_id: null,
      payment: { amount: { amount: 2_000, currency: 'usd' } },
    });
    const { purchase_id: handle, payment } = bought.body as unknown as {
      purchase_id: string;
      payment: { client_secret: string; invoice_id: string };
    };
    const status = () => services.call(CARD, `/credits/purchase_status?purchase_id=${handle}`);
    expect((await status()).body).toMatchObject({ status: 'open', state: 'pending' });
    const intent = payment.client_secret.split('_secret_')[0];
    await fetch(`${services.settings['SIMULATOR_URL']}/v1/payment_intents/${intent}/confirm`, {
      method: 'POST',
      headers: { authorization: 'Bearer pk_test' },
      body: new URLSearchParams({
        payment_method: 'pm_card_visa',
        client_secret: payment.client_secret,
      }),
    });
    await vi.waitFor(
      async () =>
        expect((await status()).body).toMatchObject({
          status: 'granted',
          state: 'succeeded',
          balance: { pools: [{}, {}, { pool: 'purchased', granted: 2_000, remaining: 2_000 }] },
        }),
      WAIT,
    );
    const old = await services.call(
      CARD,
      `/ai_credits/purchase_status?invoice_id=${payment.invoice_id}`,
    );
    expect(old.body).toEqual({ invoice_id: payment.invoice_id, status: 'granted' });
    expect(old.headers.get('deprecation')).toBe('@1767225600');
    // Refunded at the payment provider, which sends an event: the credits are taken back.
    const charge = services.paid().find(({ invoice }) => invoice === payment.invoice_id);
    refundCharge(services.simulator.state, charge!.id, undefined);
    await vi.waitFor(
      async () =>
        expect((await status()).body).toMatchObject({
          balance: { pools: [{}, {}, { pool: 'purchased', remaining: 0 }] },
        }),
      WAIT,
    );
  },
);

test(
  'I24: a plan whose checkout ends within its wait is answered with its subscription, then takes an add-on',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    await services.call(CARD, '/payment_method/default', { payment_method_id: 'pm_card_visa' });
    const bought = await services.call(CARD, '/plans/essentials_month', {
      coupon_code: 'WELCOME20',
    });
    expect(bought).toMatchObject({
      status: 200,
      body: {
        subscription: {
          plan_id: 'essentials_month',
          status: 'active',
          coupon_code: 'WELCOME20',
          amount: { amount: 8_000, currency: 'usd' },
        },
      },
    });
    const runId = bought.body.run_id;
    const checkout = (query: string) =>
      services.call(CARD, `/plans/checkout_status?run_id=${runId}&${query}`);
    expect((await checkout('plan_id=essentials_month')).body).toMatchObject({ status: 'success' });
    for (const other of ['plan_id=premium_month', 'plan_id=essentials_month&coupon_code=FIFTY']) {
      const { body } = await checkout(other);
      expect(body).toMatchObject({ status: 'conflict' });
      expect(body).not.toHaveProperty('subscription');
    }
    const added = await services.call(CARD, '/addons', { skus: { add: ['price_addon_ip_month'] } });
    expect(await services.untilEnded(CARD, added.body.run_id)).toMatchObject({
      status: 'success',
    });
    expect((await services.call(CARD, '/info')).body).toMatchObject({
      billing: {
        plan: { id: 'essentials_month', tier: 'essentials', status: 'active' },
        subscription: { status: 'active' },
        addons: [{ sku: 'price_addon_ip_month', quantity: 1 }],
        in_flight: [],
      },
    });
  },
);

test(
  'a plan at a changed amount is 409 `amount_changed` and charges no money; at the right amount it is bought',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const before = services.paid().length;
    const buy = (amount: number) =>
      services.call(INVOICED, '/plans/essentials_month', {
        coupon_code: 'FIFTY',
        expected_amount: { amount, currency: 'usd' },
      });
    const refused = await buy(4_999);
    expect(refused).toMatchObject({
      status: 409,
      body: {
        code: 'amount_changed',
        message:
          'The amount is not the one that was shown; the account was not charged. Buy again at the new amount.',
        meta: { run_id: expect.stringMatching(/^run_/) },
      },
    });
    const { run_id: runId } = (refused.body as unknown as { meta: { run_id: string } }).meta;
    expect(await services.untilEnded(INVOICED, runId)).toMatchObject({
      status: 'failed',
      charged: null,
    });
    expect(services.paid()).toHaveLength(before);
    expect((await services.call(INVOICED, '/info')).body).toMatchObject({
      billing: { subscription: null },
    });
    const bought = await buy(5_000);
    expect(bought).toMatchObject({
      status: 200,
      body: { subscription: { amount: { amount: 5_000, currency: 'usd' } } },
    });
    expect(services.paid()).toHaveLength(before + 1);
  },
);

test(
  'a worker that is killed in the middle of a purchase leaves one charge and one grant',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    // The payment provider takes the money and its answer does not arrive.
    services.simulator.faults.add({ kind: 'timeout_after', path: '/pay', count: 1 });
    const before = services.paid().length;
    const bought = await services.call(INVOICED, '/credits/purchase', {
      builder: { quantity: 100 },
    });
    await vi.waitFor(() => expect(services.paid()).toHaveLength(before + 1), WAIT);
    await services.replaceWorker({ VENDOR_TIMEOUT_MS: '1000' });
    // The payment provider's own event settles it, long before the lease of the dead worker ends.
    const runId = bought.body.run_id;
    expect(await services.untilEnded(INVOICED, runId)).toMatchObject({ status: 'success' });
    expect(services.paid().filter((charge) => charge.runId === runId)).toHaveLength(1);
    expect((await services.call(INVOICED, '/credits/balance/builder')).body).toMatchObject({
      total_available: expect.any(Number),
      pools: [{}, {}, { pool: 'purchased', granted: 100 }],
    });
  },
);

test(
  'a purchase whose worker is killed while the payment provider is silent goes on within 40 s, and is charged once',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const asked = services.simulator.faults.meet({ kind: 'timeout', path: '/finalize' });
    const bought = await services.call(INVOICED, '/credits/purchase', { llm: { quantity: 3_000 } });
    await asked;
    // It causes no event, since it had no effect.
    await services.replaceWorker({});
    const killedAtMs = performance.now();
    const runId = bought.body.run_id;
    expect(await services.untilEnded(INVOICED, runId)).toMatchObject({ status: 'success' });
    expect(performance.now() - killedAtMs).toBeLessThan(40_000);
    expect(services.paid().filter((charge) => charge.runId === runId)).toHaveLength(1);
  },
);

test(
  'the end of a purchase is sent by a signed call to the webhooks of the account that chose it, and of no other',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const { received, url } = await startReceiver();
    const made = await fetch(`${services.api.url}/v1/reporting_webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEMO.appKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'Purchases',
        endpoint: url,
        events: ['purchase_ended'],
      }),
    });
    expect(made.status).toBe(200);
    const elsewhere = await services.call(INVOICED, '/credits/purchase', {
      llm: { quantity: 1_000 },
    });
    await services.untilEnded(INVOICED, elsewhere.body.run_id);
    const refused = await services.call(CARD, '/addons', {
      skus: { add: ['price_addon_ip_2024'] },
    });
    const ended = await services.untilEnded(CARD, refused.body.run_id);
    await vi.waitFor(() => expect(received).toHaveLength(1), WAIT);
    const [delivery] = received;
    expect(verifyDelivery(delivery!.headers, delivery!.body, DEMO.signingKey)).toBe(true);
    expect(JSON.parse(delivery!.body)).toMatchObject({
      event_id: refused.body.run_id.slice('run_'.length),
      object_type: 'purchase',
      metric: 'ended',
      data: {
        account_id: CARD.accountId,
        run_id: refused.body.run_id,
        kind: 'addons',
        status: 'refused',
        message: ended['message'],
        charged: null,
      },
    });
  },
);

test(
  '`npm run verify` passes for these ledgers, and finds each change in either ledger',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const program = fileURLToPath(new URL('../../../../../scripts/verify.ts', import.meta.url));
    const verify = () => runProgramUnderTest(program, services.settings);
    const agreed = await verify();
    expect(agreed.output).toMatch(/ok {5}payment provider: 10 purchases, \d+ invoices/);
    expect(agreed.code).toBe(0);
    const [first] = services.paid();
    const invoice = services.simulator.state.get('invoice', first?.invoice);
    services.simulator.state.save('invoice', { ...invoice!, status: 'open' });
    const differing = await verify();
    expect(differing.code).toBe(1);
    expect(differing.output).toContain(`its invoice ${first?.invoice} is open`);
    expect(differing.output).toMatch(/FAILED payment provider/);
    services.simulator.state.save('invoice', invoice!);
    expect((await verify()).code).toBe(0);
    // As if the payment provider gave back a list price that was never paid.
    const given = finalizeUnusedTime(services.simulator.state, String(invoice!['customer']));
    const fromNothing = await verify();
    expect(fromNothing.code).toBe(1);
    expect(fromNothing.output).toContain(
      `invoice ${given}: gives back 10001 for unused time of price_premium_month, for which 0 was paid`,
    );
    services.simulator.state.delete('invoice', given);
    // As if the payment provider's event had never come.
    const charge = services.simulator.state.get('charge', first?.id)!;
    const { amount } = charge;
    services.simulator.state.save('charge', { ...charge, amount_refunded: amount });
    const refund = { id: 're_lost', object: 'refund', charge: charge.id, amount };
    services.simulator.state.save('refund', refund);
    const refunded = await verify();
    expect(refunded.code).toBe(1);
    expect(refunded.output).toContain(
      `0 of its price was refunded here, ${String(amount)} at the payment provider`,
    );
    services.simulator.state.save('charge', charge);
    expect((await verify()).code).toBe(0);
    expect(
      await runProgramUnderTest(program, {
        ...services.settings,
        SIMULATOR_URL: 'http://127.0.0.1:9',
      }),
    ).toMatchObject({
      code: 2,
      output: expect.stringContaining('the payment provider does not answer'),
    });
  },
);
