/** A bank account on file: the payment provider takes the payment on at once, and sends its result days later. */
import { collectEverything } from '@sluice/billing-vendor/simulator/simulator-controls';
import {
  settleLatePayments,
  SETTLING_SECONDS,
} from '@sluice/billing-vendor/simulator/objects/simulator-late-payments';
import {
  findPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

const GOOD = 'pm_usBankAccount_success';
const BAD = 'pm_usBankAccount_insufficientFunds';

let world: Purchases;
beforeEach(async () => {
  world = await startPurchases();
});

/** The bank has decided, at the payment provider; our clock has moved as far. */
function settle(): void {
  world.simulator.state.advanceClock(SETTLING_SECONDS * 1_000);
  settleLatePayments(world.simulator.state);
  world.clock.aheadMs += SETTLING_SECONDS * 1_000;
}

const look = async (workflow: PurchaseWorkflow) =>
  (await findPurchaseWorkflow(world.database, workflow.accountId, workflow.runId))!;

async function expectGrants(count: number): Promise<void> {
  const { rows } = await sql`
    select transaction_key from credit_transactions where reason = 'grant'`.execute(world.database);
  expect(rows).toHaveLength(count);
}

async function expectSuccess(workflow: PurchaseWorkflow): Promise<void> {
  expect(await look(workflow)).toMatchObject({
    status: 'success',
    message: null,
    reviewReason: null,
    result: { charged: { amount: 2_000, currency: 'usd' } },
  });
  expect(world.charges()).toMatchObject([{ status: 'succeeded', runId: workflow.runId }]);
  expect(await world.balance(workflow.accountId)).toBe(100);
  await expectGrants(1);
}

async function expectDecline(workflow: PurchaseWorkflow): Promise<void> {
  expect(await look(workflow)).toMatchObject({
    status: 'declined',
    message: expect.stringMatching(/insufficient funds/),
    reviewReason: null,
    result: { charged: null },
  });
  expect(world.charges()).toMatchObject([{ status: 'failed', runId: workflow.runId }]);
  await expectGrants(0);
  expect(collectEverything(world.simulator.state)).toEqual([]);
}

describe('a pack that a bank account pays', () => {
  test('I1: is granted once when the bank has paid, and not before', async () => {
    const accountId = await world.addAccount(GOOD);
    const workflow = await world.buyPack(accountId);
    expect(await world.advance(workflow)).toBe('waiting');
    await world.tellEvents();
    await world.turn(workflow);
    expect(await look(workflow)).toMatchObject({ status: 'pending', reviewReason: null });
    expect(await world.balance(accountId)).toBe(0);
    settle();
    expect(await world.advance(workflow)).toBe('ended');
    await expectSuccess(workflow);
    await world.tellEvents();
    await expectSuccess(workflow);
  });

  test('I1: is granted by the event, if that comes before the worker looks', async () => {
    const workflow = await world.buyPack(await world.addAccount(GOOD));
    expect(await world.advance(workflow)).toBe('waiting');
    settle();
    await world.tellEvents();
    await expectSuccess(workflow);
    expect(await world.advance(workflow)).toBe('overtaken');
  });

  test('I4: is declined when the bank has not paid, with no invoice to collect and the lane free', async () => {
    const accountId = await world.addAccount(BAD);
    const workflow = await world.buyPack(accountId);
    expect(await world.advance(workflow)).toBe('waiting');
    settle();
    await world.tellEvents();
    expect(await world.advance(workflow)).toBe('ended');
    await expectDecline(workflow);
    await world.tellEvents();
    await expectDecline(workflow);
    expect(await world.buyPack(accountId)).toMatchObject({ status: 'pending' });
  });

  test('I4: ends if its invoice was made void by hand', async () => {
    const workflow = await world.buyPack(await world.addAccount(GOOD));
    await world.advance(workflow);
    const [invoice] = world.simulator.state.list('invoice');
    world.simulator.state.save('invoice', { ...invoice!, status: 'void' });
    expect(await world.finish(workflow)).toMatchObject({
      status: 'failed',
      message: 'The payment could not be made. Check the payment method on file.',
    });
    await expectGrants(0);
  });

  test('I23: paid after all, in the moment in which it is given up, is a success', async () => {
    const workflow = await world.buyPack(await world.addAccount(BAD));
    await world.advance(workflow);
    settle();
    await world.turn(workflow, 'before-intent:void');
    const customer = await world.provider.findCustomer(
      workflow.accountId,
      `billing-${workflow.accountId}@example.com`,
    );
    await world.provider.setDefaultCard(
      (customer.outcome === 'ok' && customer.value) || '',
      'pm_card_visa',
    );
    expect(collectEverything(world.simulator.state)).toHaveLength(1);
    expect(await world.finish(workflow)).toMatchObject({ status: 'success' });
    await expectGrants(1);
  });
});

describe.each([
  [GOOD, expectSuccess],
  [BAD, expectDecline],
])('a worker that dies while %s pays', (card, expectEnd) => {
  const points = ['after-intent:pay', 'after-vendor:pay', 'after-record:pay'] as const;
  test.each(points.flatMap((point) => [[point, 'before'] as const, [point, 'after'] as const]))(
    'I15: at %s, with the next one looking %s the bank decides, does not change the end',
    async (point, when) => {
      const workflow = await world.buyPack(await world.addAccount(card));
      await world.turn(workflow, point);
      // The payment provider has not been asked yet.
      if (when === 'before' || point === 'after-intent:pay') await world.turn(workflow);
      settle();
      await world.turn(workflow);
      await expectEnd(workflow);
    },
  );

  test('I21: and the events come before the worker writes the payment down', async () => {
    const workflow = await world.buyPack(await world.addAccount(card));
    await world.turn(workflow, 'after-vendor:pay');
    await world.tellEvents();
    settle();
    await world.tellEvents();
    await world.turn(workflow);
    await expectEnd(workflow);
  });

  test('I19: a payment under way for more than a day is looked up, not made again', async () => {
    const workflow = await world.buyPack(await world.addAccount(card));
    await world.turn(workflow, 'after-vendor:pay');
    world.simulator.state.advanceClock(25 * 3_600_000);
    world.clock.aheadMs += 25 * 3_600_000;
    await world.turn(workflow);
    expect(world.charges()).toMatchObject([{ status: 'pending' }]);
    expect(await look(workflow)).toMatchObject({ status: 'pending', reviewReason: null });
    settle();
    await world.turn(workflow);
    await expectEnd(workflow);
  });
});

test.each([
  'before-intent:void',
  'after-intent:void',
  'after-vendor:void',
  'after-record:void',
] as const)(
  'I15: a worker that dies at %s of a payment that failed is made good',
  async (point) => {
    const workflow = await world.buyPack(await world.addAccount(BAD));
    await world.turn(workflow);
    settle();
    await world.turn(workflow, point);
    expect(await look(workflow)).toMatchObject({ status: 'pending' });
    await world.turn(workflow);
    await expectDecline(workflow);
  },
);

test.each([
  [GOOD, { status: 'success' }, 1],
  [BAD, { status: 'failed', message: 'The purchase was not paid in time. Buy again.' }, 0],
])(
  'payment by card: %s that is still paying when the time is over is waited for',
  async (card, end, grants) => {
    const workflow = await world.buyPack(await world.addAccount(null, 'card'), 'card');
    expect(await world.advance(workflow)).toBe('waiting');
    await world.confirm(workflow, card);
    world.clock.aheadMs += 3_700_000;
    for (let count = 0; count < 7; count++) {
      await world.turn(workflow);
      world.clock.aheadMs += 24 * 3_600_000;
    }
    expect(await look(workflow)).toMatchObject({ status: 'pending', reviewReason: null });
    settle();
    expect(await world.finish(workflow)).toMatchObject(end);
    await expectGrants(grants);
  },
);
