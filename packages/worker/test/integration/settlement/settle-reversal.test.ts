/**
 * Refunds at the payment provider, and the credits that were bought.
 *
 * Plans are in `settle-reversal-of-plans.test.ts`.
 */
import {
  decideDispute,
  disputeCharge,
  failRefund,
  refundCharge,
} from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import { listLedger } from '@sluice/database/credits/credit-reads';
import { endHold, holdCredits } from '@sluice/database/credits/credit-holds';
import {
  findPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { insertProviderEvent, type ProviderEvent } from '@sluice/database/billing/provider-events';
import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { settleProviderEvents } from '../../../src/settlement/settle-provider-events.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

const DAY_MS = 86_400_000;

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const chargeOf = (workflow: PurchaseWorkflow): string =>
  world.succeeded().find((charge) => charge.runId === workflow.runId)!.id;
const refund = (workflow: PurchaseWorkflow, amount?: number) =>
  refundCharge(world.simulator.state, chargeOf(workflow), amount);
const dispute = (workflow: PurchaseWorkflow, decided: 'lost' | 'won') => {
  const { state } = world.simulator;
  return decideDispute(state, disputeCharge(state, chargeOf(workflow)).id, decided);
};
const look = async (workflow: PurchaseWorkflow) =>
  (await findPurchaseWorkflow(world.database, workflow.accountId, workflow.runId))!;
const reversalOf = async (workflow: PurchaseWorkflow) => (await look(workflow)).result?.reversal;

/** A pack of 100 for $20, bought, granted and reported. */
async function boughtPack(rail: 'invoiced' | 'card' = 'invoiced'): Promise<PurchaseWorkflow> {
  const accountId = await world.addAccount('pm_card_visa', rail);
  const workflow = await world.finish(await world.buyPack(accountId));
  expect(workflow).toMatchObject({ status: 'success' });
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(100);
  return workflow;
}

describe('a purchase of credits', () => {
  test('that is refunded whole loses the rest of them, and spent credits stay spent', async () => {
    const workflow = await boughtPack();
    await world.spend(workflow.accountId, 30);
    refund(workflow);
    await world.tellEvents();
    expect(await world.balance(workflow.accountId)).toBe(0);
    expect(await look(workflow)).toMatchObject({ status: 'success', reviewReason: null });
    expect(await reversalOf(workflow)).toMatchObject({
      cause: 'refund',
      amount: { amount: 2_000, currency: 'usd' },
      isWhole: true,
      creditsTaken: 70,
    });
    expect(await listCreditDifferences(world.database)).toEqual([]);
    const [entry] = await listLedger(
      world.database,
      workflow.accountId,
      'inbox_previews',
      undefined,
      10,
    );
    expect(entry).toMatchObject({ reason: 'reversal', amount: 70 });
    // A version from before reads the table itself, and knows no such reason.
    const reasons = await sql<{ reason: string }>`
      select distinct reason from credit_transactions order by reason`.execute(world.database);
    expect(reasons.rows.map(({ reason }) => reason)).toEqual(['debit', 'expiry', 'grant']);
    const { rows } = await sql<{ changes: unknown }>`
      select changes from audit_logs where object_type = 'purchase'
       order by audit_log_id desc limit 1`.execute(world.database);
    expect(JSON.stringify(rows)).toContain('refunded');
  });

  test('of which a part is refunded keeps them, until the parts are the whole', async () => {
    const workflow = await boughtPack();
    refund(workflow, 500);
    await world.tellEvents();
    expect(await world.balance(workflow.accountId)).toBe(100);
    expect(await reversalOf(workflow)).toMatchObject({
      amount: { amount: 500 },
      isWhole: false,
      creditsTaken: 0,
    });
    refund(workflow, 1_500);
    await world.tellEvents();
    expect(await world.balance(workflow.accountId)).toBe(0);
    const usd = (amount: number) => ({ amount, currency: 'usd' });
    const { result } = await look(workflow);
    const whole = { cause: 'refund', amount: usd(2_000), isWhole: true, creditsTaken: 100 };
    expect(result).toMatchObject({ ...workflow.result, reversal: whole });
    const { rows } = await sql<{ changes: unknown }>`
      select actor_type as actor, object_id as "objectId", run_id as "runId", changes from audit_logs
       where object_type = 'purchase' order by audit_log_id`.execute(world.database);
    const { runId } = workflow;
    const refunded = (from: unknown, to: unknown) => ({
      ...{ actor: 'system', objectId: runId, runId },
      changes: [{ attribute: 'refunded', from, to }],
    });
    // The first one is its ending.
    expect(rows.slice(1)).toMatchObject([refunded(null, usd(500)), refunded(usd(500), usd(2_000))]);
  });

  test.each([
    ['lost', 0, { cause: 'dispute', isWhole: true, creditsTaken: 100 }],
    ['won', 100, undefined],
  ] as const)('whose dispute is %s has %i of them left', async (decided, left, reversal) => {
    const workflow = await boughtPack();
    const { state } = world.simulator;
    const { id } = disputeCharge(state, chargeOf(workflow));
    await world.tellEvents();
    // The bank has not decided.
    expect(await world.balance(workflow.accountId)).toBe(100);
    decideDispute(state, id, decided);
    await world.tellEvents();
    expect(await world.balance(workflow.accountId)).toBe(left);
    if (reversal) expect(await reversalOf(workflow)).toMatchObject(reversal);
    else expect(await reversalOf(workflow)).toBeUndefined();
    expect((await look(workflow)).reviewReason).toBeNull();
  });

  test('refunded before anybody looked at its payment is granted and taken back', async () => {
    const accountId = await world.addAccount(null, 'card');
    const workflow = await world.buyPack(accountId, 'card');
    expect(await world.advance(workflow)).toBe('waiting');
    await world.confirm(workflow);
    refund(workflow);
    await world.tellEvents((events) => events.filter(({ type }) => type === 'charge.refunded'));
    expect(await look(workflow)).toMatchObject({ status: 'success', reviewReason: null });
    expect(await reversalOf(workflow)).toMatchObject({ isWhole: true, creditsTaken: 100 });
    expect(await world.balance(accountId)).toBe(0);
    await world.turn(workflow);
    expect(await world.balance(accountId)).toBe(0);
  });

  test('does not come back to life by a hold that is let go, or by a debit that is refunded', async () => {
    const workflow = await boughtPack();
    const account = { accountId: workflow.accountId, kind: 'inbox_previews' } as const;
    const nowMs = world.deps.now();
    await world.database
      .transaction()
      .execute((transaction) =>
        holdCredits(
          transaction,
          account,
          { amount: 40, key: 'hold_1', hasAllowance: true, expiresAtMs: nowMs + DAY_MS },
          nowMs,
        ),
      );
    refund(workflow);
    await world.tellEvents();
    expect(await reversalOf(workflow)).toMatchObject({ creditsTaken: 60 });
    await world.database
      .transaction()
      .execute((transaction) => endHold(transaction, account, 'hold_1', 0, world.deps.now()));
    expect(await world.balance(workflow.accountId)).toBe(0);
    expect(await listCreditDifferences(world.database)).toEqual([]);
  });

  test('whose refund the bank did not take waits for a person', async () => {
    const workflow = await boughtPack();
    const { id } = refund(workflow);
    await world.tellEvents();
    failRefund(world.simulator.state, id);
    await world.tellEvents();
    expect(await look(workflow)).toMatchObject({
      status: 'success',
      reviewReason: expect.stringMatching(/had gone back, and now only 0/),
    });
  });

  test('leaves the credits of other purchases alone', async () => {
    const workflow = await boughtPack();
    const other = await world.finish(await world.buyPack(workflow.accountId));
    expect(other).toMatchObject({ status: 'success' });
    refund(workflow);
    await world.tellEvents();
    expect(await world.balance(workflow.accountId)).toBe(100);
    expect(await reversalOf(other)).toBeUndefined();
  });
});

test('I22: a refund of a foreign charge has no effect', async () => {
  const workflow = await boughtPack();
  const { state } = world.simulator;
  const charge = state.get('charge', chargeOf(workflow))!;
  state.save('charge', { ...charge, id: 'ch_else', payment_intent: null });
  refundCharge(state, 'ch_else', undefined);
  for (const objectId of ['ch_none', 'ch_else'])
    await insertProviderEvent(
      world.database,
      { eventId: `evt_${objectId}`, type: 'charge.refunded', objectId },
      Date.now() - 1_000,
    );
  await world.tellEvents();
  const { rows } = await sql`select from vendor_events where settled_at is null`.execute(
    world.database,
  );
  expect(rows).toEqual([]);
  expect(await world.balance(workflow.accountId)).toBe(100);
  expect(await reversalOf(workflow)).toBeUndefined();
});

test('I21: refunds and disputes in any order, repeated, by workers that die while they look, end in the same state', async () => {
  const plan = fc.record({
    ending: fc.constantFrom('refund', 'two refunds', 'dispute', 'part', 'won'),
    spent: fc.nat(100),
    /** Sorts the events, each of which is there twice. */
    ranks: fc.array(fc.nat(1_000), { minLength: 40, maxLength: 40 }),
    /** Calls of the payment provider before or after which a worker dies: one an event at most. */
    deaths: fc.array(fc.constantFrom('before', 'after', 'none'), { minLength: 12, maxLength: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ ending, spent, ranks, deaths }) => {
      const accountId = await world.addAccount(null, 'card');
      const workflow = await world.buyPack(accountId, 'card');
      await world.advance(workflow);
      await world.confirm(workflow);
      world.takeEvents();
      await world.turn(workflow);
      if (spent > 0) await world.spend(accountId, spent, `job_${workflow.runId}`);
      if (ending === 'dispute') dispute(workflow, 'lost');
      else if (ending === 'won') dispute(workflow, 'won');
      else if (ending === 'part') refund(workflow, 700);
      else if (ending === 'refund') refund(workflow);
      else {
        refund(workflow, 700);
        refund(workflow);
      }
      const events = world.takeEvents();
      const told = [...events, ...events]
        .map((event, index) => ({ event, rank: ranks[index % ranks.length]! }))
        .toSorted((one, other) => one.rank - other.rank)
        .map(({ event }) => event);
      await tellToDyingWorkers(told, deaths);
      const isWhole = ending !== 'part' && ending !== 'won';
      expect(await world.balance(accountId)).toBe(isWhole ? 0 : 100 - spent);
      const reversal = await reversalOf(workflow);
      if (ending === 'won') expect(reversal).toBeUndefined();
      else
        expect(reversal).toMatchObject({
          amount: { amount: isWhole ? 2_000 : 700 },
          isWhole,
          creditsTaken: isWhole ? 100 - spent : 0,
        });
      expect(await look(workflow)).toMatchObject({ status: 'success', reviewReason: null });
      expect(await listCreditDifferences(world.database)).toEqual([]);
    }),
    { numRuns: 25 },
  );
}, 180_000);

/** Each worker that dies leaves its event to the next one. */
async function tellToDyingWorkers(
  events: readonly ProviderEvent[],
  deaths: readonly ('before' | 'after' | 'none')[],
): Promise<void> {
  let callCount = 0;
  const dying = new Proxy(world.provider, {
    get(provider, name: keyof PaymentProvider) {
      return async (...parameters: never[]) => {
        const death = deaths[callCount++];
        if (death === 'before') throw new Error('killed');
        const answer = await (provider[name] as (...given: never[]) => Promise<unknown>)(
          ...parameters,
        );
        if (death === 'after') throw new Error('killed');
        return answer;
      };
    },
  });
  for (const [index, event] of events.entries())
    await insertProviderEvent(
      world.database,
      { ...event, eventId: `${event.eventId}_${index}` },
      world.deps.now() - 1_000,
    );
  for (let turn = 0; turn < 20; turn++) {
    await settleProviderEvents({ ...world.deps, provider: dying });
    world.clock.aheadMs += 600_000;
  }
  const { rows } = await sql`select from vendor_events where settled_at is null`.execute(
    world.database,
  );
  expect(rows).toEqual([]);
}
