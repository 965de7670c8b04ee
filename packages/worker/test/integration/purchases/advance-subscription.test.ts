/** Plans: subscribed to or changed, charged as was shown, and the state of the account afterwards. */
import { listBalances } from '@sluice/database/credits/credit-reads';
import { debitCredits, grantCredits } from '@sluice/database/credits/credits';
import { findBillingAccount } from '@sluice/database/billing/account-plans';
import { untilLockWaiters } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { cancelSubscription } from '@sluice/billing-vendor/simulator/objects/simulator-subscriptions';
import { beforeEach, describe, expect, test } from 'vitest';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

describe('a plan', () => {
  test('is subscribed to, charged with its coupon, and becomes the plan of the account', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    const workflow = await world.finish(
      await world.checkout(accountId, 'essentials_month', { couponCode: 'FIFTY' }),
    );
    expect(workflow).toMatchObject({
      status: 'success',
      result: {
        charged: { amount: 5_000, currency: 'usd' },
        subscription: { planId: 'essentials_month', couponCode: 'FIFTY', status: 'active' },
      },
    });
    expect(await findBillingAccount(world.database, accountId)).toMatchObject({
      planId: 'essentials_month',
      planTier: 'essentials',
    });
    expect(world.succeeded()).toMatchObject([{ amount: 5_000, runId: workflow.runId }]);
    const { rows } = await sql<{ changes: unknown; runId: string }>`
      select changes, run_id as "runId" from audit_logs
       where account_id = ${accountId} and object_type = 'account'`.execute(world.database);
    expect(rows).toMatchObject([
      {
        runId: workflow.runId,
        changes: [{ attribute: 'plan', from: 'premium_month', to: 'essentials_month' }],
      },
    ]);
  });

  test('that is declined leaves the old plan and charges no money', async () => {
    const accountId = await world.addAccount('pm_card_chargeCustomerFail');
    const workflow = await world.finish(await world.checkout(accountId, 'essentials_month'));
    expect(workflow).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/declined/),
    });
    expect(await findBillingAccount(world.database, accountId)).toMatchObject({
      planId: 'premium_month',
    });
    expect(world.succeeded()).toEqual([]);
  });

  test('brings its included credits, which are spent before bought ones', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    const { database } = world;
    const account = { accountId, kind: 'llm' } as const;
    const bought = { pool: 'purchased', amount: 7, expiresAtMs: null, key: 'bought' } as const;
    await database
      .transaction()
      .execute((transaction) => grantCredits(transaction, account, bought, world.deps.now()));
    const debit = (key: string) =>
      database
        .transaction()
        .execute((transaction) =>
          debitCredits(
            transaction,
            account,
            { amount: 5, key, hasAllowance: true },
            world.deps.now(),
          ),
        );
    const available = async () => {
      const balances = await listBalances(database, accountId, ['llm', 'builder']);
      return [...balances.values()].flat().map((grant) => [grant.pool, grant.available]);
    };
    await world.finish(await world.checkout(accountId, 'essentials_month'));
    await debit('first');
    await world.finish(await world.checkout(accountId, 'premium_month'));
    await debit('second');
    expect(await available()).toEqual([
      ['purchased', 7],
      ['monthly_allowance', 990],
      ['monthly_allowance', 9_000],
      ['monthly_allowance', 100],
      ['monthly_allowance', 900],
    ]);
  });

  test("does not wait in a ring with one who holds the account's credits", async () => {
    const accountId = await world.addAccount('pm_card_visa');
    const { database } = world;
    const workflow = await world.checkout(accountId, 'essentials_month');
    const account = { accountId, kind: 'llm' } as const;
    const grant = { pool: 'purchased', amount: 7, expiresAtMs: null, key: 'bought' } as const;
    await database
      .transaction()
      .execute((transaction) => grantCredits(transaction, account, grant, world.deps.now()));
    const finished = await database.transaction().execute(async (transaction) => {
      // Not a grant: that writes the row of the credits twice, for which Postgres holds the account from then on.
      const debit = { amount: 5, key: 'debit', hasAllowance: true };
      await debitCredits(transaction, account, debit, world.deps.now());
      const finishing = world.finish(workflow);
      await untilLockWaiters(database, 1);
      // Refers to the account, as the audit log's chain and the first use of previews do.
      await sql`
        insert into usage_watermarks (account_id, closed_through)
        values (${accountId}, '2026-01-01')`.execute(transaction);
      return { finishing };
    });
    expect(await finished.finishing).toMatchObject({ status: 'success' });
  });

  test('takes the place of the plan before it on the one subscription', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    await world.finish(await world.checkout(accountId, 'essentials_month'));
    const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
    expect(workflow).toMatchObject({ status: 'success' });
    const customer = await world.provider.findCustomer(
      accountId,
      `billing-${accountId}@example.com`,
    );
    const found = await world.provider.findSubscription(
      customer.outcome === 'ok' ? customer.value! : '',
    );
    expect(found).toMatchObject({
      value: { items: [{ priceId: 'price_premium_month' }], runId: workflow.runId },
    });
    expect(world.succeeded()).toHaveLength(2);
  });

  test.each(['error', 'error_after', 'timeout', 'timeout_after', 'reset_after'] as const)(
    '%s on the way is charged once',
    async (kind) => {
      const accountId = await world.addAccount('pm_card_visa');
      world.simulator.faults.add({ kind, method: 'POST', path: '/subscriptions', count: 1 });
      const workflow = await world.finishHastily(
        await world.checkout(accountId, 'essentials_month'),
      );
      expect(workflow).toMatchObject({ status: 'success' });
      expect(world.succeeded()).toMatchObject([{ amount: 10_000, runId: workflow.runId }]);
    },
  );
});

test.each(['created', 'changed'])(
  'a plan that is looked up after the subscription that it %s has renewed, or ended, reports its own invoice',
  async (how) => {
    const accountId = await world.addAccount('pm_card_visa');
    if (how === 'changed') await world.finish(await world.checkout(accountId, 'essentials_month'));
    for (const isEnded of [false, true]) {
      world.simulator.faults.add({
        kind: 'timeout_after',
        method: 'POST',
        path: '/subscriptions',
        count: 1,
      });
      const workflow = await world.checkout(
        accountId,
        isEnded ? 'essentials_month' : 'premium_month',
      );
      expect(await world.advance(workflow, { provider: world.hastyProvider })).toBe('waiting');
      const [charge] = world.succeeded().filter((each) => each.runId === workflow.runId);
      world.moveClocks(62 * 86_400_000);
      for (const subscription of isEnded ? world.simulator.state.list('subscription') : [])
        cancelSubscription(world.simulator.state, subscription);
      const charges = world.charges().length;
      const ended = await world.finish(workflow);
      expect(ended).toMatchObject({
        status: 'success',
        result: { charged: { amount: charge?.amount ?? 0 } },
      });
      if (charge) expect(ended).toMatchObject({ result: { invoiceId: charge.invoice } });
      expect(world.charges()).toHaveLength(charges);
      expect(await findBillingAccount(world.database, accountId)).toMatchObject({
        planStatus: isEnded ? 'canceled' : 'active',
      });
    }
  },
);

test.each([
  ['active', { planStatus: 'active', status: 'active' }],
  ['trialing', { planStatus: 'trialing', status: 'trialing' }],
  ['past_due', { planStatus: 'active', status: 'past_due' }],
  ['unpaid', { planStatus: 'paused', status: 'paused' }],
  ['canceled', { planStatus: 'canceled', status: 'active' }],
  // An unknown word has no effect.
  ['of_tomorrow', { planStatus: 'trialing', status: 'trialing' }],
])(
  'a plan whose subscription turns out to be %s puts the account in that standing, not in another',
  async (status, standing) => {
    const accountId = await world.addAccount('pm_card_visa');
    await sql`update accounts set status = 'trialing', plan_status = 'trialing'
               where account_id = ${accountId}`.execute(world.database);
    const path = '/subscriptions';
    world.simulator.faults.add({ kind: 'timeout_after', method: 'POST', path, count: 1 });
    const workflow = await world.checkout(accountId, 'premium_month');
    expect(await world.advance(workflow, { provider: world.hastyProvider })).toBe('waiting');
    const { state } = world.simulator;
    const [subscription] = state.list('subscription');
    // One that is past due is so for a renewal, which is tried again days after its card refused.
    const refusedAt = { simulated_refused_at: state.nowSeconds(), simulated_tries: 0 };
    const invoice = state.get('invoice', subscription!['latest_invoice'])!;
    const reason = { status: 'open', billing_reason: 'subscription_cycle' };
    if (status === 'past_due') state.save('invoice', { ...invoice, id: 'in_renewal', ...reason });
    const latest = status === 'past_due' ? { latest_invoice: 'in_renewal' } : {};
    state.save('subscription', { ...subscription!, ...refusedAt, ...latest, status });
    // The key may be forgotten, so that it is looked up.
    world.moveClocks(25 * 3_600_000);
    expect(await world.finish(workflow)).toMatchObject({
      status: 'success',
      result: { subscription: { status } },
    });
    const { rows } = await sql`
      select plan_id as "planId", plan_status as "planStatus", status from accounts
       where account_id = ${accountId}`.execute(world.database);
    expect(rows).toEqual([{ planId: 'premium_month', ...standing }]);
  },
);

test.each(['pm_card_chargeCustomerFail', 'pm_card_visa_chargeDeclined'])(
  'a plan that the card %s of its checkout does not pay leaves the card on file that was there',
  async (card) => {
    const accountId = await world.addAccount('pm_card_visa');
    const workflow = await world.finish(
      await world.checkout(accountId, 'premium_month', { paymentMethodId: card }),
    );
    expect(workflow).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/declined/),
    });
    // The renewal of its present plan would charge that one.
    const bought = await world.finish(await world.checkout(accountId, 'essentials_month'));
    expect(bought).toMatchObject({ status: 'success' });
  },
);

test('a plan that the payment provider refuses to price fails without a charge', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  const charges = world.charges().length;
  // The catalogue may name a coupon that the payment provider has not.
  const workflow = await world.checkout(accountId, 'premium_year', {
    couponCode: 'NOT_AT_THE_VENDOR',
    expectedAmount: { amount: 1_000_000, currency: 'usd' },
  });
  expect(await world.finish(workflow, 'after-intent:subscribe')).toMatchObject({
    status: 'failed',
    message: 'The payment could not be made. Check the payment method on file.',
    result: { charged: null },
  });
  expect(world.charges()).toHaveLength(charges);
});

test('a plan on another cycle than the add-ons beside it is refused for that, before the payment provider is asked', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  const charges = world.charges().length;
  const workflow = await world.finish(await world.checkout(accountId, 'premium_year'));
  expect(workflow).toMatchObject({
    status: 'failed',
    message:
      "The account's add-ons are billed on another cycle than this plan; the account was not charged. Choose a plan of their cycle.",
    result: { refusal: 'addons_of_other_cycle', charged: null },
  });
  expect(world.charges()).toHaveLength(charges);
  // On their cycle another plan is taken, add-ons and all.
  expect(await world.finish(await world.checkout(accountId, 'essentials_month'))).toMatchObject({
    status: 'success',
  });
});
