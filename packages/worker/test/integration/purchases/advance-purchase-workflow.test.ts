import { collectEverything } from '@sluice/billing-vendor/simulator/simulator-controls';
import { FAULT_KINDS } from '@sluice/billing-vendor/simulator/engine/simulator-faults';
import {
  findPurchaseWorkflow,
  listDuePurchases,
  lockPurchaseWorkflow,
  sendPurchaseToReview,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { releasePurchaseFromReview } from '@sluice/database/billing/purchases-in-review';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { failPurchaseInReview } from '../../../src/settlement/end-purchase-workflow.ts';
import { settleInvoice } from '../../../src/settlement/settle-invoice.ts';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

let world: Purchases;
beforeEach(async () => {
  world = await startPurchases();
});

/** One charge for each purchase that succeeded, and only for those; grants to match. */
async function expectLedgersToMatch(): Promise<void> {
  const { rows: ended } = await sql<{ runId: string }>`
    select run_id as "runId" from runs where status = 'success'`.execute(world.database);
  const charged = world.succeeded().map((charge) => charge.runId);
  expect(new Set(charged)).toEqual(new Set(ended.map((workflow) => workflow.runId)));
  expect(charged).toHaveLength(ended.length);
  const { rows: grants } = await sql<{ key: string }>`
    select transaction_key as key from credit_transactions where reason = 'grant'`.execute(
    world.database,
  );
  const invoices = world.succeeded().map((charge) => `grant:invoice:${charge.invoice}`);
  expect(new Set(grants.map((grant) => grant.key))).toEqual(new Set(invoices));
  expect(grants).toHaveLength(invoices.length);
  expect(collectEverything(world.simulator.state)).toEqual([]);
}

describe('a pack by invoice', () => {
  test('I1: is charged once to the card on file and granted', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    const workflow = await world.buyPack(accountId);
    expect(await world.advance(workflow)).toBe('ended');
    expect(world.charges()).toMatchObject([
      { amount: 2_000, status: 'succeeded', runId: workflow.runId },
    ]);
    expect(await world.balance(accountId)).toBe(100);
    expect((await world.steps(workflow)).map((step) => `${step.step} ${step.state}`)).toEqual([
      'customer done',
      'invoice done',
      'line done',
      'finalize done',
      'pay done',
    ]);
    await expectLedgersToMatch();
  });

  test('I4: that is declined grants no credit, has a safe message, and leaves no invoice to collect', async () => {
    const accountId = await world.addAccount('pm_card_chargeCustomerFail');
    const workflow = await world.finish(await world.buyPack(accountId));
    expect(workflow).toMatchObject({
      status: 'declined',
      message: 'The card was declined. Use another payment method, or ask the card issuer.',
      result: { charged: null },
    });
    const customer = await world.provider.findCustomer(
      accountId,
      `billing-${accountId}@example.com`,
    );
    if (customer.outcome === 'ok')
      await world.provider.setDefaultCard(customer.value!, 'pm_card_visa');
    expect(await world.balance(accountId)).toBe(0);
    await expectLedgersToMatch();
  });

  test('without a card on file fails, and leaves no invoice to collect', async () => {
    const workflow = await world.finish(await world.buyPack(await world.addAccount(null)));
    expect(workflow).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/payment method on file/),
    });
    await expectLedgersToMatch();
  });
});

describe.each(['pm_card_visa', 'pm_card_chargeCustomerFail'])(
  'with every fault of the payment provider (%s)',
  (card) => {
    test.each(FAULT_KINDS)(
      'I18: %s on every call ends in the right status with the right charges',
      async (kind) => {
        const accountId = await world.addAccount(card);
        for (const path of [
          '/customers',
          '/invoices',
          '/invoiceitems',
          '/finalize',
          '/pay',
          '/void',
        ])
          world.simulator.faults.add({ kind, path, method: 'POST', count: 1, delayMs: 300 });
        const workflow = await world.finishHastily(await world.buyPack(accountId));
        expect(workflow.status).toBe(card === 'pm_card_visa' ? 'success' : 'declined');
        expect(await world.balance(accountId)).toBe(card === 'pm_card_visa' ? 100 : 0);
        await expectLedgersToMatch();
      },
    );
  },
);

test('I18: an outage of five minutes that the payment provider answers with 500 sets no purchase aside', async () => {
  const workflow = await world.buyPack(await world.addAccount('pm_card_visa'));
  world.simulator.faults.add({ kind: 'error', path: '/invoices', method: 'POST', count: 1_000 });
  // As the reconcile loop does: whenever its time has come.
  for (let seconds = 0; seconds < 300; seconds++) {
    const due = await listDuePurchases(world.database, world.deps.now(), 1);
    if (due.length > 0) expect(await world.advance(workflow)).toBe('waiting');
    world.clock.aheadMs += 1_000;
  }
  world.simulator.faults.clear();
  expect(await world.finish(workflow)).toMatchObject({ status: 'success' });
  await expectLedgersToMatch();
});

test('a purchase that is in review because a step failed too often goes on once it is released', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.buyPack(accountId);
  world.simulator.faults.add({ kind: 'error', path: '/invoices', method: 'POST', count: 1_000 });
  const look = () => findPurchaseWorkflow(world.database, accountId, workflow.runId);
  for (let hour = 0; (await look())?.reviewReason === null; hour++) {
    expect(hour).toBeLessThan(30);
    await world.turn(workflow);
    world.clock.aheadMs += 3_600_000;
  }
  world.simulator.faults.clear();
  await releasePurchaseFromReview(
    world.database,
    workflow.runId,
    { actor: { type: 'system' } },
    world.deps.now(),
  );
  expect(await world.finish(workflow)).toMatchObject({ status: 'success', reviewReason: null });
  expect(await world.balance(accountId)).toBe(100);
  await expectLedgersToMatch();
});

test('a purchase in review that cannot go on is ended by a person, and the account buys again', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.buyPack(accountId);
  expect(
    await failPurchaseInReview(world.database, workflow.runId, world.deps.now()),
  ).toBeUndefined();
  await sendPurchaseToReview(world.database, workflow, 'paid 2420 usd, not 2000 usd');
  expect(
    await failPurchaseInReview(world.database, workflow.runId, world.deps.now()),
  ).toMatchObject({
    runId: workflow.runId,
    status: 'pending',
  });
  expect(await findPurchaseWorkflow(world.database, accountId, workflow.runId)).toMatchObject({
    status: 'failed',
    reviewReason: null,
    result: { charged: null },
  });
  expect(
    await failPurchaseInReview(world.database, workflow.runId, world.deps.now()),
  ).toBeUndefined();
  expect(await world.balance(accountId)).toBe(0);
  const next = await world.finish(await world.buyPack(accountId));
  expect(next).toMatchObject({ status: 'success' });
  await expectLedgersToMatch();
});

test('I19: a purchase workflow that rested for more than 23 hours looks up the payment instead of paying again', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.buyPack(accountId);
  world.simulator.faults.add({ kind: 'timeout_after', path: '/pay', count: 1 });
  expect(await world.advance(workflow, { provider: world.hastyProvider })).toBe('waiting');
  expect(world.succeeded()).toHaveLength(1);
  // The payment provider has forgotten every key, so asking again would charge again.
  world.simulator.state.advanceClock(25 * 3_600_000);
  world.clock.aheadMs += 25 * 3_600_000;
  expect(await world.finish(workflow)).toMatchObject({ status: 'success' });
  await expectLedgersToMatch();
});

test('I16: a worker that was overtaken writes no result, and there is one charge', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.buyPack(accountId);
  let overtake = true;
  const outcome = await world.advance(workflow, {
    async onPoint(point) {
      if (point !== 'after-vendor:pay' || !overtake) return;
      overtake = false;
      await sql`update runs set lease_until = null`.execute(world.database);
      expect(await world.advance(workflow)).toBe('ended');
    },
  });
  expect(outcome).toBe('overtaken');
  expect(await world.balance(accountId)).toBe(100);
  await expectLedgersToMatch();
});

test('two workers woken for one purchase workflow: one works on it', async () => {
  const workflow = await world.buyPack(await world.addAccount('pm_card_visa'));
  const outcomes = await Promise.all([
    world.advance(workflow),
    world.advance(workflow),
    world.advance(workflow),
  ]);
  expect(outcomes.toSorted()).toEqual(['ended', 'overtaken', 'overtaken']);
  await expectLedgersToMatch();
});

describe('a pack by card', () => {
  test('waits for its customer, and is granted by the time the payment provider reports it as paid', async () => {
    const accountId = await world.addAccount(null, 'card');
    const workflow = await world.buyPack(accountId, 'card');
    expect(await world.advance(workflow)).toBe('waiting');
    await world.confirm(workflow);
    expect(await world.balance(accountId)).toBe(0);
    expect(await world.advance(workflow)).toBe('ended');
    expect(await world.balance(accountId)).toBe(100);
    await expectLedgersToMatch();
  });

  test('that is not paid in time is void, and cannot be paid any more', async () => {
    const accountId = await world.addAccount(null, 'card');
    const workflow = await world.buyPack(accountId, 'card');
    await world.advance(workflow);
    world.clock.aheadMs += 3_700_000;
    expect(await world.finish(workflow)).toMatchObject({
      status: 'failed',
      message: 'The purchase was not paid in time. Buy again.',
    });
    await world.confirm(workflow);
    await expectLedgersToMatch();
  });

  test('paid in the moment in which its time is over is a success', async () => {
    const workflow = await world.buyPack(await world.addAccount(null, 'card'), 'card');
    await world.advance(workflow);
    world.clock.aheadMs += 3_700_000;
    await world.confirm(workflow);
    expect(await world.finish(workflow)).toMatchObject({ status: 'success' });
    await expectLedgersToMatch();
  });
});

test('I3: worker, event, reconciler and repetitions at the same moment grant once', async () => {
  const accountId = await world.addAccount(null, 'card');
  const workflow = await world.buyPack(accountId, 'card');
  await world.advance(workflow);
  await world.confirm(workflow);
  const invoice = {
    invoiceId: (await world.steps(workflow)).findLast((step) => step.step === 'invoice')!
      .output as never,
    status: 'paid',
    total: { amount: 2_000, currency: 'usd' },
  } as const;
  const { invoiceId } = invoice.invoiceId as { invoiceId: string };
  const settle = () =>
    world.database.transaction().execute(async (transaction) => {
      const locked = await lockPurchaseWorkflow(transaction, workflow);
      return settleInvoice(transaction, locked!, { ...invoice, invoiceId }, Date.now());
    });
  const settlements = await Promise.all([
    ...Array.from({ length: 60 }, settle),
    world.advance(workflow),
  ]);
  expect(settlements.filter((each) => each === 'succeeded' || each === 'ended')).toHaveLength(1);
  expect(await world.balance(accountId)).toBe(100);
  await expectLedgersToMatch();
});

test('I23: paid after it was declined, and void after it was granted, are set aside and not applied', async () => {
  const accountId = await world.addAccount('pm_card_chargeCustomerFail');
  const declined = await world.finish(await world.buyPack(accountId));
  const settle = (status: 'paid' | 'void', workflow: PurchaseWorkflow) =>
    world.database.transaction().execute(async (transaction) => {
      const locked = await lockPurchaseWorkflow(transaction, workflow);
      const total = { amount: 2_000, currency: 'usd' };
      const invoiceId = workflow.invoiceId!;
      return settleInvoice(transaction, locked!, { invoiceId, status, total }, Date.now());
    });
  expect(await settle('paid', declined)).toBe('parked');
  expect(await world.balance(accountId)).toBe(0);
  const other = await world.addAccount('pm_card_visa');
  const granted = await world.finish(await world.buyPack(other));
  expect(await settle('void', granted)).toBe('parked');
  expect(await world.balance(other)).toBe(100);
});
