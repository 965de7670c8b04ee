/** Plans and add-ons that a bank pays for: on the subscription at once, paid or not days later. */
import { refundCharge } from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import {
  listPurchasesWithPaymentDue,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { insertProviderEvent } from '@sluice/database/billing/provider-events';
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { lookAtDuePayments } from '../../../src/purchases/purchases.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

const GOOD = 'pm_usBankAccount_success';
const BAD = 'pm_usBankAccount_insufficientFunds';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const standing = async (accountId: number) => {
  const { rows } = await sql<{ status: string; planId: string }>`
    select status, plan_id as "planId" from accounts where account_id = ${accountId}`.execute(
    world.database,
  );
  return rows[0];
};

async function expectUnpaid(workflow: PurchaseWorkflow, amount: number): Promise<void> {
  expect(await world.look(workflow)).toMatchObject({
    status: 'success',
    result: { charged: null, due: { amount, currency: 'usd' } },
  });
  expect((await world.look(workflow)).result).not.toHaveProperty('receiptId');
  expect(await world.receiptOf(workflow)).toBeUndefined();
}

async function expectPaid(workflow: PurchaseWorkflow, amount: number): Promise<void> {
  const { result } = await world.look(workflow);
  expect(result).toMatchObject({
    charged: { amount, currency: 'usd' },
    receiptId: workflow.runId,
  });
  expect(result).not.toHaveProperty('due');
  expect(await world.receiptOf(workflow)).toMatchObject({ total: amount });
}

test('a plan has its receipt and its allowance when the bank has paid, once, and not before', async () => {
  const accountId = await world.addAccount(GOOD);
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  await world.renew();
  await expectUnpaid(workflow, 100_000);
  expect(await world.balance(accountId)).toBe(0);
  expect(await standing(accountId)).toEqual({ status: 'active', planId: 'premium_month' });
  world.bankDecides();
  for (let time = 0; time < 2; time++) {
    await world.tellEvents((events) => [...events, ...events.map(again)]);
    await world.renew();
    await lookAtDuePayments(world.deps);
  }
  await expectPaid(workflow, 100_000);
  expect(await world.balance(accountId)).toBe(200);
});

const again = (event: { eventId: string; type: string; objectId: string }) => ({
  ...event,
  eventId: `${event.eventId}_again`,
});

test('a plan that the bank does not pay is past due and brings no credit, until another card has paid', async () => {
  const accountId = await world.addAccount(BAD);
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  world.bankDecides();
  await world.tellEvents();
  await world.renew();
  await expectUnpaid(workflow, 100_000);
  expect(await standing(accountId)).toMatchObject({ status: 'past_due' });
  expect(await world.balance(accountId)).toBe(0);
  await world.putCard(accountId, 'pm_card_visa');
  world.moveClocks(4 * 86_400_000);
  await world.tellEvents();
  await expectPaid(workflow, 100_000);
  expect(await standing(accountId)).toMatchObject({ status: 'active' });
  expect(await world.balance(accountId)).toBe(200);
});

test('credits of another plan stay while the bank pays for a better one', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  await world.finish(await world.checkout(accountId, 'essentials_month'));
  expect(await world.balance(accountId)).toBe(20);
  await world.putCard(accountId, GOOD);
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  await world.renew();
  expect(await world.balance(accountId)).toBe(20);
  expect((await world.look(workflow)).result?.due?.amount).toBeGreaterThan(0);
  world.bankDecides();
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(200);
});

test('add-ons have their receipt when the bank has paid', async () => {
  const accountId = await world.addAccount('pm_card_visa', 'card');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.putCard(accountId, GOOD);
  const workflow = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  const due = (await world.look(workflow)).result!.due!.amount;
  await world.tellEvents();
  await expectUnpaid(workflow, due);
  world.bankDecides();
  await world.tellEvents();
  await expectPaid(workflow, due);
});

test('a payment of the bank is found without the payment provider’s events', async () => {
  const accountId = await world.addAccount(GOOD);
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  world.bankDecides();
  world.takeEvents();
  await lookAtDuePayments(world.deps);
  await expectPaid(workflow, 100_000);
  expect(await world.balance(accountId)).toBe(200);
});

test('I21: a payment of the bank is not lost if its event comes before the purchase is written down', async () => {
  const accountId = await world.addAccount(GOOD);
  const workflow = await world.checkout(accountId, 'premium_month');
  await world.advance(workflow, {
    async onPoint(point) {
      if (point !== 'after-vendor:subscribe') return;
      world.bankDecides();
      await world.tellEvents();
    },
  });
  await world.settleEvents();
  await expectPaid(workflow, 100_000);
  expect(await world.balance(accountId)).toBe(200);
});

test.each(['after-intent:subscribe', 'after-vendor:subscribe', 'after-record:subscribe'] as const)(
  'I15: a worker that dies at %s grants no credit early, and all of it in the end',
  async (point) => {
    const accountId = await world.addAccount(GOOD);
    const workflow = await world.finish(await world.checkout(accountId, 'premium_month'), point);
    await world.tellEvents();
    await expectUnpaid(workflow, 100_000);
    expect(await world.balance(accountId)).toBe(0);
    world.bankDecides();
    await world.tellEvents();
    await expectPaid(workflow, 100_000);
    expect(await world.balance(accountId)).toBe(200);
    expect(world.charges()).toHaveLength(1);
  },
);

test('a plan that is refunded before its payment was looked at keeps no allowance', async () => {
  const accountId = await world.addAccount(GOOD);
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  world.bankDecides();
  const [charge] = world.succeeded();
  refundCharge(world.simulator.state, charge!.id, undefined);
  await world.tellEvents((events) => events.filter(({ type }) => type === 'charge.refunded'));
  await lookAtDuePayments(world.deps);
  expect(await world.balance(accountId)).toBe(0);
  expect((await world.look(workflow)).result).toMatchObject({ reversal: { isWhole: true } });
});

test('payments that are due are not asked about by a worker that stops, nor of a payment provider that does not answer', async () => {
  for (let count = 0; count < 3; count++) {
    const accountId = await world.addAccount(GOOD);
    await world.finish(await world.checkout(accountId, 'premium_month'));
  }
  const asked: string[] = [];
  const provider: PaymentProvider = {
    ...world.provider,
    findInvoice(invoiceId) {
      asked.push(invoiceId);
      return Promise.resolve({ outcome: 'unknown', reason: 'timeout', isFinal: false });
    },
  };
  await lookAtDuePayments({ ...world.deps, provider }, () => true);
  expect(asked).toEqual([]);
  await lookAtDuePayments({ ...world.deps, provider });
  expect(asked).toHaveLength(1);
});

test('a due payment that the payment provider refuses to show is logged, and the next one is looked at', async () => {
  const workflows: PurchaseWorkflow[] = [];
  for (let count = 0; count < 2; count++)
    workflows.push(
      await world.finish(await world.checkout(await world.addAccount(GOOD), 'premium_month')),
    );
  world.bankDecides();
  const logged: unknown[] = [];
  const logger = createLogger('test', 'silent');
  logger.error = (fields: unknown) => logged.push(fields);
  const [refused, other] = workflows.map((workflow) => workflow.result!.invoiceId!);
  const provider: PaymentProvider = {
    ...world.provider,
    findInvoice: (invoiceId) =>
      invoiceId === refused
        ? Promise.resolve({
            outcome: 'refused',
            code: 'forbidden',
          })
        : world.provider.findInvoice(invoiceId),
  };
  await lookAtDuePayments({ ...world.deps, provider, logger });
  expect(logged).toMatchObject([{ item: { invoiceId: refused } }]);
  expect((await world.look(workflows[1]!)).result).toMatchObject({
    invoiceId: other,
    receiptId: expect.any(String),
  });
  await expectUnpaid(workflows[0]!, 100_000);
});

test('the account is locked before its purchase is written as paid', async () => {
  const accountId = await world.addAccount(GOOD);
  await world.finish(await world.checkout(accountId, 'premium_month'));
  world.bankDecides();
  const sent = await statementsSentBy(() => lookAtDuePayments(world.deps));
  const at = (pattern: RegExp) => sent.findIndex(({ text }) => pattern.test(text));
  expect(at(/from runs .* for update/s)).toBeGreaterThan(-1);
  expect(at(/update accounts/)).toBeGreaterThan(at(/from runs .* for update/s));
  expect(at(/update runs/)).toBeGreaterThan(at(/update accounts/));
});

test('a payment that the bank never makes is given up with its invoice, is no longer due, and counts if it is made after all', async () => {
  const accountId = await world.addAccount(BAD);
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  world.bankDecides();
  const { state } = world.simulator;
  const invoice = () => state.get('invoice', workflow.result!.invoiceId!)!;
  state.save('invoice', { ...invoice(), status: 'uncollectible' });
  await lookAtDuePayments(world.deps);
  const { result } = await world.look(workflow);
  expect(result).toMatchObject({ charged: null, givenUp: { amount: 100_000 } });
  expect(result).not.toHaveProperty('due');
  expect(await world.receiptOf(workflow)).toBeUndefined();
  await world.renew();
  expect(await world.balance(accountId)).toBe(0);
  state.save('invoice', { ...invoice(), status: 'paid' });
  await insertProviderEvent(
    world.database,
    { eventId: 'evt_paid', type: 'invoice.paid', objectId: invoice().id },
    Date.now() - 1_000,
  );
  await world.settleEvents();
  await expectPaid(workflow, 100_000);
  expect((await world.look(workflow)).result).not.toHaveProperty('givenUp');
});

test('a payment that has been due for a month is not asked about any more', async () => {
  await world.finish(await world.checkout(await world.addAccount(GOOD), 'premium_month'));
  const listed = (aheadMs: number) =>
    listPurchasesWithPaymentDue(world.database, world.deps.now() + aheadMs, 10);
  expect(await listed(29 * 86_400_000)).toHaveLength(1);
  expect(await listed(31 * 86_400_000)).toEqual([]);
});
