/** Refunds of a plan, and the allowance that it had brought. */
import { refundCharge } from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import { SETTLING_SECONDS } from '@sluice/billing-vendor/simulator/objects/simulator-late-payments';
import {
  findPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { lookAtDuePayments } from '../../../src/purchases/purchases.ts';
import { renewCredits } from '../../../src/purchases/renew-credits.ts';
import { CATALOGUE } from '../support/purchase-world.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const refund = (workflow: PurchaseWorkflow) => {
  const { id } = world.succeeded().find((charge) => charge.runId === workflow.runId)!;
  return refundCharge(world.simulator.state, id, undefined);
};
const look = async (workflow: PurchaseWorkflow) =>
  (await findPurchaseWorkflow(world.database, workflow.accountId, workflow.runId))!;
const reversalOf = async (workflow: PurchaseWorkflow) => (await look(workflow)).result?.reversal;
const renew = () => renewCredits({ ...world.deps, catalogue: CATALOGUE });

/** Its operator ends it at the payment provider. */
async function endSubscription(accountId: number): Promise<void> {
  const customerId = (await findProviderCustomer(world.database, accountId))!;
  const found = await world.provider.findSubscription(customerId);
  const { subscriptionId } = (found.outcome === 'ok' && found.value) || { subscriptionId: '' };
  await world.provider.cancelSubscription(subscriptionId, `end:${subscriptionId}`);
  await world.tellEvents();
}

/** The invoice was uncollectible when somebody looked, and is open again. */
async function giveUp(workflow: PurchaseWorkflow): Promise<void> {
  const { state } = world.simulator;
  const invoice = state.get('invoice', workflow.result!.invoiceId!)!;
  state.save('invoice', { ...invoice, status: 'uncollectible' });
  await lookAtDuePayments(world.deps);
  expect((await look(workflow)).result).toMatchObject({ givenUp: { amount: 100_000 } });
  state.save('invoice', invoice);
}

function toNextMonth(): void {
  const today = new Date(world.deps.now());
  const nextMonthMs = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1, 1);
  world.clock.aheadMs += nextMonthMs - today.getTime() + 1;
}

test('a plan whose price is refunded loses the rest of the month’s allowance, and keeps bought credits', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.finish(await world.buyPack(accountId));
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(300);
  await world.spend(accountId, 50);
  refund(workflow);
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(100);
  // 150 of the previews, and all of the others.
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 11_150 });
  expect(await listCreditDifferences(world.database)).toEqual([]);
});

test('a plan refunded after it was renewed keeps the allowance, which the renewal has paid for', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  // Within the month of the grant, on any day.
  const { result } = await look(workflow);
  const ended = { ...result!.subscription!, currentPeriodEndMs: world.deps.now() };
  await sql`
    update runs set result = ${JSON.stringify({ ...result, subscription: ended })}
     where run_id = ${workflow.runId}`.execute(world.database);
  refund(workflow);
  await world.tellEvents();
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 0 });
  expect(await world.balance(accountId)).toBe(200);
});

test('a plan of which no paid period is known keeps the allowance when it is refunded', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await sql`update runs set result = result - 'subscription' where run_id = ${workflow.runId}`.execute(
    world.database,
  );
  refund(workflow);
  await world.tellEvents();
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 0 });
  expect(await world.balance(accountId)).toBe(200);
});

test('a plan that includes two kinds of credits loses the rest of both', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await sql`
    update runs set content = jsonb_set(content, '{plan,included,builder}', '0')
     where run_id = ${workflow.runId}`.execute(world.database);
  refund(workflow);
  await world.tellEvents();
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 10_200 });
  expect(await world.balance(accountId)).toBe(0);
});

test('add-ons that are refunded take no credits', async () => {
  const accountId = await world.addAccount('pm_card_visa', 'card');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  const workflow = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  refund(workflow);
  await world.tellEvents();
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 0 });
  expect(await world.balance(accountId)).toBe(200);
});

test.each(['due', 'given up'])(
  'a plan whose payment was %s, and came and went back unnoticed, has both and no allowance',
  async (wait) => {
    const accountId = await world.addAccount('pm_usBankAccount_success');
    const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
    // The purchase has left an event that looks at the invoice.
    await world.tellEvents();
    if (wait === 'given up') await giveUp(workflow);
    world.bankDecides();
    refund(workflow);
    await world.tellEvents((events) => events.filter(({ type }) => type === 'charge.refunded'));
    expect((await look(workflow)).result).toMatchObject({
      charged: { amount: 100_000 },
      receiptId: workflow.runId,
      reversal: { isWhole: true },
    });
    expect(await world.balance(accountId)).toBe(0);
  },
);

test('a plan refunded in a new month, before the allowance of that month came, brings no allowance', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  toNextMonth();
  refund(workflow);
  await world.tellEvents();
  await renew();
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 0 });
  expect(await world.balance(accountId)).toBe(0);
});

test('a plan refunded and bought again in the month brings its allowance again, once, and each refund takes the rest', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  toNextMonth();
  let spent = 0;
  for (const time of [1, 2, 3]) {
    const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
    await world.tellEvents();
    await renew();
    expect(await world.balance(accountId)).toBe(200 - spent);
    await endSubscription(accountId);
    await world.spend(accountId, 10, `job_${time}`);
    spent += 10;
    refund(workflow);
    await world.tellEvents();
    await renew();
    expect(await world.balance(accountId)).toBe(0);
  }
  expect(await listCreditDifferences(world.database)).toEqual([]);
});

test('a plan that is refunded before the allowance of the month came, and bought again in it, brings it', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  await endSubscription(accountId);
  toNextMonth();
  refund(workflow);
  await world.tellEvents();
  const again = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  await renew();
  expect(await world.balance(accountId)).toBe(200);
  refund(again);
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(0);
});

test('a plan that is refunded, and bought again by a bank account in the month, brings its allowance when the bank has paid', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  // The bank takes days.
  toNextMonth();
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await endSubscription(accountId);
  refund(workflow);
  await world.tellEvents();
  await world.putCard(accountId, 'pm_usBankAccount_success');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(0);
  world.moveClocks(SETTLING_SECONDS * 1_000);
  for (let time = 0; time < 2; time++) {
    await world.tellEvents();
    await renew();
    await lookAtDuePayments(world.deps);
  }
  expect(await world.balance(accountId)).toBe(200);
});

test('a plan that is refunded and goes on is paid again when it is bought again', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  refund(workflow);
  await world.tellEvents();
  const again = await world.finish(await world.checkout(accountId, 'premium_month'));
  expect(again).toMatchObject({ status: 'success', result: { charged: { amount: 100_000 } } });
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(200);
});

test('a plan whose allowance was spent and refunded brings the next plan only the rest of its own', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const first = await world.finish(await world.checkout(accountId, 'essentials_month'));
  await world.spend(accountId, 5);
  refund(first);
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(0);
  await world.finish(await world.checkout(accountId, 'premium_month'));
  expect(await world.balance(accountId)).toBe(195);
});

test('the refund of a replaced plan does not take credits of the new plan', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const first = await world.finish(await world.checkout(accountId, 'essentials_month'));
  await world.finish(await world.checkout(accountId, 'premium_month'));
  expect(await world.balance(accountId)).toBe(200);
  refund(first);
  await world.tellEvents();
  expect(await reversalOf(first)).toMatchObject({ isWhole: true, creditsTaken: 0 });
  expect(await world.balance(accountId)).toBe(200);
});
