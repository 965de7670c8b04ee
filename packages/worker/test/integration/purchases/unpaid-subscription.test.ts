/** A subscription with an unpaid present period takes no purchase: the period's rest would reduce the price. */
import { itemsOf } from '@sluice/billing-vendor/simulator/objects/simulator-items';
import { beforeEach, expect, test } from 'vitest';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

const DAY_MS = 86_400_000;

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

/** On Premium, of which the second month is not paid. */
async function pastDue() {
  const accountId = await world.addAccount('pm_card_visa', 'card');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.putCard(accountId, 'pm_card_chargeCustomerFail');
  world.moveClocks(32 * DAY_MS);
  expect(world.simulator.state.list('subscription')).toMatchObject([{ status: 'past_due' }]);
  // Another card, which the payment provider has not tried yet.
  await world.putCard(accountId, 'pm_card_visa');
  return accountId;
}

const pricesOf = () =>
  world.simulator.state
    .list('subscription')
    .map((each) => itemsOf(each).map((item) => item.price.id));

test('a plan is not exchanged while it is past due, and no unpaid time becomes a credit', async () => {
  const accountId = await pastDue();
  const workflow = await world.finish(await world.checkout(accountId, 'essentials_month'));
  expect(workflow).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(/pay the open invoice first/),
    result: { charged: null, refusal: 'payment_past_due' },
  });
  expect(pricesOf()).toEqual([['price_premium_month']]);
  expect(world.simulator.state.list('customer')).toMatchObject([{ balance: 0 }]);
  // Once the payment provider has its money, it is.
  world.moveClocks(4 * DAY_MS);
  expect(await world.finish(await world.checkout(accountId, 'essentials_month'))).toMatchObject({
    status: 'success',
  });
  expect(pricesOf()).toEqual([['price_essentials_month']]);
});

test('no add-on is added while it is past due; one that is held already is still no news', async () => {
  const accountId = await pastDue();
  const charges = world.charges().length;
  const workflow = await world.finish(await world.addons(accountId, 'price_addon_sms_month'));
  expect(workflow).toMatchObject({
    status: 'refused',
    message: expect.stringMatching(/pay the open invoice first/),
    result: { charged: null, refusal: 'payment_past_due' },
  });
  expect(world.charges()).toHaveLength(charges);
  expect(pricesOf()).toEqual([['price_premium_month']]);
  world.moveClocks(4 * DAY_MS);
  expect(await world.finish(await world.addons(accountId, 'price_addon_sms_month'))).toMatchObject({
    status: 'success',
  });
});

test('a plan is not exchanged while a bank still pays for it', async () => {
  const accountId = await world.addAccount('pm_usBankAccount_success', 'card');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  expect(world.charges()).toMatchObject([{ status: 'pending' }]);
  const workflow = await world.finish(await world.checkout(accountId, 'essentials_month'));
  expect(workflow).toMatchObject({ status: 'failed', result: { refusal: 'payment_pending' } });
  expect(pricesOf()).toEqual([['price_premium_month']]);
});
