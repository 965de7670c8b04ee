/** Subscriptions by way of the payment provider's own SDK, against the simulator. */
import { describe, expect, test } from 'vitest';
import { collectEverything, listCharges } from '../../src/simulator/simulator-controls.ts';
import { newCustomer, ok, startProvider } from '../support/provider-under-test.ts';

describe('a subscription', () => {
  const start = async (card = 'pm_card_visa', couponCode: string | null = null) => {
    const world = await startProvider();
    const customerId = await newCustomer(world.provider, card);
    const create = () =>
      world.provider.createSubscription(
        { customerId, priceId: 'price_premium_month', quantity: 1, couponCode, runId: 'run_s' },
        'run_s:subscribe:1',
      );
    return { ...world, customerId, create };
  };

  test('is paid at once, with its coupon', async () => {
    const { create, simulator } = await start('pm_card_visa', 'WELCOME20');
    expect(await ok(create())).toMatchObject({
      status: 'active',
      interval: 'month',
      runId: 'run_s',
      latestInvoiceTotal: { amount: 80_000, currency: 'usd' },
    });
    expect(listCharges(simulator.state)).toMatchObject([{ amount: 80_000, runId: 'run_s' }]);
  });

  test('that is declined does not exist, and leaves nothing to collect', async () => {
    const { create, provider, customerId, simulator } = await start('pm_card_chargeCustomerFail');
    expect(await create()).toMatchObject({ outcome: 'declined' });
    expect(await ok(provider.findSubscription(customerId))).toBeNull();
    await ok(provider.setDefaultCard(customerId, 'pm_card_visa'));
    expect(collectEverything(simulator.state)).toEqual([]);
  });

  test('I6: takes an add-on for exactly what its preview said, at the same moment', async () => {
    const { create, provider, simulator } = await start();
    const subscription = await ok(create());
    simulator.state.advanceClock(11 * 24 * 3_600_000 + 12_345_678);
    const change = {
      items: [{ priceId: 'price_addon_ip_month', quantity: 1 }],
      couponCode: null,
      prorationAtMs: simulator.state.now(),
      runId: 'run_a',
    };
    const preview = await ok(provider.previewChange(subscription.subscriptionId, change));
    simulator.state.advanceClock(3_600_000);
    const changed = await ok(
      provider.changeSubscription(subscription.subscriptionId, change, 'run_a:apply:1'),
    );
    expect(changed.latestInvoiceTotal).toEqual(preview);
    expect(preview.amount).toBeGreaterThan(0);
    expect(preview.amount).toBeLessThan(6_000);
    expect(listCharges(simulator.state).at(-1)).toMatchObject({
      amount: preview.amount,
      runId: 'run_a',
    });
    expect(changed.items.map((item) => [item.priceId, item.runId])).toEqual([
      ['price_premium_month', 'run_s'],
      ['price_addon_ip_month', 'run_a'],
    ]);
  });

  test('whose change is declined stays as it was', async () => {
    const { create, provider, customerId } = await start();
    const before = await ok(create());
    await ok(provider.setDefaultCard(customerId, 'pm_card_chargeCustomerFail'));
    const change = {
      items: [{ priceId: 'price_addon_ip_month', quantity: 1 }],
      couponCode: null,
      prorationAtMs: Date.now(),
      runId: 'run_a',
    };
    expect(await provider.changeSubscription(before.subscriptionId, change, 'a')).toMatchObject({
      outcome: 'declined',
    });
    expect(await ok(provider.findSubscription(customerId))).toEqual(before);
  });

  test.each(['incomplete_expired', 'incomplete', 'unpaid', 'paused'])(
    'a newer subscription that is %s does not hide the one in force',
    async (status) => {
      const { provider, simulator, stripe } = await startProvider();
      const customer = await newCustomer(provider, 'pm_card_visa');
      const items = [{ price: 'price_essentials_month' }];
      const inForce = await stripe.subscriptions.create({ customer, items });
      const other = await stripe.subscriptions.create({ customer, items });
      simulator.state.save('subscription', {
        ...simulator.state.get('subscription', other.id)!,
        status,
      });
      expect(await ok(provider.findSubscription(customer))).toMatchObject({
        subscriptionId: inForce.id,
      });
      await ok(provider.cancelSubscription(inForce.id, 'end'));
      const left = status === 'incomplete_expired' ? null : { subscriptionId: other.id };
      const found = await ok(provider.findSubscription(customer));
      expect(found && { subscriptionId: found.subscriptionId }).toEqual(left);
    },
  );
});
