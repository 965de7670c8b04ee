/** Payments of a bank for plans and add-ons, by their invoices. */
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import { insertProviderEvent } from '@sluice/database/billing/provider-events';
import {
  listPurchasesWithPaymentDue,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

const BANK_ACCOUNT = 'pm_usBankAccount_success';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const invoiceOf = (workflow: PurchaseWorkflow) =>
  world.simulator.state.get('invoice', workflow.result!.invoiceId!)!;
const unsettledTypes = async () => {
  const { rows } = await sql<{ type: string }>`
    select type from vendor_events where settled_at is null`.execute(world.database);
  return rows.map(({ type }) => type);
};

async function tellOfInvoice(objectId: string): Promise<void> {
  const event = { eventId: `evt_${objectId}`, type: 'invoice.updated', objectId };
  await insertProviderEvent(world.database, event, Date.now() - 1_000);
  await world.settleEvents();
}

async function duePlan(): Promise<PurchaseWorkflow> {
  const accountId = await world.addAccount(BANK_ACCOUNT);
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  expect(workflow.result).toMatchObject({ charged: null, due: { amount: 100_000 } });
  await world.tellEvents();
  return workflow;
}

test('I22: an event of a purchase that is still pending is settled, and is not looked at again', async () => {
  const accountId = await world.addAccount(BANK_ACCOUNT);
  const workflow = await world.checkout(accountId, 'premium_month');
  let told: string[] = [];
  await world.advance(workflow, {
    async onPoint(point) {
      if (point !== 'after-vendor:subscribe') return;
      await world.tellEvents((events) => {
        told = events.map(({ type }) => type);
        return events;
      });
      expect(await unsettledTypes()).toEqual([]);
    },
  });
  expect(told.filter((type) => type.startsWith('invoice.'))).not.toEqual([]);
});

test.each(['a plan', 'add-ons'])(
  'the facts of %s stay as they were when the bank has paid: only the amount and the receipt come',
  async (what) => {
    let workflow: PurchaseWorkflow;
    if (what === 'a plan') workflow = await duePlan();
    else {
      const accountId = await world.addAccount('pm_card_visa', 'card');
      await world.finish(await world.checkout(accountId, 'premium_month'));
      await world.putCard(accountId, BANK_ACCOUNT);
      workflow = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
    }
    const { due, ...facts } = workflow.result!;
    world.bankDecides();
    await world.tellEvents();
    expect((await world.look(workflow)).result).toEqual({
      ...facts,
      charged: due,
      receiptId: workflow.runId,
    });
  },
);

test('an invoice that is voided by hand ends the wait without a charge or a receipt, and the plan brings its allowance', async () => {
  const workflow = await duePlan();
  const { due: _due, ...facts } = workflow.result!;
  world.simulator.state.save('invoice', { ...invoiceOf(workflow), status: 'void' });
  await tellOfInvoice(workflow.result!.invoiceId!);
  expect((await world.look(workflow)).result).toEqual({ ...facts, charged: null });
  expect(await world.receiptOf(workflow)).toBeUndefined();
  expect(await listPurchasesWithPaymentDue(world.database, world.deps.now(), 10)).toEqual([]);
  expect(await world.balance(workflow.accountId)).toBe(200);
});

test('a copy of the invoice that is paid pays for no plan', async () => {
  const workflow = await duePlan();
  world.simulator.state.save('invoice', {
    ...invoiceOf(workflow),
    id: 'in_copy',
    status: 'paid',
  });
  await tellOfInvoice('in_copy');
  expect(await unsettledTypes()).toEqual([]);
  await world.renew();
  expect((await world.look(workflow)).result).toEqual(workflow.result);
  expect(await world.receiptOf(workflow)).toBeUndefined();
  expect(await world.balance(workflow.accountId)).toBe(0);
});

test('a plan that has ended before the bank paid has its receipt and brings no allowance', async () => {
  const workflow = await duePlan();
  const customerId = (await findProviderCustomer(world.database, workflow.accountId))!;
  const found = await world.provider.findSubscription(customerId);
  const { subscriptionId } = (found.outcome === 'ok' && found.value) || { subscriptionId: '' };
  await world.provider.cancelSubscription(subscriptionId, 'end');
  await world.tellEvents();
  world.bankDecides();
  await world.tellEvents();
  expect((await world.look(workflow)).result).toMatchObject({ charged: { amount: 100_000 } });
  expect(await world.receiptOf(workflow)).toMatchObject({ total: 100_000 });
  await world.renew();
  expect(await world.balance(workflow.accountId)).toBe(0);
});
