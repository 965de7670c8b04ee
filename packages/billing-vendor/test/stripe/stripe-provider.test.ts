import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stripe } from 'stripe';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { TEST_CARDS } from '../../src/simulator/engine/simulator-cards.ts';
import { collectEverything, listCharges } from '../../src/simulator/simulator-controls.ts';
import type { FaultKind } from '../../src/simulator/engine/simulator-faults.ts';
import {
  newCustomer,
  ok,
  openInvoice,
  startReceiver,
  startProvider,
  WEBHOOK_SECRET,
} from '../support/provider-under-test.ts';

const WAIT = { timeout: 20_000, interval: 20 };

test('of refunds and disputes, however many there are, the charges are listed', async () => {
  const { provider, simulator } = await startProvider();
  const { state } = simulator;
  for (let number = 1; number <= 101; number++)
    state.save('refund', { id: `re_${number}`, charge: `ch_${number}`, status: 'failed' });
  state.save('refund', { id: 're_none', charge: null });
  state.save('dispute', { id: 'du_1', charge: 'ch_1', status: 'won' });
  const first = await ok(provider.listReversedCharges('refund', undefined));
  const second = await ok(provider.listReversedCharges('refund', first.next));
  expect(first.items).toHaveLength(100);
  expect(first.items[0]).toBeNull();
  expect([...first.items, ...second.items]).toHaveLength(102);
  expect(second).toEqual({ items: ['ch_2', 'ch_1'] });
  expect(await ok(provider.listReversedCharges('dispute', undefined))).toEqual({ items: ['ch_1'] });
});

describe('an invoice', () => {
  test('is drafted, priced, finalized and paid by the card on file; the record has one charge', async () => {
    const { provider, simulator } = await startProvider();
    const customer = await newCustomer(provider, 'pm_card_visa');
    const open = await openInvoice(provider, customer);
    expect(open).toMatchObject({
      status: 'open',
      runId: 'run_1',
      total: { amount: 2_000, currency: 'usd' },
      clientSecret: expect.stringMatching(/^pi_\d+_secret_/),
    });
    expect(await ok(provider.payInvoice(open.invoiceId, 'run_1:pay:1'))).toMatchObject({
      status: 'paid',
    });
    expect(listCharges(simulator.state)).toMatchObject([
      { amount: 2_000, status: 'succeeded', runId: 'run_1', invoice: open.invoiceId },
    ]);
  });

  test('is paid by its customer who confirms with the client secret', async () => {
    const { provider, stripe } = await startProvider();
    const open = await openInvoice(provider, await newCustomer(provider));
    const secret = open.clientSecret ?? '';
    const intent = secret.split('_secret_')[0] ?? '';
    await stripe.paymentIntents.confirm(intent, {
      payment_method: 'pm_card_authenticationRequired',
    });
    expect(await ok(provider.findInvoice(open.invoiceId))).toMatchObject({ status: 'paid' });
  });

  test('cannot be paid without a card, and is found by its purchase', async () => {
    const { provider } = await startProvider();
    const customer = await newCustomer(provider);
    const open = await openInvoice(provider, customer);
    expect(await provider.payInvoice(open.invoiceId, 'k')).toMatchObject({ outcome: 'refused' });
    expect(await ok(provider.findInvoiceOfRun(customer, 'run_1'))).toMatchObject({
      invoiceId: open.invoiceId,
    });
    expect(await ok(provider.findInvoiceOfRun(customer, 'run_2'))).toBeNull();
    expect(await ok(provider.findCustomer(7, 'billing-7@example.com'))).toBe(customer);
  });

  test.each(['pm_card_chargeCustomerFail', 'pm_card_authenticationRequired'])(
    'that %s declines is voided, and no card and no retry can collect it afterwards',
    async (card) => {
      const { provider, simulator } = await startProvider();
      const customer = await newCustomer(provider, card);
      const open = await openInvoice(provider, customer);
      expect(await provider.payInvoice(open.invoiceId, 'k')).toMatchObject({ outcome: 'declined' });
      expect(await ok(provider.discardInvoice(open.invoiceId, 'v'))).toMatchObject({
        status: 'void',
      });
      await ok(provider.setDefaultCard(customer, 'pm_card_visa'));
      expect(await provider.payInvoice(open.invoiceId, 'k2')).toMatchObject({ outcome: 'refused' });
      expect(collectEverything(simulator.state)).toEqual([]);
      expect(listCharges(simulator.state).map((charge) => charge.status)).toEqual(['failed']);
    },
  );

  test('that the payment provider has given up collecting is voided too, for it could still be paid', async () => {
    const { provider, simulator } = await startProvider();
    const customer = await newCustomer(provider, 'pm_card_visa');
    const open = await openInvoice(provider, customer);
    const { state } = simulator;
    state.save('invoice', { ...state.get('invoice', open.invoiceId)!, status: 'uncollectible' });
    expect(await ok(provider.discardInvoice(open.invoiceId, 'v'))).toMatchObject({
      status: 'void',
    });
    expect(await provider.payInvoice(open.invoiceId, 'p')).toMatchObject({ outcome: 'refused' });
    expect(listCharges(state)).toEqual([]);
  });

  test('is deleted while it is a draft, and stays as it is once it is paid', async () => {
    const { provider } = await startProvider();
    const customerId = await newCustomer(provider, 'pm_card_visa');
    const draft = await ok(
      provider.createInvoice({ customerId, accountId: 7, runId: 'run_9', currency: 'usd' }, 'k9'),
    );
    expect(await ok(provider.discardInvoice(draft.invoiceId, 'd'))).toMatchObject({
      status: 'deleted',
    });
    expect(await ok(provider.discardInvoice(draft.invoiceId, 'd'))).toMatchObject({
      status: 'deleted',
    });
    const open = await openInvoice(provider, customerId);
    await ok(provider.payInvoice(open.invoiceId, 'p'));
    expect(await ok(provider.discardInvoice(open.invoiceId, 'v'))).toMatchObject({
      status: 'paid',
    });
  });
});

test('every test card that cannot be saved is declined with its own code', async () => {
  const { provider } = await startProvider();
  const customer = await newCustomer(provider);
  for (const [id, card] of Object.entries(TEST_CARDS).filter(([, each]) => !each.canAttach)) {
    expect(await provider.setDefaultCard(customer, id)).toEqual({
      outcome: 'declined',
      declineCode: card.decline?.declineCode ?? card.decline?.code,
    });
  }
});

describe('idempotency', () => {
  test('the same key and request give the same answer; another request under it is refused', async () => {
    const { provider, simulator } = await startProvider();
    const customer = await newCustomer(provider, 'pm_card_visa');
    const open = await openInvoice(provider, customer);
    const first = await provider.payInvoice(open.invoiceId, 'pay');
    expect(await provider.payInvoice(open.invoiceId, 'pay')).toEqual(first);
    expect(listCharges(simulator.state)).toHaveLength(1);
    expect(await provider.finalizeInvoice(open.invoiceId, 'pay')).toMatchObject({
      outcome: 'unknown',
      isFinal: true,
    });
  });

  test('a decline is replayed as a decline', async () => {
    const { provider, simulator } = await startProvider();
    const customer = await newCustomer(provider, 'pm_card_chargeCustomerFail');
    const open = await openInvoice(provider, customer);
    const first = await provider.payInvoice(open.invoiceId, 'pay');
    await ok(provider.setDefaultCard(customer, 'pm_card_visa'));
    expect(await provider.payInvoice(open.invoiceId, 'pay')).toEqual(first);
    expect(listCharges(simulator.state)).toHaveLength(1);
  });

  test('a key is forgotten after 24 hours, as the payment provider allows', async () => {
    const { provider, simulator } = await startProvider();
    const customerId = await newCustomer(provider);
    const invoice = { customerId, accountId: 7, runId: 'run_1', currency: 'usd' };
    const first = await ok(provider.createInvoice(invoice, 'k'));
    simulator.state.advanceClock(25 * 3_600_000);
    const second = await ok(provider.createInvoice(invoice, 'k'));
    expect(second.invoiceId).not.toBe(first.invoiceId);
  });
});

describe('faults', () => {
  const cases: [FaultKind, { isDone: boolean; isRepeatedSame: boolean }][] = [
    ['conflict', { isDone: false, isRepeatedSame: false }],
    ['rate_limit', { isDone: false, isRepeatedSame: false }],
    ['error', { isDone: false, isRepeatedSame: true }],
    ['error_after', { isDone: true, isRepeatedSame: true }],
    ['timeout', { isDone: false, isRepeatedSame: false }],
    ['timeout_after', { isDone: true, isRepeatedSame: false }],
  ];
  test.each(cases)(
    '%s leaves the outcome unknown, and repeating the key never pays twice',
    async (kind, { isDone, isRepeatedSame }) => {
      const { provider, hastyProvider, simulator } = await startProvider();
      const customer = await newCustomer(provider, 'pm_card_visa');
      const open = await openInvoice(provider, customer);
      const met = simulator.faults.meet({ kind, path: '/pay' });
      const asked = kind.startsWith('timeout') ? hastyProvider : provider;
      expect(await asked.payInvoice(open.invoiceId, 'pay')).toMatchObject({ outcome: 'unknown' });
      // On a busy machine it may come after the caller has given up.
      await met;
      expect(listCharges(simulator.state)).toHaveLength(isDone ? 1 : 0);
      const again = await provider.payInvoice(open.invoiceId, 'pay');
      if (isRepeatedSame) expect(again).toMatchObject({ outcome: 'unknown', isFinal: true });
      else expect(again).toMatchObject({ outcome: 'ok', value: { status: 'paid' } });
      expect(listCharges(simulator.state)).toHaveLength(isDone || !isRepeatedSame ? 1 : 0);
    },
  );

  test.each(['reset', 'reset_after'] as const)(
    'the SDK repeats a %s by itself under the same key: one charge',
    async (kind) => {
      const { provider, simulator } = await startProvider();
      const customer = await newCustomer(provider, 'pm_card_visa');
      const open = await openInvoice(provider, customer);
      simulator.faults.add({ kind, path: '/pay', count: 1 });
      const first = await provider.payInvoice(open.invoiceId, 'pay');
      const settled =
        first.outcome === 'ok' ? first : await provider.payInvoice(open.invoiceId, 'pay');
      expect(settled).toMatchObject({ outcome: 'ok', value: { status: 'paid' } });
      expect(listCharges(simulator.state)).toHaveLength(1);
    },
  );

  test('while a slow request runs its key is in use, and its answer is kept', async () => {
    const { provider, simulator } = await startProvider();
    const open = await openInvoice(provider, await newCustomer(provider, 'pm_card_visa'));
    const answered = Promise.withResolvers<void>();
    const met = simulator.faults.meet({ kind: 'slow', path: '/pay', until: answered.promise });
    const slow = provider.payInvoice(open.invoiceId, 'pay');
    await met;
    expect(await provider.payInvoice(open.invoiceId, 'pay')).toMatchObject({ outcome: 'unknown' });
    answered.resolve();
    const paid = await slow;
    expect(paid).toMatchObject({ outcome: 'ok' });
    expect(await provider.payInvoice(open.invoiceId, 'pay')).toEqual(paid);
    expect(listCharges(simulator.state)).toHaveLength(1);
  });
});

describe('events', () => {
  const paidOnce = async (world: Awaited<ReturnType<typeof startProvider>>) => {
    const open = await openInvoice(
      world.provider,
      await newCustomer(world.provider, 'pm_card_visa'),
    );
    await ok(world.provider.payInvoice(open.invoiceId, 'pay'));
  };

  test('are signed as the payment provider signs, and sent again until they are taken', async () => {
    const receiver = await startReceiver([500, 500, 500]);
    const world = await startProvider({ webhookUrl: receiver.url });
    await paidOnce(world);
    await vi.waitFor(() => expect(world.simulator.state.list('event')).toEqual([]), WAIT);
    const stripe = new Stripe('sk_test');
    const events = receiver.received.map(({ body, signature }) =>
      stripe.webhooks.constructEvent(body, signature, WEBHOOK_SECRET),
    );
    const paid = events.filter((event) => event.type === 'invoice.paid');
    expect(paid.length).toBeGreaterThanOrEqual(1);
    expect(events.length).toBe(new Set(events.map((event) => event.id)).size + 3);
  });

  test('can be held back, and be sent twice', async () => {
    const receiver = await startReceiver();
    const world = await startProvider({ webhookUrl: receiver.url });
    world.simulator.treatment.isHeld = true;
    world.simulator.treatment.duplicateCount = 1;
    await paidOnce(world);
    const count = world.simulator.state.list('event').length;
    expect(receiver.received).toEqual([]);
    world.simulator.treatment.isHeld = false;
    await vi.waitFor(() => expect(receiver.received).toHaveLength(2 * count), WAIT);
  });
});

test('the state of the simulator outlives its process', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-simulator-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'vendor.sqlite');
  const first = await startProvider({ file });
  const customer = await newCustomer(first.provider, 'pm_card_visa');
  const open = await openInvoice(first.provider, customer);
  await first.close();
  const second = await startProvider({ file });
  expect(await ok(second.provider.payInvoice(open.invoiceId, 'pay'))).toMatchObject({
    status: 'paid',
  });
  expect(await newCustomer(second.provider)).toBe(customer);
  expect(await newCustomer(second.provider, undefined, 8)).not.toBe(customer);
});

describe('a manual change at the payment provider', () => {
  test('a discount of the customer does not reduce a purchase, which is charged at its full price', async () => {
    const { provider, simulator } = await startProvider();
    const customerId = await newCustomer(provider, 'pm_card_visa');
    const customer = simulator.state.get('customer', customerId)!;
    simulator.state.save('customer', { ...customer, simulated_coupon: 'FIFTY' });
    const { invoiceId } = await openInvoice(provider, customerId);
    expect(await ok(provider.payInvoice(invoiceId, 'pay'))).toMatchObject({
      status: 'paid',
      total: { amount: 2_000, currency: 'usd' },
    });
  });
});
