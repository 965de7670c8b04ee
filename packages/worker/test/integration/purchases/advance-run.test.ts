import { collectEverything } from '@sluice/billing-vendor/simulator/simulator-controls';
import { FAULT_KINDS } from '@sluice/billing-vendor/simulator/engine/simulator-faults';
import { findRun, listDueRuns, lockRun, parkRun, type Run } from '@sluice/database/billing/runs';
import { releaseSetAsideRun } from '@sluice/database/billing/set-aside-runs';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { failSetAsideRun } from '../../../src/settlement/end-run.ts';
import { settleInvoice } from '../../../src/settlement/settle-invoice.ts';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

let world: Purchases;
beforeEach(async () => {
  world = await startPurchases();
});

/** One charge for each purchase that succeeded, none for the others; grants to match. */
async function expectBooksToMatch(): Promise<void> {
  const { rows: ended } = await sql<{ runId: string }>`
    select run_id as "runId" from runs where status = 'success'`.execute(world.database);
  const charged = world.succeeded().map((charge) => charge.runId);
  expect(new Set(charged)).toEqual(new Set(ended.map((run) => run.runId)));
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

describe('a pack on the invoiced rail', () => {
  test('I1: is charged once to the card on file and granted', async () => {
    const accountId = await world.addAccount('pm_card_visa');
    const run = await world.buyPack(accountId);
    expect(await world.advance(run)).toBe('ended');
    expect(world.charges()).toMatchObject([
      { amount: 2_000, status: 'succeeded', runId: run.runId },
    ]);
    expect(await world.balance(accountId)).toBe(100);
    expect((await world.steps(run)).map((step) => `${step.step} ${step.state}`)).toEqual([
      'customer done',
      'invoice done',
      'line done',
      'finalize done',
      'pay done',
    ]);
    await expectBooksToMatch();
  });

  test('I4: that is declined grants nothing, tells a safe message, and leaves nothing to collect', async () => {
    const accountId = await world.addAccount('pm_card_chargeCustomerFail');
    const run = await world.finish(await world.buyPack(accountId));
    expect(run).toMatchObject({
      status: 'declined',
      message: 'The card was declined. Use another payment method, or ask the card issuer.',
      result: { charged: null },
    });
    const customer = await world.vendor.findCustomer(accountId, `billing-${accountId}@example.com`);
    if (customer.outcome === 'ok')
      await world.vendor.setDefaultCard(customer.value!, 'pm_card_visa');
    expect(await world.balance(accountId)).toBe(0);
    await expectBooksToMatch();
  });

  test('without a card on file fails, and leaves nothing to collect', async () => {
    const run = await world.finish(await world.buyPack(await world.addAccount(null)));
    expect(run).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/payment method on file/),
    });
    await expectBooksToMatch();
  });
});

describe.each(['pm_card_visa', 'pm_card_chargeCustomerFail'])(
  'whatever the vendor does (%s)',
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
        const run = await world.finishHastily(await world.buyPack(accountId));
        expect(run.status).toBe(card === 'pm_card_visa' ? 'success' : 'declined');
        expect(await world.balance(accountId)).toBe(card === 'pm_card_visa' ? 100 : 0);
        await expectBooksToMatch();
      },
    );
  },
);

test('I18: an outage of five minutes that the vendor answers with 500 sets no purchase aside', async () => {
  const run = await world.buyPack(await world.addAccount('pm_card_visa'));
  world.simulator.faults.add({ kind: 'error', path: '/invoices', method: 'POST', count: 1_000 });
  // As the sweep does: whenever its time has come.
  for (let seconds = 0; seconds < 300; seconds++) {
    const due = await listDueRuns(world.database, world.deps.now(), 1);
    if (due.length > 0) expect(await world.advance(run)).toBe('waiting');
    world.clock.aheadMs += 1_000;
  }
  world.simulator.faults.clear();
  expect(await world.finish(run)).toMatchObject({ status: 'success' });
  await expectBooksToMatch();
});

test('a purchase that was set aside because a step failed too often goes on once it is released', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const run = await world.buyPack(accountId);
  world.simulator.faults.add({ kind: 'error', path: '/invoices', method: 'POST', count: 1_000 });
  const look = () => findRun(world.database, accountId, run.runId);
  for (let hour = 0; (await look())?.reviewReason === null; hour++) {
    expect(hour).toBeLessThan(30);
    await world.turn(run);
    world.clock.aheadMs += 3_600_000;
  }
  world.simulator.faults.clear();
  await releaseSetAsideRun(
    world.database,
    run.runId,
    { actor: { type: 'system' } },
    world.deps.now(),
  );
  expect(await world.finish(run)).toMatchObject({ status: 'success', reviewReason: null });
  expect(await world.balance(accountId)).toBe(100);
  await expectBooksToMatch();
});

test('a purchase that was set aside and cannot go on is ended by a person, and the account buys again', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const run = await world.buyPack(accountId);
  expect(await failSetAsideRun(world.database, run.runId, world.deps.now())).toBeUndefined();
  await parkRun(world.database, run, 'paid 2420 usd, not 2000 usd');
  expect(await failSetAsideRun(world.database, run.runId, world.deps.now())).toMatchObject({
    runId: run.runId,
    status: 'pending',
  });
  expect(await findRun(world.database, accountId, run.runId)).toMatchObject({
    status: 'failed',
    reviewReason: null,
    result: { charged: null },
  });
  expect(await failSetAsideRun(world.database, run.runId, world.deps.now())).toBeUndefined();
  expect(await world.balance(accountId)).toBe(0);
  const next = await world.finish(await world.buyPack(accountId));
  expect(next).toMatchObject({ status: 'success' });
  await expectBooksToMatch();
});

test('I19: a run that rested for more than 23 hours looks up what was done instead of asking again', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const run = await world.buyPack(accountId);
  world.simulator.faults.add({ kind: 'timeout_after', path: '/pay', count: 1 });
  expect(await world.advance(run, { vendor: world.hastyVendor })).toBe('waiting');
  expect(world.succeeded()).toHaveLength(1);
  // The vendor has forgotten every key, so asking again would charge again.
  world.simulator.state.advanceClock(25 * 3_600_000);
  world.clock.aheadMs += 25 * 3_600_000;
  expect(await world.finish(run)).toMatchObject({ status: 'success' });
  await expectBooksToMatch();
});

test('I16: a worker that was overtaken writes nothing, and there is one charge', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const run = await world.buyPack(accountId);
  let overtake = true;
  const outcome = await world.advance(run, {
    async onPoint(point) {
      if (point !== 'after-vendor:pay' || !overtake) return;
      overtake = false;
      await sql`update runs set lease_until = null`.execute(world.database);
      expect(await world.advance(run)).toBe('ended');
    },
  });
  expect(outcome).toBe('overtaken');
  expect(await world.balance(accountId)).toBe(100);
  await expectBooksToMatch();
});

test('two workers woken for one run: one works on it', async () => {
  const run = await world.buyPack(await world.addAccount('pm_card_visa'));
  const outcomes = await Promise.all([world.advance(run), world.advance(run), world.advance(run)]);
  expect(outcomes.toSorted()).toEqual(['ended', 'overtaken', 'overtaken']);
  await expectBooksToMatch();
});

describe('a pack on the card rail', () => {
  test('waits for its customer, and is granted by the time the vendor says it is paid', async () => {
    const accountId = await world.addAccount(null, 'card');
    const run = await world.buyPack(accountId, 'card');
    expect(await world.advance(run)).toBe('waiting');
    await world.confirm(run);
    expect(await world.balance(accountId)).toBe(0);
    expect(await world.advance(run)).toBe('ended');
    expect(await world.balance(accountId)).toBe(100);
    await expectBooksToMatch();
  });

  test('that nobody pays in time is void, and cannot be paid any more', async () => {
    const accountId = await world.addAccount(null, 'card');
    const run = await world.buyPack(accountId, 'card');
    await world.advance(run);
    world.clock.aheadMs += 3_700_000;
    expect(await world.finish(run)).toMatchObject({
      status: 'failed',
      message: 'The purchase was not paid in time.',
    });
    await world.confirm(run);
    await expectBooksToMatch();
  });

  test('paid in the moment in which its time is over is a success', async () => {
    const run = await world.buyPack(await world.addAccount(null, 'card'), 'card');
    await world.advance(run);
    world.clock.aheadMs += 3_700_000;
    await world.confirm(run);
    expect(await world.finish(run)).toMatchObject({ status: 'success' });
    await expectBooksToMatch();
  });
});

test('I3: worker, event, reconciler and repetitions at the same moment grant once', async () => {
  const accountId = await world.addAccount(null, 'card');
  const run = await world.buyPack(accountId, 'card');
  await world.advance(run);
  await world.confirm(run);
  const invoice = {
    invoiceId: (await world.steps(run)).findLast((step) => step.step === 'invoice')!
      .output as never,
    status: 'paid',
    total: { amount: 2_000, currency: 'usd' },
  } as const;
  const { invoiceId } = invoice.invoiceId as { invoiceId: string };
  const settle = () =>
    world.database.transaction().execute(async (transaction) => {
      const locked = await lockRun(transaction, run);
      return settleInvoice(transaction, locked!, { ...invoice, invoiceId }, Date.now());
    });
  const settlements = await Promise.all([
    ...Array.from({ length: 60 }, settle),
    world.advance(run),
  ]);
  expect(settlements.filter((each) => each === 'succeeded' || each === 'ended')).toHaveLength(1);
  expect(await world.balance(accountId)).toBe(100);
  await expectBooksToMatch();
});

test.each([
  ['another amount', { amount: 1_999, currency: 'usd' }],
  ['another currency', { amount: 2_000, currency: 'jpy' }],
])('I5: an invoice that was paid with %s is set aside and grants nothing', async (_what, total) => {
  const accountId = await world.addAccount('pm_card_visa');
  const run = await world.buyPack(accountId);
  const settled = await world.database.transaction().execute(async (transaction) => {
    const locked = await lockRun(transaction, run);
    return settleInvoice(transaction, locked!, { invoiceId: 'in_1', status: 'paid', total }, 0);
  });
  expect(settled).toBe('parked');
  expect(await world.balance(accountId)).toBe(0);
});

test('I23: paid after it was declined, and void after it was granted, are set aside and not applied', async () => {
  const accountId = await world.addAccount('pm_card_chargeCustomerFail');
  const declined = await world.finish(await world.buyPack(accountId));
  const settle = (status: 'paid' | 'void', run: Run) =>
    world.database.transaction().execute(async (transaction) => {
      const locked = await lockRun(transaction, run);
      const total = { amount: 2_000, currency: 'usd' };
      const invoiceId = run.invoiceId!;
      return settleInvoice(transaction, locked!, { invoiceId, status, total }, Date.now());
    });
  expect(await settle('paid', declined)).toBe('parked');
  expect(await world.balance(accountId)).toBe(0);
  const other = await world.addAccount('pm_card_visa');
  const granted = await world.finish(await world.buyPack(other));
  expect(await settle('void', granted)).toBe('parked');
  expect(await world.balance(other)).toBe(100);
});
