/** The states of an invoice, and their effect on its purchase. */
import {
  findPurchaseWorkflow,
  lockPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import type { InvoiceStatus } from '@sluice/billing-vendor/port/payment-provider';
import type { PaymentMethodType } from '@sluice/domain/billing/purchase-workflow';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { settleInvoice, type InvoiceFate } from '../../../src/settlement/settle-invoice.ts';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 6, 1, 12);
const PRICE = { amount: 2_000, currency: 'usd' };

let world: Purchases;
beforeEach(async () => {
  world = await startPurchases();
});

const look = async (workflow: PurchaseWorkflow) =>
  (await findPurchaseWorkflow(world.database, workflow.accountId, workflow.runId))!;

/** A pack of 100 for $20 that waits for its money. */
async function waitingPack(rail: PaymentMethodType = 'card') {
  const accountId = await world.addAccount(null, rail);
  const workflow = await world.buyPack(accountId, rail);
  const invoiceId = `in_of_${workflow.runId}`;
  await sql`update runs set invoice_id = ${invoiceId} where run_id = ${workflow.runId}`.execute(
    world.database,
  );
  return { workflow, invoiceId };
}

const settle = (
  { runId, accountId }: PurchaseWorkflow,
  fate: Pick<InvoiceFate, 'invoiceId' | 'status'> & Partial<InvoiceFate>,
  changes: Partial<PurchaseWorkflow> = {},
) =>
  world.database.transaction().execute(async (transaction) => {
    const locked = await lockPurchaseWorkflow(transaction, { runId, accountId });
    return settleInvoice(
      transaction,
      { ...locked!, ...changes },
      { total: PRICE, ...fate },
      NOW_MS,
    );
  });

const expiries = async () => {
  const { rows } = await sql<{ pool: string; granted: string; expiresAt: Date | null }>`
    select pool, granted, expires_at as "expiresAt" from credit_grants`.execute(world.database);
  return rows;
};

describe('a paid invoice', () => {
  test('grants bought credits for as long as they were sold for, once', async () => {
    const { workflow, invoiceId } = await waitingPack();
    const { content } = workflow;
    if (content.type !== 'purchase') throw new Error('it is no pack');
    expect(await settle(workflow, { invoiceId, status: 'paid' })).toBe('succeeded');
    const expiresAt = new Date(NOW_MS + content.purchase.expiresAfterDays! * DAY_MS);
    expect(await expiries()).toEqual([{ pool: 'purchased', granted: '100', expiresAt }]);
    expect(await settle(workflow, { invoiceId, status: 'paid' })).toBe('unchanged');
    expect(await look(workflow)).toMatchObject({ status: 'success', reviewReason: null });
    expect(await expiries()).toHaveLength(1);
  });

  test('grants credits without an end if they were sold so', async () => {
    const { workflow, invoiceId } = await waitingPack();
    const { content } = workflow;
    if (content.type !== 'purchase') throw new Error('it is no pack');
    const purchase = { ...content.purchase, expiresAfterDays: null };
    const fate = { invoiceId, status: 'paid' } as const;
    expect(await settle(workflow, fate, { content: { ...content, purchase } })).toBe('succeeded');
    expect(await expiries()).toMatchObject([{ expiresAt: null }]);
  });

  test.each([
    ['all', 0, { isPaidByCredit: true }],
    ['a part', 1_500, {}],
    // As a worker of an earlier version kept it.
    ['an unknown part', undefined, {}],
  ])('shows whether the customer’s credit paid it: %s of it', async (_part, amountDue, paid) => {
    const { workflow, invoiceId } = await waitingPack();
    const due = amountDue === undefined ? {} : { amountDue };
    await settle(workflow, { invoiceId, status: 'paid', ...due });
    expect((await look(workflow)).result).toEqual({
      charged: PRICE,
      invoiceId,
      receiptId: workflow.runId,
      ...paid,
    });
  });

  test.each([
    ['another amount', { amount: 1_999, currency: 'usd' }, 'paid 1999 usd, not 2000 usd'],
    ['another currency', { amount: 2_000, currency: 'jpy' }, 'paid 2000 jpy, not 2000 usd'],
  ])('I5: with %s is for a person, and grants no credit', async (_what, total, reason) => {
    const { workflow, invoiceId } = await waitingPack();
    expect(await settle(workflow, { invoiceId, status: 'paid', total })).toBe('parked');
    expect(await look(workflow)).toMatchObject({
      status: 'pending',
      reviewReason: `${reason}: invoice ${invoiceId}`,
    });
    expect(await expiries()).toEqual([]);
  });

  test('I23: of a purchase that has failed is for a person, and grants no credit', async () => {
    const { workflow, invoiceId } = await waitingPack();
    expect(await settle(workflow, { invoiceId, status: 'void' })).toBe('failed');
    expect(await settle(workflow, { invoiceId, status: 'paid' })).toBe('parked');
    expect(await look(workflow)).toMatchObject({
      status: 'failed',
      reviewReason: `paid after the run ended as failed: invoice ${invoiceId}`,
    });
    expect(await expiries()).toEqual([]);
  });

  test('beside the purchase’s own is for a person, and names both', async () => {
    const { workflow, invoiceId } = await waitingPack();
    expect(await settle(workflow, { invoiceId: 'in_copy', status: 'paid' })).toBe('parked');
    expect(await look(workflow)).toMatchObject({
      status: 'pending',
      reviewReason: `paid beside ${invoiceId}: invoice in_copy`,
    });
    expect(await expiries()).toEqual([]);
  });

  test('of a purchase that has not noted an invoice is for a person, and grants no credit', async () => {
    const { workflow, invoiceId } = await waitingPack();
    expect(await settle(workflow, { invoiceId, status: 'paid' }, { invoiceId: null })).toBe(
      'parked',
    );
    expect(await look(workflow)).toMatchObject({
      status: 'pending',
      reviewReason: `paid before the run had an invoice: invoice ${invoiceId}`,
    });
    expect(await expiries()).toEqual([]);
  });
});

describe('an invoice that is void or deleted', () => {
  const GONE: InvoiceStatus[] = ['void', 'deleted'];

  test.each(GONE)('(%s) ends the wait for a customer, without a charge', async (status) => {
    const { workflow, invoiceId } = await waitingPack();
    expect(await settle(workflow, { invoiceId, status })).toBe('failed');
    expect(await look(workflow)).toMatchObject({
      status: 'failed',
      message: 'The purchase was not paid in time. Buy again.',
      result: { charged: null, invoiceId },
    });
    // The next report changes an ended purchase no more.
    expect(await settle(workflow, { invoiceId, status })).toBe('unchanged');
    expect(await look(workflow)).toMatchObject({ status: 'failed', reviewReason: null });
  });

  test.each(GONE)('(%s) leaves a purchase by invoice to its own steps', async (status) => {
    const { workflow, invoiceId } = await waitingPack('invoiced');
    expect(await settle(workflow, { invoiceId, status })).toBe('unchanged');
    expect(await look(workflow)).toMatchObject({ status: 'pending', reviewReason: null });
  });

  test.each(GONE)('(%s) after its credits were granted is for a person', async (status) => {
    const { workflow, invoiceId } = await waitingPack();
    await settle(workflow, { invoiceId, status: 'paid' });
    expect(await settle(workflow, { invoiceId, status })).toBe('parked');
    expect(await look(workflow)).toMatchObject({
      status: 'success',
      reviewReason: `void after it was paid and granted: invoice ${invoiceId}`,
    });
    expect(await expiries()).toHaveLength(1);
  });

  test.each(GONE)('(%s) and is a copy has no effect', async (status) => {
    const { workflow } = await waitingPack();
    expect(await settle(workflow, { invoiceId: 'in_copy', status })).toBe('unchanged');
    expect(await look(workflow)).toMatchObject({ status: 'pending', reviewReason: null });
  });
});

test.each<InvoiceStatus>(['draft', 'open', 'uncollectible'])(
  'an invoice that may still be paid (%s) leaves the purchase waiting',
  async (status) => {
    const { workflow, invoiceId } = await waitingPack();
    expect(await settle(workflow, { invoiceId, status })).toBe('unchanged');
    expect(await look(workflow)).toMatchObject({ status: 'pending', reviewReason: null });
    expect(await expiries()).toEqual([]);
  },
);
