/**
 * The receipt of a purchase, by both payment method types.
 *
 * It is the same for any number of reports of the purchase's fate.
 */
import { findReceipt } from '@sluice/database/billing/receipts';
import {
  lockPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { settleInvoice } from '../../../src/settlement/settle-invoice.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const receiptOf = (workflow: PurchaseWorkflow) =>
  findReceipt(world.database, workflow.accountId, workflow.result?.receiptId ?? '');
const receiptIds = async (): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`
    select receipt_id as id from receipts order by receipt_id`.execute(world.database);
  return rows.map((row) => row.id);
};

const PACK = {
  lines: [{ description: '100 inbox previews', quantity: 1, amount: 2_000 }],
  total: 2_000,
  currency: 'usd',
};

describe('a pack that is paid has its receipt, with the figures of the charge', () => {
  test('by invoice, billed to the account as it is addressed', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    const address = {
      company: 'Acme Ltd',
      line1: '1 Main Street',
      line2: null,
      city: 'Springfield',
      state: 'IL',
      postal_code: '62701',
      country: 'US',
      tax_id: { type: 'us_ein', value: '12-3456789' },
    };
    await sql`update accounts set address = ${JSON.stringify(address)} where account_id = ${accountId}`.execute(
      world.database,
    );
    const workflow = await world.finish(await world.buyPack(accountId));
    const billedTo = 'Acme Ltd\n1 Main Street\nSpringfield, IL 62701\nUS\nTax number 12-3456789';
    expect(await receiptOf(workflow)).toMatchObject({
      ...PACK,
      billedTo,
      issuedAt: workflow.finishedAt,
    });
    expect(world.succeeded()).toMatchObject([{ amount: PACK.total }]);
    // As `GET /settings/receipts/{id}` takes it.
    expect(workflow.result?.receiptId).toMatch(/^[\w-]{1,100}$/);
  });

  test('by card, if its customer paid; no other account reads it', async () => {
    const accountId = await world.addAccount(null, 'card');
    const started = await world.buyPack(accountId, 'card');
    await world.advance(started);
    expect(await receiptIds()).toEqual([]);
    await world.confirm(started);
    const workflow = await world.finish(started);
    expect(await receiptOf(workflow)).toMatchObject({ ...PACK, billedTo: 'Acme' });
    const other = await world.addAccount(null, 'card');
    expect(await receiptOf({ ...workflow, accountId: other })).toBeUndefined();
  });

  test('once, after any number of payment reports at the same time', async () => {
    const workflow = await world.buyPack(await world.addAccount(null, 'card'), 'card');
    await world.advance(workflow);
    await world.confirm(workflow);
    const { invoiceId } = (await world.steps(workflow)).find((step) => step.step === 'invoice')!
      .output as { invoiceId: string };
    const fate = { invoiceId, status: 'paid', total: { amount: 2_000, currency: 'usd' } } as const;
    const settle = () =>
      world.database.transaction().execute(async (transaction) => {
        const locked = await lockPurchaseWorkflow(transaction, workflow);
        return settleInvoice(transaction, locked!, fate, Date.now());
      });
    await Promise.all([settle(), settle(), settle(), world.advance(workflow)]);
    await settle();
    await world.settleEvents();
    expect(await receiptIds()).toEqual([(await world.finish(workflow)).result?.receiptId]);
  });
});

test('numbers of receipts are not given twice', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflows = [
    await world.finish(await world.buyPack(accountId)),
    await world.finish(await world.buyPack(accountId)),
  ];
  const numbers = await Promise.all(
    workflows.map(async (workflow) => (await receiptOf(workflow))!.number),
  );
  expect(new Set(numbers).size).toBe(2);
});

test('a purchase that took no money has no receipt', async () => {
  const declined = await world.addAccount('pm_card_chargeCustomerFail');
  const subscribed = await world.addAccount('pm_card_visa', 'card');
  const workflows = [
    await world.finish(await world.buyPack(declined)),
    await world.finish(await world.checkout(declined, 'essentials_month')),
    await world.finish(await world.checkout(subscribed, 'builder')),
  ];
  expect(workflows.map((workflow) => workflow.status)).toEqual(['declined', 'failed', 'success']);
  expect(workflows.map((workflow) => workflow.result?.receiptId)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(await receiptIds()).toEqual([]);
});

test('a plan and add-ons have receipts of their charges', async () => {
  const accountId = await world.addAccount('pm_card_visa', 'card');
  const bought = await world.finish(
    await world.checkout(accountId, 'essentials_month', { couponCode: 'FIFTY' }),
  );
  expect(await receiptOf(bought)).toMatchObject({
    lines: [{ description: 'Essentials, by the month, coupon FIFTY', quantity: 1, amount: 5_000 }],
    total: 5_000,
  });
  const added = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  const { amount } = added.result!.charged!;
  expect(amount).toBeGreaterThan(0);
  expect(await receiptOf(added)).toMatchObject({
    lines: [{ description: 'Add-ons: price_addon_ip_month', quantity: 1, amount }],
    total: amount,
  });
  // Held already, so there is no charge.
  const again = await world.finish(await world.addons(accountId, 'price_addon_ip_month'));
  expect(again).toMatchObject({ status: 'success', result: { charged: null } });
  expect(await receiptIds()).toHaveLength(2);
});
