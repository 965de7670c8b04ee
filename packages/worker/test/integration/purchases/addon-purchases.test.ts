/** Add-ons to the subscription of a plan: bought as one purchase, charged once. */
import { cancelSubscription } from '@sluice/billing-vendor/simulator/objects/simulator-subscriptions';
import { findPurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { CATALOGUE } from '../support/purchase-world.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const subscribed = async () => {
  const accountId = await world.addAccount('pm_card_visa', 'card');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  return accountId;
};

test('add-ons are added and the prorated amount is charged at once', async () => {
  const accountId = await subscribed();
  const workflow = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  expect(workflow).toMatchObject({
    status: 'success',
    result: { items: [{ sku: 'price_addon_ip_month', result: 'added' }] },
  });
  expect(world.succeeded().at(-1)).toMatchObject({
    runId: workflow.runId,
    amount: workflow.result?.charged?.amount,
  });
});

test('add-ons that are held already cost no money and make no charge', async () => {
  const accountId = await subscribed();
  await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  const charges = world.charges().length;
  const workflow = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  expect(workflow).toMatchObject({
    status: 'success',
    result: { charged: null, items: [{ result: 'already_present' }] },
  });
  expect(world.charges()).toHaveLength(charges);
});

test.each([
  ['price_addon_ip_year', 'other_billing_cycle'],
  ['price_addon_ip_2024', 'retired'],
])('the add-on %s is refused as %s, and the others are not charged either', async (sku, reason) => {
  const accountId = await subscribed();
  const charges = world.charges().length;
  const workflow = await world.finish(await world.addons(accountId, 'price_addon_sms_month', sku));
  expect(workflow).toMatchObject({ status: 'refused', result: { items: [{ sku, reason }] } });
  expect(world.charges()).toHaveLength(charges);
});

test('add-ons that are declined leave the subscription as it was', async () => {
  const accountId = await subscribed();
  const customer = await world.provider.findCustomer(accountId, `billing-${accountId}@example.com`);
  const customerId = customer.outcome === 'ok' ? customer.value! : '';
  const before = await world.provider.findSubscription(customerId);
  await world.provider.setDefaultCard(customerId, 'pm_card_chargeCustomerFail');
  const workflow = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  expect(workflow).toMatchObject({ status: 'declined' });
  expect(await world.provider.findSubscription(customerId)).toEqual(before);
});

test.each(['error', 'error_after', 'timeout_after', 'reset_after'] as const)(
  'an add-on with %s on the way is charged once',
  async (kind) => {
    const accountId = await subscribed();
    world.simulator.faults.add({ kind, method: 'POST', path: '/subscriptions/', count: 1 });
    const workflow = await world.finishHastily(
      await world.addons(accountId, 'price_addon_ip_month'),
    );
    expect(workflow).toMatchObject({ status: 'success' });
    expect(world.succeeded().filter((charge) => charge.runId === workflow.runId)).toHaveLength(1);
  },
);

const untilRenewalMs = async (accountId: number): Promise<number> => {
  const customer = await world.provider.findCustomer(accountId, `billing-${accountId}@example.com`);
  const found = await world.provider.findSubscription(
    customer.outcome === 'ok' ? customer.value! : '',
  );
  const subscription = found.outcome === 'ok' ? found.value! : undefined;
  return subscription!.currentPeriodEndMs - world.simulator.state.now();
};

/** The payment provider has done the change, and its answer was lost. */
async function addonsWithoutAnswer(accountId: number) {
  const path = '/subscriptions/';
  world.simulator.faults.add({ kind: 'timeout_after', method: 'POST', path, count: 1 });
  const workflow = await world.addons(accountId, 'price_addon_ip_month');
  expect(await world.advance(workflow, { provider: world.hastyProvider })).toBe('waiting');
  return workflow;
}

test('add-ons whose purchase is looked up after a renewal report their own invoice, not the renewal’s', async () => {
  const accountId = await subscribed();
  // The last hour of the month: the rest of it costs little, the next month costs all.
  world.moveClocks((await untilRenewalMs(accountId)) - 3_600_000);
  const workflow = await addonsWithoutAnswer(accountId);
  const [charge] = world.succeeded().filter((each) => each.runId === workflow.runId);
  // The payment provider has forgotten the key, and has renewed meanwhile.
  world.moveClocks(25 * 3_600_000);
  expect(world.succeeded().at(-1)).toMatchObject({ runId: null });
  const charges = world.charges().length;
  expect(await world.finish(workflow)).toMatchObject({
    status: 'success',
    result: { charged: { amount: charge!.amount, currency: 'usd' }, invoiceId: charge!.invoice },
  });
  expect(charge!.amount).toBeLessThan(100);
  expect(world.charges()).toHaveLength(charges);
});

test('add-ons that were taken away again at the payment provider meanwhile are not bought a second time', async () => {
  const accountId = await subscribed();
  const workflow = await addonsWithoutAnswer(accountId);
  const charges = world.charges().length;
  for (const subscription of world.simulator.state.list('subscription'))
    cancelSubscription(world.simulator.state, subscription);
  world.moveClocks(25 * 3_600_000);
  expect(await world.finish(workflow)).toMatchObject({
    status: 'success',
    result: { charged: { amount: 6_000 } },
  });
  expect(world.charges()).toHaveLength(charges);
});

test('add-ons of an account without a subscription are refused', async () => {
  const workflow = await world.finish(
    await world.addons(await world.addAccount('pm_card_visa', 'card'), 'price_addon_ip_month'),
  );
  expect(workflow).toMatchObject({
    status: 'refused',
    message: expect.stringMatching(/no subscription/),
  });
});

describe('an add-on whose price was taken out of the catalogue', () => {
  const OTHER_PRICE = 'price_addon_ip_2024';
  /** The price that is held is gone, and another one of the same add-on is sold. */
  const catalogue = {
    ...CATALOGUE,
    addons: CATALOGUE.addons.flatMap((addon) => {
      if (addon.sku === 'price_addon_ip_month') return [];
      return addon.sku === OTHER_PRICE ? [{ ...addon, isRetired: false }] : [addon];
    }),
  };
  const buy = async (accountId: number, sku: string) => {
    const workflow = await world.addons(accountId, sku);
    await world.advance(workflow, { catalogue });
    return findPurchaseWorkflow(world.database, accountId, workflow.runId);
  };
  let accountId: number;
  let chargeCount: number;
  beforeEach(async () => {
    accountId = await subscribed();
    await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
    chargeCount = world.charges().length;
  });

  test('is not charged a second time at another price', async () => {
    expect(await buy(accountId, OTHER_PRICE)).toMatchObject({
      status: 'refused',
      result: { items: [{ sku: OTHER_PRICE, reason: 'other_price_held' }] },
    });
    expect(world.charges()).toHaveLength(chargeCount);
    expect(await buy(accountId, 'price_addon_sms_month')).toMatchObject({ status: 'success' });
  });

  test('nor if its purchase is from before its add-on was kept: then every add-on is refused', async () => {
    await sql`update runs set content = content - 'prices'`.execute(world.database);
    for (const sku of [OTHER_PRICE, 'price_addon_sms_month'])
      expect(await buy(accountId, sku)).toMatchObject({
        status: 'refused',
        message: expect.stringMatching(/may be this add-on/),
        result: { refusal: 'unknown_addon_held', charged: null },
      });
    expect(world.charges()).toHaveLength(chargeCount);
  });
});
