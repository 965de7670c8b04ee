/** Answers of the payment provider about money that went back. */
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import {
  failRefund,
  refundCharge,
} from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import {
  findPurchaseWorkflow,
  sendPurchaseToReview,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { releasePurchaseFromReview } from '@sluice/database/billing/purchases-in-review';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { failPurchaseInReview } from '../../../src/settlement/end-purchase-workflow.ts';
import { settleReversal } from '../../../src/settlement/settle-reversal.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const chargeIdOf = (workflow: PurchaseWorkflow): string =>
  world.succeeded().find((charge) => charge.runId === workflow.runId)!.id;
const refund = (chargeId: string, amount?: number) =>
  refundCharge(world.simulator.state, chargeId, amount);
const look = async (workflow: PurchaseWorkflow) =>
  (await findPurchaseWorkflow(world.database, workflow.accountId, workflow.runId))!;
const reversalOf = async (workflow: PurchaseWorkflow) => (await look(workflow)).result?.reversal;
const settle = (chargeId: string, provider: PaymentProvider = world.provider) =>
  settleReversal({ ...world.deps, provider }, 'charge', chargeId);

async function boughtPack() {
  const workflow = await world.finish(await world.buyPack(await world.addAccount('pm_card_visa')));
  return { workflow, chargeId: chargeIdOf(workflow) };
}

async function boughtPlan() {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  return { workflow, chargeId: chargeIdOf(workflow) };
}

/** The provider that notes the names of its calls. */
function noting(calls: string[]): PaymentProvider {
  return new Proxy(world.provider, {
    get:
      (provider, name: keyof PaymentProvider) =>
      (...parameters: never[]) => {
        calls.push(name);
        return (provider[name] as (...given: never[]) => unknown)(...parameters);
      },
  });
}

test('a refund that contradicts no earlier one is looked at once', async () => {
  const { workflow, chargeId } = await boughtPack();
  refund(chargeId);
  const calls: string[] = [];
  expect(await settle(chargeId, noting(calls))).toBe(true);
  expect(calls).toEqual(['readPayment', 'findInvoice']);
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 100 });
});

test('I22: of a foreign charge neither invoice nor credit is asked for, and no purchase is read', async () => {
  const { workflow, chargeId } = await boughtPlan();
  const { state } = world.simulator;
  const charge = state.get('charge', chargeId)!;
  state.save('charge', { ...charge, id: 'ch_else', payment_intent: null });
  const invoice = state.get('invoice', workflow.result!.invoiceId!)!;
  state.save('invoice', { ...invoice, customer: 'cus_else' });
  refund(chargeId);
  const calls: string[] = [];
  const sent = await statementsSentBy(async () => {
    for (const id of ['ch_none', 'ch_else', chargeId])
      expect(await settle(id, noting(calls))).toBe(true);
  });
  expect(calls).toEqual(['readPayment', 'readPayment', 'readPayment', 'findInvoice']);
  expect(sent.filter(({ text }) => /\bruns\b/.test(text))).toEqual([]);
});

test('the refund of a renewal is settled, and reads no purchase', async () => {
  const { workflow } = await boughtPlan();
  world.moveClocks(32 * 86_400_000);
  const renewal = world.succeeded().at(-1)!;
  expect(renewal).toMatchObject({ runId: null, amount: 100_000 });
  refund(renewal.id);
  const sent = await statementsSentBy(async () => expect(await settle(renewal.id)).toBe(true));
  expect(sent.filter(({ text }) => /\bruns\b/.test(text))).toEqual([]);
  expect(await reversalOf(workflow)).toBeUndefined();
});

const UNKNOWN = { outcome: 'unknown', reason: 'no answer', isFinal: false } as const;
const REFUSED = { outcome: 'refused', code: 'gone' } as const;

test.each(['readPayment', 'findInvoice', 'listInvoicesOfSubscription'] as const)(
  'a refund about which the payment provider does not answer (%s) is looked at again',
  async (call) => {
    const { workflow, chargeId } = await boughtPlan();
    refund(chargeId);
    const provider = { ...world.provider, [call]: () => Promise.resolve(UNKNOWN) };
    expect(await settle(chargeId, provider)).toBe(false);
    expect(await reversalOf(workflow)).toBeUndefined();
    expect(await settle(chargeId)).toBe(true);
    expect(await reversalOf(workflow)).toMatchObject({ isWhole: true });
  },
);

test.each(['readPayment', 'findInvoice'] as const)(
  'a question that the payment provider refuses (%s) is not asked again',
  async (call) => {
    const { workflow, chargeId } = await boughtPack();
    refund(chargeId);
    const provider = { ...world.provider, [call]: () => Promise.resolve(REFUSED) };
    expect(await settle(chargeId, provider)).toBe(true);
    expect(await reversalOf(workflow)).toBeUndefined();
  },
);

test('a refund of a purchase that is still pending is looked at again', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.checkout(accountId, 'premium_month');
  let isSettled: boolean | undefined;
  await world.advance(workflow, {
    async onPoint(point) {
      if (point !== 'after-vendor:subscribe') return;
      refund(chargeIdOf(workflow));
      isSettled = await settle(chargeIdOf(workflow));
    },
  });
  expect(isSettled).toBe(false);
  expect(await settle(chargeIdOf(workflow))).toBe(true);
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true });
});

test('a refund that another worker has read later and written earlier needs no person', async () => {
  const { workflow, chargeId } = await boughtPack();
  refund(chargeId, 700);
  let isFirst = true;
  const provider: PaymentProvider = {
    ...world.provider,
    async readPayment(about, id) {
      const read = await world.provider.readPayment(about, id);
      if (!isFirst) return read;
      isFirst = false;
      refund(chargeId);
      expect(await settle(chargeId)).toBe(true);
      return read;
    },
  };
  expect(await settle(chargeId, provider)).toBe(true);
  expect((await look(workflow)).reviewReason).toBeNull();
  expect(await reversalOf(workflow)).toMatchObject({ amount: { amount: 2_000 }, isWhole: true });
});

test('a refund that failed is reported to a person once its second look has an answer', async () => {
  const { workflow, chargeId } = await boughtPack();
  refund(chargeId);
  expect(await settle(chargeId)).toBe(true);
  // Less than before: the payment provider is asked twice.
  const { state } = world.simulator;
  for (const { id } of state.list('refund')) failRefund(state, id);
  let askedCount = 0;
  const provider: PaymentProvider = {
    ...world.provider,
    readPayment: (about, id) =>
      askedCount++ === 0 ? world.provider.readPayment(about, id) : Promise.resolve(UNKNOWN),
  };
  expect(await settle(chargeId, provider)).toBe(false);
  expect((await look(workflow)).reviewReason).toBeNull();
  const logged: unknown[] = [];
  const logger = createLogger('test', 'silent');
  logger.error = (fields: unknown) => logged.push(fields);
  expect(await settleReversal({ ...world.deps, logger }, 'charge', chargeId)).toBe(true);
  expect((await look(workflow)).reviewReason).toMatch(/^of its price 2000 had gone back/);
  expect(logged).toEqual([{ runId: workflow.runId }]);
});

test('the refund of a purchase that had failed, and was paid afterwards, leaves it as it is', async () => {
  const accountId = await world.addAccount(null, 'card');
  const workflow = await world.buyPack(accountId, 'card');
  expect(await world.advance(workflow)).toBe('waiting');
  await sendPurchaseToReview(world.database, workflow, 'looked at');
  await failPurchaseInReview(world.database, workflow.runId, world.deps.now());
  await world.confirm(workflow);
  await world.tellEvents();
  expect(await look(workflow)).toMatchObject({
    status: 'failed',
    reviewReason: expect.stringMatching(/^paid after the run ended as failed/),
  });
  const origin = { actor: { type: 'system' } } as const;
  await releasePurchaseFromReview(world.database, workflow.runId, origin, world.deps.now());
  const before = await look(workflow);
  expect(before.reviewReason).toBeNull();
  refund(chargeIdOf(workflow));
  await world.tellEvents();
  expect(await look(workflow)).toEqual(before);
  const { rows } = await sql`select type from vendor_events where settled_at is null`.execute(
    world.database,
  );
  expect(rows).toEqual([]);
});

test('a plan that is refunded in the moment in which its period ends keeps the allowance', async () => {
  const { workflow, chargeId } = await boughtPlan();
  refund(chargeId);
  const endsAtMs = world.deps.now();
  const { subscription, ...result } = (await look(workflow)).result!;
  const ended = { ...result, subscription: { ...subscription!, currentPeriodEndMs: endsAtMs } };
  await sql`update runs set result = ${JSON.stringify(ended)} where run_id = ${workflow.runId}`.execute(
    world.database,
  );
  const settled = await settleReversal({ ...world.deps, now: () => endsAtMs }, 'charge', chargeId);
  expect(settled).toBe(true);
  expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 0 });
  expect(await world.balance(workflow.accountId)).toBe(200);
});

test('the refund of an invoice that names another account leaves the purchase of its customer as it is', async () => {
  const { workflow, chargeId } = await boughtPack();
  const { state } = world.simulator;
  const invoice = state.get('invoice', workflow.invoiceId!)!;
  const metadata = { ...(invoice['metadata'] as object), account_id: '999999' };
  state.save('invoice', { ...invoice, metadata });
  refund(chargeId);
  expect(await settle(chargeId)).toBe(true);
  expect(await look(workflow)).toEqual(workflow);
});

/** The charge was for a paid copy of this invoice. */
function copyInvoice(invoiceId: string, chargeId: string, changes: object = {}): void {
  const { state } = world.simulator;
  const invoice = state.get('invoice', invoiceId)!;
  const metadata = { ...(invoice['metadata'] as object), ...changes };
  state.save('invoice', { ...invoice, id: 'in_copy', status: 'paid', metadata });
  const intent = state.get('payment_intent', state.get('charge', chargeId)!['payment_intent'])!;
  state.save('payment_intent', { ...intent, simulated_invoice: 'in_copy' });
}

test('the refund of a copy of a plan’s invoice is not the plan’s', async () => {
  const { workflow, chargeId } = await boughtPlan();
  copyInvoice(workflow.result!.invoiceId!, chargeId);
  refund(chargeId);
  expect(await settle(chargeId)).toBe(true);
  expect(await reversalOf(workflow)).toBeUndefined();
  expect(await world.balance(workflow.accountId)).toBe(200);
});

test('the refund of a copy of its invoice leaves a purchase that is still pending as it is', async () => {
  const { chargeId } = await boughtPack();
  const workflow = await world.buyPack(await world.addAccount(null, 'card'), 'card');
  expect(await world.advance(workflow)).toBe('waiting');
  const before = await look(workflow);
  copyInvoice(before.invoiceId!, chargeId);
  refund(chargeId);
  expect(await settle(chargeId)).toBe(true);
  expect(await look(workflow)).toEqual(before);
});

test('the refund of an invoice that names an unknown purchase is settled', async () => {
  const { workflow, chargeId } = await boughtPack();
  copyInvoice(workflow.invoiceId!, chargeId, { run_id: 'run_else' });
  refund(chargeId);
  expect(await settle(chargeId)).toBe(true);
  expect(await look(workflow)).toEqual(workflow);
});
