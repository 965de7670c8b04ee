/** A purchase without a means of payment is refused before it starts. */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator, type Simulator } from '@sluice/billing-vendor/simulator/simulator';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
let simulator: Simulator;
let isClosed: boolean;

async function closeSimulator(): Promise<void> {
  if (!isClosed) await simulator.close();
  isClosed = true;
}

beforeEach(async () => {
  isClosed = false;
  simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: 'whsec_test',
    catalogue: readCatalogue(undefined),
    now: Date.now,
    random: Math.random,
  });
  const provider = createStripeProvider(
    openStripeClient({
      secretKey: 'sk_test',
      baseUrl: `http://127.0.0.1:${simulator.port}`,
      timeoutMs: 30_000,
    }),
  );
  billing = await startBilling({ provider });
});
afterEach(async () => {
  await billing.api.close();
  await closeSimulator();
});

const CALLS: readonly [string, object][] = [
  ['/inbox_previews/invoiced_purchase', { pack: 'pack_100' }],
  ['/ai_credits/invoiced_purchase', { quantity: 1_000 }],
  ['/credits/purchase', { llm: { quantity: 1_000 } }],
  ['/plans/essentials_month', {}],
];

/** The customer that a purchase, or a card, has made before. */
async function addCustomer(balance: number): Promise<string> {
  const { accountId } = billing.api.a;
  const id = 'cus_of_this_account';
  simulator.state.save('customer', {
    id,
    object: 'customer',
    balance,
    currency: 'usd',
    tax_exempt: 'none',
    invoice_settings: { default_payment_method: null },
    metadata: { account_id: String(accountId) },
  });
  await sql`
    insert into vendor_customers (account_id, customer_id) values (${accountId}, ${id})`.execute(
    billing.api.database,
  );
  return id;
}

test.each(CALLS)(
  '%s: a call without a card is 409 with the next step, and starts no purchase',
  async (path, body) => {
    for (const prepare of [() => undefined, () => addCustomer(0), () => addBalance(-999)]) {
      await prepare();
      const answer = await billing.call('POST', path, { body });
      expectProblem(answer, 409, 'payment_method_required');
      expect(answer.json().message).toContain(`POST ${billing.base}/payment_method/default`);
      expect(await billing.countPurchases()).toBe(0);
    }
  },
);

/** Less than any of the purchases costs. */
const addBalance = (balance: number) =>
  simulator.state.save('customer', {
    ...simulator.state.get('customer', 'cus_of_this_account')!,
    balance,
  });

test.each(CALLS)('%s: starts once a card is on file', async (path, body) => {
  const card = { body: { payment_method_id: 'pm_card_visa' } };
  expect((await billing.call('POST', '/payment_method/default', card)).statusCode).toBe(204);
  await billing.call('POST', path, { body });
  expect(await billing.countPurchases()).toBe(1);
});

test.each(CALLS)('%s: a purchase starts if the customer’s credit pays it', async (path, body) => {
  await addCustomer(-10_000);
  await billing.call('POST', path, { body });
  expect(await billing.countPurchases()).toBe(1);
});

test.each(CALLS)(
  '%s: starts with a card that is on file at the payment provider only',
  async (path, body) => {
    const id = await addCustomer(0);
    simulator.state.save('customer', {
      ...simulator.state.get('customer', id)!,
      invoice_settings: { default_payment_method: 'pm_1' },
    });
    await billing.call('POST', path, { body });
    expect(await billing.countPurchases()).toBe(1);
  },
);

test.each(CALLS)(
  '%s: a purchase starts if the payment provider does not answer',
  async (path, body) => {
    await closeSimulator();
    await billing.call('POST', path, { body });
    expect(await billing.countPurchases()).toBe(1);
  },
);

test('a free plan, or a call that brings its own card, needs no card on file', async () => {
  await billing.call('POST', '/plans/builder', { body: {} });
  expect(await billing.countPurchases()).toBe(1);
  await sql`update runs set status = 'failed', finished_at = now()`.execute(billing.api.database);
  await billing.call('POST', '/plans/essentials_month', {
    body: { payment_method_id: 'pm_card_visa' },
  });
  expect(await billing.countPurchases()).toBe(2);
});
