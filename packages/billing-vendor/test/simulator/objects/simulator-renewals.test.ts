import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { listCharges } from '../../../src/simulator/simulator-controls.ts';
import { periodEnd } from '../../../src/simulator/objects/simulator-periods.ts';
import { renewSubscriptions } from '../../../src/simulator/objects/simulator-renewals.ts';
import { newCustomer, ok, startProvider } from '../../support/provider-under-test.ts';

const seconds = (day: string) => Date.parse(`${day}T10:20:30Z`) / 1_000;

describe('the end of a period', () => {
  test.each([
    ['2026-01-31', '2026-01-31', 'month', '2026-02-28'],
    ['2026-01-31', '2026-02-28', 'month', '2026-03-31'],
    ['2024-01-31', '2024-01-31', 'month', '2024-02-29'],
    ['2026-10-31', '2026-12-31', 'month', '2027-01-31'],
    ['2024-02-29', '2024-02-29', 'year', '2025-02-28'],
    ['2024-02-29', '2027-02-28', 'year', '2028-02-29'],
  ])('anchored on %s, from %s, is one %s later', (anchor, start, interval, end) => {
    expect(periodEnd(seconds(anchor), seconds(start), interval)).toBe(seconds(end));
  });

  test('is always later, never more than one interval, and on the anchor’s day or the month’s last', () => {
    const anchor = fc.integer({ min: 0, max: 4_000_000_000 });
    fc.assert(
      fc.property(anchor, fc.integer({ min: 0, max: 200_000_000 }), (from, after) => {
        const end = periodEnd(from, from + after, 'month');
        expect(end).toBeGreaterThan(from + after);
        expect(end - from - after).toBeLessThanOrEqual(31 * 86_400);
        const day = new Date(end * 1_000).getUTCDate();
        const lastDay = new Date(end * 1_000);
        lastDay.setUTCMonth(lastDay.getUTCMonth() + 1, 0);
        expect([new Date(from * 1_000).getUTCDate(), lastDay.getUTCDate()]).toContain(day);
      }),
    );
  });
});

describe('a subscription', () => {
  const start = async (card: string) => {
    const world = await startProvider();
    const customerId = await newCustomer(world.provider, card);
    const created = await ok(
      world.provider.createSubscription(
        {
          customerId,
          priceId: 'price_premium_month',
          quantity: 1,
          couponCode: 'FIFTY',
          runId: 'run_1',
        },
        'subscribe',
      ),
    );
    const later = (days: number) =>
      fetch(`http://127.0.0.1:${world.simulator.port}/simulator/clock`, {
        method: 'POST',
        body: JSON.stringify({ advance_ms: days * 86_400_000 }),
      });
    const read = () => ok(world.provider.readSubscription(created.subscriptionId));
    const eventTypes = () =>
      world.simulator.state.list('event').map((event) => String(event['type']));
    return { ...world, customerId, created, later, read, eventTypes };
  };

  test('renews once a period, each paid by an invoice of no purchase, however far the clock is moved', async () => {
    const world = await start('pm_card_visa');
    await world.later(1);
    expect(await world.read()).toEqual(world.created);
    await world.later(95);
    const renewed = await world.read();
    expect(renewed).toMatchObject({ status: 'active' });
    expect(renewed!.currentPeriodEndMs).toBeGreaterThan(world.simulator.state.now());
    const invoices = (await ok(world.provider.listInvoices(undefined))).items;
    expect(invoices.map(({ status, total, runId }) => [status, total.amount, runId])).toEqual([
      ['paid', 100_000, null],
      ['paid', 100_000, null],
      ['paid', 100_000, null],
      ['paid', 95_000, 'run_1'],
    ]);
  });

  test('is past due while its card is declined, and then ends without an open invoice', async () => {
    const world = await start('pm_card_visa');
    await ok(world.provider.setDefaultCard(world.customerId, 'pm_card_chargeCustomerFail'));
    await world.later(32);
    expect(await world.read()).toMatchObject({ status: 'past_due' });
    await world.later(30);
    expect(await world.read()).toMatchObject({ status: 'canceled' });
    expect(await ok(world.provider.findSubscription(world.customerId))).toBeNull();
    const invoices = (await ok(world.provider.listInvoices(undefined))).items;
    expect(invoices.map(({ status }) => status)).toEqual(['uncollectible', 'paid']);
    expect(world.eventTypes()).toContain('customer.subscription.deleted');
  });

  test('on trial is free, even after a change, until the trial is over', async () => {
    const world = await startProvider();
    const customer = await newCustomer(world.provider, 'pm_card_visa');
    const { id } = await world.stripe.subscriptions.create({
      customer,
      items: [{ price: 'price_essentials_month' }],
      trial_period_days: 14,
    });
    const read = () => ok(world.provider.readSubscription(id));
    const { status, items } = (await read())!;
    expect(status).toBe('trialing');
    const { itemId } = items[0]!;
    const change = {
      items: [{ itemId, priceId: 'price_premium_month', quantity: 1 }],
      couponCode: null,
      prorationAtMs: world.simulator.state.now(),
      runId: 'run_1',
    };
    const changed = await ok(world.provider.changeSubscription(id, change, 'change'));
    expect(changed).toMatchObject({ status: 'trialing', latestInvoiceTotal: { amount: 0 } });
    expect(listCharges(world.simulator.state)).toEqual([]);
    world.simulator.state.advanceClock(15 * 86_400_000);
    renewSubscriptions(world.simulator.state);
    expect(await read()).toMatchObject({ status: 'active' });
    expect(listCharges(world.simulator.state)).toMatchObject([{ amount: 100_000 }]);
  });

  test('whose card asks for its holder when it renews is past due until they have confirmed', async () => {
    const world = await start('pm_card_visa');
    await ok(world.provider.setDefaultCard(world.customerId, 'pm_card_authenticationRequired'));
    await world.later(32);
    expect(await world.read()).toMatchObject({ status: 'past_due', latestInvoiceStatus: 'open' });
    expect(world.eventTypes()).toContain('invoice.payment_action_required');
    const { latestInvoiceId } = (await world.read())!;
    const asking = await ok(world.provider.findInvoice(latestInvoiceId!));
    expect(asking).toMatchObject({
      status: 'open',
      payment: { state: 'failed', declineCode: 'authentication_required' },
    });
    const [intent] = asking.clientSecret!.split('_secret_');
    await world.stripe.paymentIntents.confirm(intent!, {
      payment_method: 'pm_card_authenticationRequired',
    });
    await world.later(0);
    expect(await world.read()).toMatchObject({ status: 'active', latestInvoiceStatus: 'paid' });
  });

  test.each([
    ['once', null, [5_000, 10_000, 10_000, 10_000]],
    ['repeating', 2, [5_000, 5_000, 10_000, 10_000]],
    ['forever', null, [5_000, 5_000, 5_000, 5_000]],
  ] as const)(
    'with a coupon for %s (%s months) is charged %j',
    async (duration, months, amounts) => {
      const world = await startProvider();
      const { state } = world.simulator;
      const coupon = state.get('coupon', 'FIFTY')!;
      state.save('coupon', { ...coupon, duration, duration_in_months: months });
      await ok(world.provider.createSubscription(await essentials(world, 7), 'subscribe'));
      for (let month = 1; month < amounts.length; month++) {
        state.advanceClock(31 * 86_400_000);
        renewSubscriptions(state);
      }
      expect(listCharges(state).map(({ amount }) => amount)).toEqual(amounts);
    },
  );

  test('is refused with a coupon that is used up, which a purchase that was declined does not count for', async () => {
    const world = await startProvider();
    const { state } = world.simulator;
    state.save('coupon', { ...state.get('coupon', 'FIFTY')!, max_redemptions: 1 });
    const declined = await essentials(world, 7, 'pm_card_chargeCustomerFail');
    expect(await world.provider.createSubscription(declined, 'a')).toMatchObject({
      outcome: 'declined',
    });
    await ok(world.provider.createSubscription(await essentials(world, 8), 'b'));
    expect(await world.provider.createSubscription(await essentials(world, 9), 'c')).toEqual({
      outcome: 'refused',
      code: 'coupon_expired',
    });
  });

  const essentials = async (
    { provider }: Awaited<ReturnType<typeof startProvider>>,
    accountId: number,
    card = 'pm_card_visa',
  ) => ({
    customerId: await newCustomer(provider, card, accountId),
    priceId: 'price_essentials_month',
    quantity: 1,
    couponCode: 'FIFTY',
    runId: `run_${accountId}`,
  });

  test('that is ended is charged no more, and ended once', async () => {
    const world = await start('pm_card_visa');
    for (const key of ['end', 'end again'])
      await ok(world.provider.cancelSubscription(world.created.subscriptionId, key));
    await world.later(95);
    expect(await world.read()).toMatchObject({ status: 'canceled' });
    expect(listCharges(world.simulator.state)).toHaveLength(1);
    expect(world.eventTypes().filter((type) => type.endsWith('.deleted'))).toHaveLength(1);
  });

  test('lists come in parts', async () => {
    const world = await startProvider();
    for (let n = 1; n <= 101; n++)
      await ok(
        world.provider.createInvoice(
          {
            customerId: await newCustomer(world.provider),
            accountId: 7,
            runId: `run_${n}`,
            currency: 'usd',
          },
          `invoice:${n}`,
        ),
      );
    const first = await ok(world.provider.listInvoices(undefined));
    const rest = await ok(world.provider.listInvoices(first.next));
    expect([first.items.length, rest.items.length, rest.next]).toEqual([100, 1, undefined]);
    expect(new Set([...first.items, ...rest.items].map((each) => each.runId)).size).toBe(101);
  });
});
