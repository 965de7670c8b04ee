/**
 * Credit taken back from a customer's balance.
 *
 * By way of the payment provider's own SDK.
 */
import { expect, test } from 'vitest';
import { newCustomer, ok, startProvider } from '../support/provider-under-test.ts';

test('credit that was taken back counts by subscription and once a key, and is zero for a deleted customer', async () => {
  const { provider, stripe } = await startProvider();
  const customerId = await newCustomer(provider, 'pm_card_visa');
  await stripe.customers.update(customerId, { balance: -900 });
  const take = (subscriptionId: string, key: string) =>
    provider.takeBackCredit(
      { customerId, subscriptionId, credit: { amount: 300, currency: 'usd' } },
      key,
    );
  await ok(take('sub_1', 'sub_1:taken_back:0'));
  await ok(take('sub_1', 'sub_1:taken_back:0'));
  await ok(take('sub_2', 'sub_2:taken_back:0'));
  expect(await ok(provider.readCreditTakenBack(customerId, 'sub_1'))).toBe(300);
  expect(await ok(provider.readCreditTakenBack(customerId, 'sub_3'))).toBe(0);
  expect(await ok(provider.readCreditTakenBack('cus_gone', 'sub_1'))).toBe(0);
  expect(await ok(provider.readCustomer(customerId))).toMatchObject({ creditAmount: 300 });
});

test('a subscription without invoices has an empty list of invoices', async () => {
  const { provider } = await startProvider();
  const customerId = await newCustomer(provider, 'pm_card_visa');
  expect(await ok(provider.listInvoicesOfSubscription(customerId, 'sub_none'))).toEqual([]);
});
