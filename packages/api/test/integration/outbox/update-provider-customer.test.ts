/**
 * An account's invoice data reaches the payment provider by the outbox. In the end the provider has the present values.
 */
import type { Simulator } from '@sluice/billing-vendor/simulator/simulator';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import { insertProviderCustomer } from '@sluice/database/billing/provider-customers';
import type { Stripe } from 'stripe';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRelay } from '../../../src/outbox/outbox-relay.ts';
import { SECRET, startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { startProviderBeside } from '../support/provider-under-test.ts';

let api: ApiUnderTest;
let simulator: Simulator;
let stripe: Stripe;
let provider: PaymentProvider;
let failures: unknown[];
beforeEach(async () => {
  api = await startApi();
  ({ simulator, stripe, provider } = await startProviderBeside(api));
  failures = [];
});
afterEach(async () => {
  await simulator.close();
  await api.close();
});

const relayTo = (told: Pick<PaymentProvider, 'updateCustomer'>) =>
  createRelay({
    database: api.database,
    mailer: { send: async () => {} },
    analytics: undefined,
    provider: { ...provider, ...told },
    providerTimeoutMs: 5_000,
    secret: SECRET,
    now: () => api.clock.nowMs,
    onFailure: (_entry, error) => failures.push(error),
  });

async function makeCustomer(): Promise<string> {
  const { accountId } = api.a;
  const made = await provider.createCustomer(
    { accountId, name: 'A', email: 'a@example.com' },
    'make',
  );
  if (made.outcome !== 'ok') throw new Error(made.outcome);
  await api.database
    .transaction()
    .execute((transaction) =>
      insertProviderCustomer(transaction, accountId, made.value, api.clock.nowMs),
    );
  return made.value;
}

const ADDRESS = {
  company: 'Acme Limited',
  line1: '1 Main Street',
  line2: 'Floor 2',
  city: 'Springfield',
  state: 'IL',
  postal_code: '62701',
  country: 'US',
};
const setAddress = (change: object = {}) =>
  api.call('POST', `/v1/accounts/${api.a.accountId}/address`, {
    key: api.a.token,
    body: { address: { ...ADDRESS, ...change } },
  });
const setAccount = (account: object) =>
  api.call('PUT', `/v1/accounts/${api.a.accountId}`, { key: api.a.token, body: { account } });
const readCustomer = (id: string) => stripe.customers.retrieve(id) as Promise<Stripe.Customer>;
const waitingCount = async () => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from outbox
     where topic = 'vendor.customer' and next_attempt_at is not null`.execute(api.database);
  return rows[0]!.count;
};

test('a new tax id replaces the old one, and a refused tax id does not block the other changes', async () => {
  const customer = await makeCustomer();
  const relay = relayTo(provider);
  const taxIdsAfter = async (tax_id: object | null, line1: string) => {
    expect((await setAddress({ tax_id, line1 })).statusCode).toBeLessThan(300);
    await relay();
    expect((await readCustomer(customer)).address?.line1).toBe(line1);
    const { data } = await stripe.taxIds.list({ owner: { type: 'customer', customer } });
    return data.map(({ type, value }) => [type, value]);
  };
  expect(await taxIdsAfter({ type: 'us_ein', value: '12-3456789' }, '1')).toEqual([
    ['us_ein', '12-3456789'],
  ]);
  expect(await taxIdsAfter({ type: 'us_ein', value: '98-7654321' }, '2')).toEqual([
    ['us_ein', '98-7654321'],
  ]);
  expect(await taxIdsAfter({ type: 'us_ein', value: '98-7654321' }, '3')).toHaveLength(1);
  expect(await taxIdsAfter({ type: 'us_ein', value: '1' }, '4')).toEqual([]);
  expect(await taxIdsAfter(null, '5')).toEqual([]);
  expect(failures).toEqual([]);
  expect(await waitingCount()).toBe(0);
});

test('a new address and billing email reach the payment provider, and removed fields are unset', async () => {
  const customer = await makeCustomer();
  const relay = relayTo(provider);
  await relay();
  await setAddress();
  await setAccount({ billing_email: 'billing@acme.example' });
  await relay();
  expect(await readCustomer(customer)).toMatchObject({
    name: 'Acme Limited',
    email: 'billing@acme.example',
    address: {
      line1: '1 Main Street',
      line2: 'Floor 2',
      city: 'Springfield',
      state: 'IL',
      postal_code: '62701',
      country: 'US',
    },
  });
  await setAddress({ line2: null, company: null });
  await relay();
  const after = await readCustomer(customer);
  expect(after.address?.line2).toBeNull();
  expect(after.name).toBe('key_of_a');
  expect(failures).toEqual([]);
  expect(await waitingCount()).toBe(0);
});

test('a change that is not on invoices, or that changes no value, adds no entry to the outbox', async () => {
  await setAccount({ timezone: 'Europe/Berlin', website: 'https://acme.example' });
  await setAddress();
  expect(await waitingCount()).toBe(1);
  await setAddress();
  expect(await waitingCount()).toBe(1);
});

test('a change before the customer exists reaches the payment provider once it exists', async () => {
  await setAddress();
  const relay = relayTo(provider);
  await relay();
  const customer = await makeCustomer();
  await relay();
  expect((await readCustomer(customer)).address?.city).toBe('Springfield');
});

test('a change waits while the payment provider is away and reaches it later', async () => {
  const customer = await makeCustomer();
  await setAddress();
  const away = createStripeProvider(
    openStripeClient({ secretKey: 'sk_test', baseUrl: 'http://127.0.0.1:9', timeoutMs: 200 }),
  );
  await relayTo(away)();
  expect(failures.length).toBeGreaterThan(0);
  expect(await waitingCount()).toBe(2);
  api.clock.nowMs += 600_000;
  await relayTo(provider)();
  expect((await readCustomer(customer)).address?.city).toBe('Springfield');
  expect(await waitingCount()).toBe(0);
});

test('words that overtake each other on the way leave the newest at the payment provider', async () => {
  const customer = await makeCustomer();
  await relayTo(provider)();
  await setAddress({ city: 'Older' });
  let isHeld = true;
  // The first update is slow: a newer one is sent, whole, before it arrives.
  const slow: Pick<PaymentProvider, 'updateCustomer'> = {
    async updateCustomer(...rest) {
      if (isHeld) {
        isHeld = false;
        await setAddress({ city: 'Newest' });
        await relayTo(provider)();
      }
      return provider.updateCustomer(...rest);
    },
  };
  await relayTo(slow)();
  expect((await readCustomer(customer)).address?.city).toBe('Newest');
});
