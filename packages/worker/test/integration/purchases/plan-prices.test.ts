/** Plans at their prices: the amount that was shown, a price that was exchanged, and the rest. */
import type { Money } from '@sluice/domain/values/money';
import { sql } from 'kysely';
import { itemsOf } from '@sluice/billing-vendor/simulator/objects/simulator-items';
import { findPurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { listBalances } from '@sluice/database/credits/credit-reads';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { viewBalance } from '@sluice/domain/billing/credit-ledger';
import { beforeEach, describe, expect, test } from 'vitest';
import { CATALOGUE } from '../support/purchase-world.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

describe('a plan for which an amount was shown', () => {
  const usd = (amount: number) => ({ amount, currency: 'usd' });

  test('is bought at that amount, with its coupon, and at no other', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    for (const wrong of [usd(4_999), { amount: 5_000, currency: 'eur' }]) {
      const refused = await world.finish(
        await world.checkout(accountId, 'essentials_month', {
          couponCode: 'FIFTY',
          expectedAmount: wrong,
        }),
      );
      expect(refused).toMatchObject({
        status: 'failed',
        message:
          'The amount is not the one that was shown; the account was not charged. Buy again at the new amount.',
        result: { refusal: 'amount_changed', charged: null },
      });
    }
    expect(world.charges()).toEqual([]);
    const bought = await world.checkout(accountId, 'essentials_month', {
      couponCode: 'FIFTY',
      expectedAmount: usd(5_000),
    });
    expect(await world.finish(bought)).toMatchObject({ status: 'success' });
    expect(world.succeeded()).toMatchObject([{ amount: 5_000 }]);
  });

  test('in place of another plan is charged the amount that the preview of that moment shows', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    await world.finish(await world.checkout(accountId, 'essentials_month'));
    // Half a month later half of each is due, to the second.
    world.simulator.state.advanceClock(15 * 86_400_000);
    world.clock.aheadMs += 15 * 86_400_000;
    const refused = await world.finish(
      await world.checkout(accountId, 'premium_month', { expectedAmount: usd(90_000) }),
    );
    expect(refused).toMatchObject({ status: 'failed', result: { refusal: 'amount_changed' } });
    const steps = await world.steps(refused);
    const { amount } = steps.find((step) => step.step === 'subscribe')!.input as { amount: Money };
    expect(amount.amount).toBeGreaterThan(40_000);
    expect(amount.amount).toBeLessThan(50_000);
    expect(world.succeeded()).toHaveLength(1);
  });
});

describe('of a plan whose price the catalogue has exchanged', () => {
  const NEW_PRICE = 'price_essentials_month_2027';
  const exchanged = {
    ...CATALOGUE,
    plans: CATALOGUE.plans.map((plan) =>
      plan.id === 'essentials_month' ? { ...plan, priceId: NEW_PRICE } : plan,
    ),
  };
  const pricesOf = () =>
    world.simulator.state
      .list('subscription')
      .map((each) => itemsOf(each).map((item) => item.price.id));

  test('another plan takes the place, and is not charged beside it', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    await world.finish(await world.checkout(accountId, 'essentials_month'));
    const workflow = await world.checkout(accountId, 'premium_month');
    await world.advance(workflow, { catalogue: exchanged });
    expect(await findPurchaseWorkflow(world.database, accountId, workflow.runId)).toMatchObject({
      status: 'success',
    });
    expect(pricesOf()).toEqual([['price_premium_month']]);
  });

  test('an unknown item on the subscription is not charged beside a plan either', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    await world.finish(await world.checkout(accountId, 'essentials_month'));
    await sql`truncate runs cascade`.execute(world.database);
    const workflow = await world.checkout(accountId, 'premium_month');
    await world.advance(workflow, { catalogue: exchanged });
    expect(await findPurchaseWorkflow(world.database, accountId, workflow.runId)).toMatchObject({
      status: 'failed',
      result: { charged: null, refusal: 'unknown_subscription_item' },
    });
    expect(pricesOf()).toEqual([['price_essentials_month']]);
    expect(world.succeeded()).toHaveLength(1);
  });
});

test('a coupon that is used up at the payment provider is reported as that, and not as a refused card', async () => {
  const { state } = world.simulator;
  state.save('coupon', { ...state.get('coupon', 'FIFTY')!, max_redemptions: 1 });
  const buy = async () =>
    world.finish(
      await world.checkout(await world.addAccount('pm_card_visa'), 'essentials_month', {
        couponCode: 'FIFTY',
      }),
    );
  expect(await buy()).toMatchObject({ status: 'success', result: { charged: { amount: 5_000 } } });
  expect(await buy()).toMatchObject({
    status: 'failed',
    message:
      'The coupon is used up or has expired; the account was not charged. Buy without it, or with another one.',
    result: { refusal: 'coupon_expired', charged: null },
  });
  expect(world.succeeded()).toHaveLength(1);
});

test('a plan that costs less leaves a credit with the payment provider, which pays for the next purchase', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  const less = await world.finish(await world.checkout(accountId, 'essentials_month'));
  expect(less).toMatchObject({ status: 'success', result: { charged: { amount: 0 } } });
  const included = await world.balance(accountId);
  const pack = await world.finish(await world.buyPack(accountId));
  expect(pack).toMatchObject({ status: 'success' });
  expect((await world.balance(accountId)) - included).toBe(100);
  // The card was charged only for the first plan.
  expect(world.succeeded()).toMatchObject([{ amount: 100_000 }]);
  const customers = world.simulator.state.list('customer');
  const spent = pack.result!.charged!.amount;
  expect(customers.map((each) => each['balance'])).toEqual([-(100_000 - 10_000 - spent)]);
});

test('a plan that a coupon paid for leaves no credit when it is left again, and the card pays the next purchase', async () => {
  const { state } = world.simulator;
  state.save('coupon', { ...state.get('coupon', 'FIFTY')!, percent_off: 100, amount_off: null });
  const accountId = await world.addAccount('pm_card_visa');
  const free = await world.checkout(accountId, 'premium_month', { couponCode: 'FIFTY' });
  expect(await world.finish(free)).toMatchObject({ result: { charged: { amount: 0 } } });
  expect(await world.finish(await world.checkout(accountId, 'builder'))).toMatchObject({
    status: 'success',
    result: { charged: { amount: 0 } },
  });
  expect(state.list('customer').map((each) => Number(each['balance']))).toEqual([0]);
  expect(world.charges()).toEqual([]);
  // The card pays for the next purchase.
  await world.finish(await world.buyPack(accountId));
  expect(world.succeeded()).toMatchObject([{ amount: 2_000 }]);
});

describe('the allowance of the month', () => {
  /** Of inbox previews, as the balance shows it: granted, used, remaining. */
  const allowance = async (accountId: number) => {
    const grants = (await listBalances(world.database, accountId, ['inbox_previews'])).get(
      'inbox_previews',
    )!;
    const { granted, used, remaining } = viewBalance(grants, world.deps.now(), true).pools[0]!;
    return [granted, used, remaining];
  };
  const choose = async (accountId: number, planId: string) =>
    expect(await world.finish(await world.checkout(accountId, planId))).toMatchObject({
      status: 'success',
    });
  const spend = (accountId: number, amount: number, key: string) =>
    world.spend(accountId, amount, key);

  test('is the allowance of the plan from the moment that it is changed, up or down', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    await choose(accountId, 'premium_month');
    expect(await allowance(accountId)).toEqual([200, 0, 200]);
    await spend(accountId, 5, 'job_1');
    await choose(accountId, 'essentials_month');
    expect(await allowance(accountId)).toEqual([20, 5, 15]);
    await choose(accountId, 'premium_month');
    expect(await allowance(accountId)).toEqual([200, 5, 195]);
    await choose(accountId, 'builder');
    expect(await allowance(accountId)).toEqual([5, 5, 0]);
    await choose(accountId, 'essentials_month');
    expect(await allowance(accountId)).toEqual([20, 5, 15]);
    expect(await listCreditDifferences(world.database)).toEqual([]);
  });

  test('that is spent beyond a smaller plan stays spent, and its rest is zero', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    await choose(accountId, 'premium_month');
    await spend(accountId, 50, 'job_1');
    await choose(accountId, 'essentials_month');
    expect(await allowance(accountId)).toEqual([50, 50, 0]);
  });

  test('touches no credits that were bought', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    await choose(accountId, 'premium_month');
    await world.finish(await world.buyPack(accountId));
    await choose(accountId, 'builder');
    expect(await world.balance(accountId)).toBe(100);
  });
});
