/**
 * Credit for unused time of a plan that was refunded.
 *
 * It is never more than the amount that was paid and not returned.
 */
import {
  decideDispute,
  disputeCharge,
  refundCharge,
} from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

/** In cents, a month. */
const PREMIUM = 100_000;
const DAY_MS = 86_400_000;

let world: Subscriptions;
let accountId: number;
let lateDifferences: number;
beforeEach(async () => {
  world = await startSubscriptions();
  accountId = await world.addAccount('pm_card_visa');
  lateDifferences = 0;
});
afterEach(async () => {
  const differences = await world.prorationDifferences();
  if (differences.length > lateDifferences) throw new Error(differences.join('\n'));
});

const change = async (planId: string) =>
  (await world.finish(await world.checkout(accountId, planId))).runId;
/** The charge of a purchase; without one the latest. */
const chargeOf = (runId?: string) =>
  world.succeeded().findLast((each) => runId === undefined || each.runId === runId)!;
const refund = (amount?: number, runId?: string) =>
  refundCharge(world.simulator.state, chargeOf(runId).id, amount);
async function readCredit(): Promise<number> {
  const read = await world.provider.readCustomer(
    (await findProviderCustomer(world.database, accountId))!,
  );
  return read.outcome === 'ok' ? read.value.creditAmount : Number.NaN;
}

test.each([
  ['refunded whole', undefined, 0],
  ['of which 30 % was refunded', 30_000, 70_000],
  ['that was not refunded', 0, PREMIUM],
])('a plan %s gives its unrefunded rest as credit when it is left', async (_, amount, credit) => {
  await change('premium_month');
  if (amount !== 0) refund(amount);
  await world.tellEvents();
  await change('builder');
  expect(await readCredit()).toBe(credit);
});

test('a plan refunded in part gives the share of its time, as with a coupon', async () => {
  await change('premium_month');
  refund(50_000);
  world.moveClocks(15 * DAY_MS);
  await change('builder');
  expect(await readCredit()).toBeGreaterThan(23_000);
  expect(await readCredit()).toBeLessThan(27_000);
});

test('a refunded plan that is left before the event of its refund gives no credit, too', async () => {
  await change('premium_month');
  refund();
  await change('builder');
  expect(await readCredit()).toBe(0);
  await world.tellEvents();
  expect(await readCredit()).toBe(0);
});

test('a refunded plan does not pay for a dearer one, and the shown amount includes that', async () => {
  await change('essentials_month');
  const before = chargeOf().amount;
  refund();
  const expectedAmount = { amount: PREMIUM, currency: 'usd' };
  const shown = await world.finish(
    await world.checkout(accountId, 'premium_month', { expectedAmount }),
  );
  expect(before).toBeGreaterThan(0);
  expect(shown).toMatchObject({ status: 'success', result: { charged: expectedAmount } });
});

test('a renewal that was refunded gives no credit when its plan is left', async () => {
  await change('premium_month');
  await world.tellEvents();
  world.moveClocks(32 * DAY_MS);
  refund();
  await world.tellEvents();
  await change('builder');
  expect(await readCredit()).toBe(0);
});

test.each([
  ['lost', 0],
  ['won', PREMIUM],
] as const)('a dispute that is %s before the plan is left', async (decided, credit) => {
  await change('premium_month');
  const { state } = world.simulator;
  decideDispute(state, disputeCharge(state, chargeOf().id).id, decided);
  await world.tellEvents();
  await change('builder');
  expect(await readCredit()).toBe(credit);
});

test('credit is taken back by a refund that comes after it, once, also with repeated events', async () => {
  await change('premium_month');
  await change('builder');
  expect(await readCredit()).toBe(PREMIUM);
  refund(40_000);
  await world.tellEvents((events) => [...events, ...events]);
  expect(await readCredit()).toBe(60_000);
  refund();
  const events = world.takeEvents();
  for (let time = 0; time < 3; time++) {
    await world.tellEvents(() =>
      events.map((each) => ({ ...each, eventId: `${each.eventId}_${time}` })),
    );
    expect(await readCredit()).toBe(0);
  }
});

test('credit is taken back by a dispute that is lost after it', async () => {
  await change('premium_month');
  await change('builder');
  const { state } = world.simulator;
  decideDispute(state, disputeCharge(state, chargeOf().id).id, 'lost');
  await world.tellEvents();
  expect(await readCredit()).toBe(0);
});

test('a refund after the credit was spent leaves no debt, and the comparison reports it', async () => {
  await change('premium_month');
  await change('builder');
  const pack = await world.finish(await world.buyPack(accountId));
  const left = await readCredit();
  expect(pack).toMatchObject({ status: 'success' });
  expect(left).toBeLessThan(PREMIUM);
  refund();
  await world.tellEvents();
  expect(await readCredit()).toBe(0);
  const [customer] = world.simulator.state.list('customer');
  expect(customer?.['balance']).toBe(0);
  expect(await world.prorationDifferences()).toEqual([
    expect.stringMatching(/gives back 100000 for unused time of price_premium_month, for which 0/),
  ]);
  lateDifferences = 1;
});

test('a refund of the earlier plan, after its time has paid for a dearer one, is withheld when that is left', async () => {
  const first = await change('essentials_month');
  const price = chargeOf(first).amount;
  await change('premium_month');
  refund(undefined, first);
  await world.tellEvents();
  await change('builder');
  expect(await readCredit()).toBe(PREMIUM - price);
});
