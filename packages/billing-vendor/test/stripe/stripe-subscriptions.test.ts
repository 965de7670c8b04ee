/** Subscriptions by way of the payment provider's own SDK, against the simulator. */
import { describe, expect, test } from 'vitest';
import { compareProrations } from '@sluice/domain/billing/unused-time';
import { renewSubscriptions } from '../../src/simulator/objects/simulator-renewals.ts';
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

  test('that is declined does not exist and leaves no invoice to collect', async () => {
    const { create, provider, customerId, simulator } = await start('pm_card_chargeCustomerFail');
    expect(await create()).toMatchObject({ outcome: 'declined' });
    expect(await ok(provider.findSubscription(customerId))).toBeNull();
    await ok(provider.setDefaultCard(customerId, 'pm_card_visa'));
    expect(collectEverything(simulator.state)).toEqual([]);
  });

  test('I6: takes for an add-on exactly the amount of its preview at the same moment', async () => {
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
    expect(preview).toMatchObject(changed.latestInvoiceTotal!);
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

describe('unused time of a subscription', () => {
  const PREMIUM = 'price_premium_month';
  const DAY_MS = 86_400_000;

  /** The price is 100,000 a month; this is the return of a change to the Builder plan, which is free. */
  async function leave(
    coupon: { percent_off?: number; amount_off?: number; duration?: string } | null,
    days: number,
    between?: (world: Awaited<ReturnType<typeof startProvider>>, id: string) => Promise<unknown>,
  ) {
    const world = await startProvider();
    const { provider, simulator } = world;
    const { state } = simulator;
    if (coupon)
      state.save('coupon', {
        ...state.get('coupon', 'FIFTY')!,
        percent_off: null,
        amount_off: null,
        ...coupon,
      });
    const customerId = await newCustomer(provider, 'pm_card_visa');
    const couponCode = coupon ? 'FIFTY' : null;
    const bought = await ok(
      provider.createSubscription(
        { customerId, priceId: PREMIUM, quantity: 1, couponCode, runId: 'run_s' },
        'run_s:subscribe:1',
      ),
    );
    await between?.(world, bought.subscriptionId);
    state.advanceClock(days * DAY_MS);
    const now = await ok(provider.findSubscription(customerId));
    const change = {
      items: [{ priceId: 'price_builder_month', quantity: 1, itemId: now!.items[0]!.itemId }],
      couponCode: null,
      prorationAtMs: state.now(),
      runId: 'run_b',
    };
    const preview = await ok(provider.previewChange(bought.subscriptionId, change));
    await ok(provider.changeSubscription(bought.subscriptionId, change, 'run_b:subscribe:1'));
    expect(preview.amount).toBe(0);
    const invoices = await ok(provider.listInvoices(undefined));
    const oldestFirst = invoices.items.toReversed();
    return {
      ...world,
      customerId,
      invoices: oldestFirst.map((each) => ({ ...each, returned: 0 })),
    };
  }

  const creditOf = async (world: Awaited<ReturnType<typeof leave>>) =>
    (await ok(world.provider.readCustomer(world.customerId))).creditAmount;

  test.each([
    ['without a coupon', null, 100_000],
    ['with a coupon of a share', { percent_off: 33.33 }, 66_670],
    ['with a coupon of an amount', { amount_off: 5_000 }, 95_000],
    ['with a coupon of more than its price', { amount_off: 500_000 }, 0],
    ['with a coupon of all of it', { percent_off: 100 }, 0],
  ])('%s is worth the paid amount, not the list price', async (_, coupon, paid) => {
    const world = await leave(coupon, 0);
    expect(await creditOf(world)).toBe(paid);
    expect(compareProrations(world.invoices)).toEqual([]);
    expect(listCharges(world.simulator.state).map(({ amount }) => amount)).toEqual(
      paid === 0 ? [] : [paid],
    );
  });

  test('of a period that was renewed under a coupon is worth the amount of the renewal', async () => {
    const world = await leave(
      { percent_off: 100, duration: 'forever' },
      0,
      async ({ simulator }) => {
        simulator.state.advanceClock(32 * DAY_MS);
        renewSubscriptions(simulator.state);
      },
    );
    expect(await creditOf(world)).toBe(0);
    expect(compareProrations(world.invoices)).toEqual([]);
  });

  test('of half a period is worth half of it', async () => {
    const credit = await creditOf(await leave({ percent_off: 50 }, 15));
    expect(credit).toBeGreaterThan(23_000);
    expect(credit).toBeLessThan(27_000);
  });

  test('after a change with a coupon is worth the amount that the change took', async () => {
    const world = await leave(null, 0, async ({ provider, simulator: { state } }, id) => {
      state.save('coupon', {
        ...state.get('coupon', 'FIFTY')!,
        percent_off: 100,
        amount_off: null,
      });
      const { items } = (await ok(provider.readSubscription(id)))!;
      const change = {
        items: [{ priceId: PREMIUM, quantity: 3, itemId: items[0]!.itemId }],
        couponCode: 'FIFTY',
        prorationAtMs: state.now(),
        runId: 'run_q',
      };
      await ok(provider.changeSubscription(id, change, 'run_q:subscribe:1'));
    });
    // The first 100,000 came back with the change; the three that followed were free.
    expect(await creditOf(world)).toBe(100_000);
    expect(compareProrations(world.invoices)).toEqual([]);
  });

  test('is compared line by line, also on an invoice of more lines than it shows', async () => {
    const { provider, simulator } = await startProvider();
    const { state } = simulator;
    const customerId = await newCustomer(provider, 'pm_card_visa');
    const bought = await ok(
      provider.createSubscription(
        { customerId, priceId: PREMIUM, quantity: 1, couponCode: null, runId: 'run_s' },
        'run_s:subscribe:1',
      ),
    );
    const prices = Array.from({ length: 12 }, (_, index) => `price_addon_${index}`);
    for (const id of prices)
      state.save('price', { ...state.get('price', 'price_addon_sms_month')!, id });
    const change = {
      items: prices.map((priceId) => ({ priceId, quantity: 1 })),
      couponCode: null,
      prorationAtMs: state.now(),
      runId: 'run_a',
    };
    await ok(provider.changeSubscription(bought.subscriptionId, change, 'run_a:apply:1'));
    const { items } = await ok(provider.listInvoices(undefined));
    expect(items[0]!.subscriptionLines.map(({ priceId }) => priceId)).toEqual(prices);
  });
});
