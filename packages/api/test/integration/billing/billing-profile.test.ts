/** Billing info and usage of an account. They come from the payment provider and from our own tables. */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator, type Simulator } from '@sluice/billing-vendor/simulator/simulator';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import type { PaymentProvider, ProviderResult } from '@sluice/billing-vendor/port/payment-provider';
import { debitCredits, grantCredits } from '@sluice/database/credits/credits';
import { insertProviderCustomer } from '@sluice/database/billing/provider-customers';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
let simulator: Simulator;
let provider: PaymentProvider;

beforeEach(async () => {
  simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: 'whsec_test',
    catalogue: readCatalogue(undefined),
    now: () => Date.parse('2026-03-10T12:00:00Z'),
    random: Math.random,
  });
  const baseUrl = `http://127.0.0.1:${simulator.port}`;
  provider = createStripeProvider(
    openStripeClient({ secretKey: 'sk_test', baseUrl, timeoutMs: 30_000 }),
  );
  billing = await startBilling({ provider });
});
afterEach(async () => {
  await billing.api.close();
  await simulator.close();
});

const ok = async <Value>(result: Promise<ProviderResult<Value>>): Promise<Value> => {
  const settled = await result;
  if (settled.outcome !== 'ok') throw new Error(settled.outcome);
  return settled.value;
};

/** The account's customer, on the Premium plan with two add-ons since 10 March. */
async function subscribe(): Promise<{ customerId: string; subscriptionId: string }> {
  const { accountId } = billing.api.a;
  const contact = { accountId, name: 'Acme', email: 'billing@example.com' };
  const customerId = await ok(provider.createCustomer(contact, 'customer'));
  await insertProviderCustomer(
    billing.api.database,
    accountId,
    customerId,
    billing.api.clock.nowMs,
  );
  await ok(provider.setDefaultCard(customerId, 'pm_card_visa'));
  const { subscriptionId } = await ok(
    provider.createSubscription(
      {
        customerId,
        priceId: 'price_premium_month',
        quantity: 1,
        couponCode: null,
        runId: 'run_1',
      },
      'subscribe',
    ),
  );
  const change = {
    items: [{ priceId: 'price_addon_ip_month', quantity: 2 }],
    couponCode: null,
    prorationAtMs: simulator.state.now(),
    runId: 'run_2',
  };
  await ok(provider.changeSubscription(subscriptionId, change, 'add'));
  return { customerId, subscriptionId };
}

const ADDRESS = {
  company: null,
  line1: '1 Main',
  line2: null,
  city: 'Berlin',
  state: null,
  postal_code: '10115',
  country: 'DE',
  tax_id: { type: 'eu_vat', value: 'DE123456789' },
};

test('billing info shows the plan, the subscription, the add-ons, the card, the next invoice and the amount due', async () => {
  const { customerId, subscriptionId } = await subscribe();
  await billing.setAccount(`address = '${JSON.stringify(ADDRESS)}', plan_name = 'Premium'`);
  const info = async () => (await billing.call('GET', '/info')).json().billing;
  expect(await info()).toEqual({
    rail: 'invoiced',
    plan: {
      id: 'premium_month',
      name: 'Premium',
      tier: 'premium',
      status: 'active',
      interval: 'month',
      amount: { amount: 100_000, currency: 'usd' },
    },
    subscription: {
      id: subscriptionId,
      status: 'active',
      current_period_start: '2026-03-10T12:00:00.000Z',
      current_period_end: '2026-04-10T12:00:00.000Z',
      cancel_at_period_end: false,
    },
    addons: [
      {
        sku: 'price_addon_ip_month',
        name: 'Dedicated IP address',
        quantity: 2,
        amount: { amount: 12_000, currency: 'usd' },
      },
    ],
    balance_due: { amount: 0, currency: 'usd' },
    next_invoice: { date: '2026-04-10', estimated: { amount: 112_000, currency: 'usd' } },
    payment_method: expect.objectContaining({
      card: expect.objectContaining({ last4: '4242', expired: false }),
      billing_details: { name: null, address: ADDRESS },
    }),
    billing_email: null,
    tax_ids: [ADDRESS.tax_id],
    in_flight: [],
  });
  await ok(provider.setDefaultCard(customerId, 'pm_card_chargeCustomerFail'));
  await fetch(`http://127.0.0.1:${simulator.port}/simulator/clock`, {
    method: 'POST',
    body: JSON.stringify({ advance_ms: 32 * 86_400_000 }),
  });
  expect(await info()).toMatchObject({
    subscription: { status: 'past_due' },
    balance_due: { amount: 112_000, currency: 'usd' },
  });
});

test('every role sees the subscription, and only roles that may buy see the payment method', async () => {
  await subscribe();
  const { api } = billing;
  const [key, buyer] = ['sa_live_member', 'sa_live_buyer'] as const;
  await insertToken(api.database, api.a.accountId, key, { role: 'member' });
  const buying = { role: 'billing_admin', isReadOnly: true } as const;
  await insertToken(api.database, api.a.accountId, buyer, buying);
  const info = (await billing.call('GET', '/info', { key })).json().billing;
  expect(info).toMatchObject({ subscription: { status: 'active' }, payment_method: null });
  expectProblem(await billing.call('GET', '/payment', { key }), 403, 'forbidden');
  for (const path of ['/info', '/payment']) {
    const answer = (await billing.call('GET', path, { key: buyer })).json();
    const { payment_method: method } = answer.billing ?? answer;
    expect(method).toMatchObject({ card: { last4: '4242' } });
  }
});

test('the amount due is the unpaid rest of the invoice after the customer’s credit', async () => {
  const { customerId } = await subscribe();
  const customer = simulator.state.get('customer', customerId)!;
  simulator.state.save('customer', { ...customer, balance: -30_000 });
  await ok(provider.setDefaultCard(customerId, 'pm_card_chargeCustomerFail'));
  await fetch(`http://127.0.0.1:${simulator.port}/simulator/clock`, {
    method: 'POST',
    body: JSON.stringify({ advance_ms: 32 * 86_400_000 }),
  });
  const { billing: info } = (await billing.call('GET', '/info')).json();
  expect(info).toMatchObject({ balance_due: { amount: 82_000, currency: 'usd' } });
});

test('billing info asks the payment provider for all that it needs at the same time', async () => {
  const { promise: areAllAsked, resolve } = Promise.withResolvers<void>();
  const asked = new Set<string>();
  /** Asks, once each of the three questions is there. */
  const together =
    <Given extends unknown[], Answer>(name: string, ask: (...given: Given) => Promise<Answer>) =>
    async (...given: Given): Promise<Answer> => {
      if (asked.add(name).size === 3) resolve();
      await areAllAsked;
      return ask(...given);
    };
  await billing.api.close();
  billing = await startBilling({
    provider: {
      ...provider,
      findSubscription: together('subscription', (...given) => provider.findSubscription(...given)),
      listOpenInvoices: together('invoices', (...given) => provider.listOpenInvoices(...given)),
      findDefaultCard: together('card', (...given) => provider.findDefaultCard(...given)),
    },
  });
  const { subscriptionId } = await subscribe();
  expect((await billing.call('GET', '/info')).json().billing).toMatchObject({
    subscription: { id: subscriptionId },
    payment_method: { card: { last4: '4242' } },
  });
});

test('an account without purchases has no subscription, no card and a balance of zero', async () => {
  expect((await billing.call('GET', '/info')).json().billing).toMatchObject({
    subscription: null,
    addons: [],
    next_invoice: null,
    payment_method: null,
    balance_due: { amount: 0 },
    tax_ids: [],
  });
  expect((await billing.call('GET', '/payment')).json()).toEqual({ payment_method: null });
  expect((await billing.call('GET', '/profile')).json().profile).toMatchObject({
    customer_id: null,
    credit_balance: { amount: 0, currency: 'usd' },
    net_terms_days: 0,
  });
});

test('the profile tries coupons only on request', async () => {
  const { customerId } = await subscribe();
  simulator.state.save('customer', {
    ...simulator.state.get('customer', customerId)!,
    balance: -700,
    tax_exempt: 'reverse',
  });
  const plain = (await billing.call('GET', '/profile')).json().profile;
  expect(plain).toMatchObject({
    customer_id: customerId,
    tax_exempt: 'reverse',
    credit_balance: { amount: 700, currency: 'usd' },
  });
  expect(plain).not.toHaveProperty('coupons');
  const tried = (await billing.call('GET', '/profile?coupons=FIFTY,NONE')).json().profile;
  expect(tried.coupons).toEqual([
    {
      code: 'FIFTY',
      name: '$50 off',
      percent_off: null,
      amount_off: { amount: 5_000, currency: 'usd' },
      expires_at: null,
      valid: true,
    },
    {
      code: 'NONE',
      name: null,
      percent_off: null,
      amount_off: null,
      expires_at: null,
      valid: false,
    },
  ]);
  const each = (await billing.call('GET', '/profile?coupons=FIFTY&coupons=NONE')).json().profile;
  expect(each.coupons).toEqual(tried.coupons);
  await billing.setAccount("billing_rail = 'card'");
  for (const path of ['/profile', '/payment'])
    expectProblem(await billing.call('GET', path), 422, 'rail_not_supported');
});

describe('the usage', () => {
  const addPeople = (environmentId: number, count: number) =>
    sql`insert into people (environment_id, person_id, attributes, created_at, updated_at)
        select ${environmentId}, n, '{}', now(), now() from generate_series(1, ${count}) n`.execute(
      billing.api.database,
    );

  test('is shown beside the included amount, and the overage is priced once, rounded half up', async () => {
    const { subscriptionId } = await subscribe();
    const { accountId, environmentId } = billing.api.a;
    await addPeople(environmentId, 50_005);
    await addPeople(billing.api.b.environmentId, 9);
    const account = { accountId, kind: 'llm' } as const;
    await billing.api.database.transaction().execute(async (transaction) => {
      const endsAtMs = Date.parse('2026-04-01T00:00:00Z');
      const month = { pool: 'monthly_allowance', amount: 10_000, expiresAtMs: endsAtMs } as const;
      await grantCredits(transaction, account, { ...month, key: 'month' }, billing.api.clock.nowMs);
      await debitCredits(
        transaction,
        account,
        { amount: 300, key: 'debit', hasAllowance: true },
        billing.api.clock.nowMs,
      );
    });
    const meters = [
      { meter: 'profiles', included: 50_000, used: 50_005, overage: 5, unit_amount_decimal: '0.9' },
      { meter: 'inbox_previews', included: 200, used: 0, overage: 0, unit_amount_decimal: '0' },
      { meter: 'llm', included: 10_000, used: 300, overage: 0, unit_amount_decimal: '0' },
      { meter: 'builder', included: 1_000, used: 0, overage: 0, unit_amount_decimal: '0' },
    ];
    const period = { start: '2026-03-10T12:00:00.000Z', end: '2026-04-10T12:00:00.000Z' };
    expect((await billing.call('GET', '/usage_profile')).json().profile).toMatchObject({
      status: 'active',
      billing_period: period,
      meters,
      // 5 × 0.9 = 4.5
      estimated_total: { amount: 5, currency: 'usd' },
      spend_limit: null,
    });
    const estimate = await billing.call(
      'GET',
      `/overage_estimate?subscription_id=${subscriptionId}`,
    );
    expect(estimate.json()).toMatchObject({
      subscription_id: subscriptionId,
      period,
      lines: meters.map((meter) => ({
        ...meter,
        amount: { amount: meter.overage === 0 ? 0 : 5, currency: 'usd' },
      })),
      total: { amount: 5, currency: 'usd' },
      is_estimate: true,
    });
  });

  test('is estimated for the account’s own subscription, by invoice', async () => {
    const { subscriptionId } = await subscribe();
    const estimate = (id: string) => billing.call('GET', `/overage_estimate?subscription_id=${id}`);
    expectProblem(await estimate('sub_none'), 404, 'not_found');
    expect((await billing.call('GET', '/overage_estimate')).json().errors[0].field).toBe(
      'subscription_id',
    );
    const { accountId, token } = billing.api.b;
    await sql`update accounts set billing_rail = 'invoiced' where account_id = ${accountId}`.execute(
      billing.api.database,
    );
    expectProblem(
      await billing.api.call(
        'GET',
        `/v1/accounts/${accountId}/billing/overage_estimate?subscription_id=${subscriptionId}`,
        { key: token },
      ),
      404,
      'not_found',
    );
    await billing.setAccount("billing_rail = 'card'");
    expectProblem(await estimate(subscriptionId), 422, 'rail_not_supported');
  });
});

test('a coupon code that is too long is refused with the name of its parameter', async () => {
  const answer = await billing.call('GET', `/profile?coupons=FIFTY,${'x'.repeat(101)}`);
  const { errors } = expectProblem(answer, 422, 'validation_failed');
  expect(errors).toMatchObject([{ reason: 'too_long', source: { parameter: 'coupons' } }]);
});
