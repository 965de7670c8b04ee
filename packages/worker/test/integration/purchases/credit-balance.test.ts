/**
 * A customer's credit at the payment provider pays before any card.
 *
 * It pays for the next invoice as that is finalized.
 */
import { findPurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

let world: Purchases;
beforeEach(async () => {
  world = await startPurchases();
});

const customerOf = (accountId: number) =>
  world.simulator.state
    .list('customer')
    .find((each) => each['email'] === `billing-${accountId}@example.com`)!;

/** An account that the payment provider owes this much. */
async function addAccountWithCredit(rail: 'card' | 'invoiced', amount: number): Promise<number> {
  const accountId = await world.addAccount(rail === 'card' ? null : 'pm_card_visa', rail);
  world.simulator.state.save('customer', { ...customerOf(accountId), balance: -amount });
  return accountId;
}

async function expectGrantedOnce(accountId: number): Promise<void> {
  expect(await world.balance(accountId)).toBe(100);
  const { rows } = await sql`
    select transaction_key from credit_transactions where reason = 'grant'`.execute(world.database);
  expect(rows).toHaveLength(1);
}

describe.each(['card', 'invoiced'] as const)('a pack with payment method type %s', (rail) => {
  test('I1: that the credit pays is granted with the record of its invoice, and charges no card', async () => {
    const accountId = await addAccountWithCredit(rail, 5_000);
    const workflow = await world.buyPack(accountId, rail);
    await world.turn(workflow, 'after-record:finalize');
    expect(await findPurchaseWorkflow(world.database, accountId, workflow.runId)).toMatchObject({
      status: 'success',
      result: { charged: { amount: 2_000, currency: 'usd' } },
    });
    expect((await world.steps(workflow)).at(-1)).toMatchObject({ step: 'finalize', state: 'done' });
    expect(world.charges()).toEqual([]);
    expect(customerOf(accountId)['balance']).toBe(-3_000);
    await expectGrantedOnce(accountId);
  });

  test('I3: that the credit pays is granted once, after any crash and repeated events', async () => {
    const accountId = await addAccountWithCredit(rail, 2_000);
    const workflow = await world.buyPack(accountId, rail);
    await world.turn(workflow, 'after-vendor:finalize');
    await world.tellEvents((events) => [...events, ...events]);
    expect(await world.finish(workflow)).toMatchObject({ status: 'success', reviewReason: null });
    await expectGrantedOnce(accountId);
  });
});

test('I1: a card pays the part that the credit does not', async () => {
  const accountId = await addAccountWithCredit('invoiced', 500);
  expect(await world.finish(await world.buyPack(accountId))).toMatchObject({ status: 'success' });
  expect(world.charges()).toMatchObject([{ amount: 1_500, status: 'succeeded' }]);
  await expectGrantedOnce(accountId);
});

test('I4: an unpaid purchase gives the credit back', async () => {
  const accountId = await addAccountWithCredit('card', 500);
  const workflow = await world.buyPack(accountId, 'card');
  await world.advance(workflow);
  expect(customerOf(accountId)['balance']).toBe(0);
  world.clock.aheadMs += 3_700_000;
  expect(await world.finish(workflow)).toMatchObject({ status: 'failed' });
  expect(customerOf(accountId)['balance']).toBe(-500);
});
