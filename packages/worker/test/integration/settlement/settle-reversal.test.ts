/** Money that goes back to the customer at the vendor, and the credits that it had paid for. Plans: `reversed-plans.test.ts`. */
import {
  decideDispute,
  disputeCharge,
  failRefund,
  refundCharge,
} from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import type { Vendor } from '@sluice/billing-vendor/port/vendor';
import { listLedger } from '@sluice/database/credits/credit-reads';
import { endHold, holdCredits } from '@sluice/database/credits/credit-holds';
import { findRun, type Run } from '@sluice/database/billing/runs';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { insertVendorEvent, type VendorEvent } from '@sluice/database/billing/vendor-events';
import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { settleVendorEvents } from '../../../src/settlement/settle-vendor-events.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

const DAY_MS = 86_400_000;

let world: Subscriptions;
beforeEach(async () => {
  world = await startSubscriptions();
});

const chargeOf = (run: Run): string =>
  world.succeeded().find((charge) => charge.runId === run.runId)!.id;
const refund = (run: Run, amount?: number) =>
  refundCharge(world.simulator.state, chargeOf(run), amount);
const dispute = (run: Run, decided: 'lost' | 'won') => {
  const { state } = world.simulator;
  return decideDispute(state, disputeCharge(state, chargeOf(run)).id, decided);
};
const look = async (run: Run) => (await findRun(world.database, run.accountId, run.runId))!;
const reversalOf = async (run: Run) => (await look(run)).result?.reversal;

/** A pack of 100 for $20, bought, granted, and told of. */
async function boughtPack(rail: 'invoiced' | 'card' = 'invoiced'): Promise<Run> {
  const accountId = await world.addAccount('pm_card_visa', rail);
  const run = await world.finish(await world.buyPack(accountId));
  expect(run).toMatchObject({ status: 'success' });
  await world.tellEvents();
  expect(await world.balance(accountId)).toBe(100);
  return run;
}

describe('a purchase of credits', () => {
  test('that is refunded whole loses what is left of them, and what was spent stays spent', async () => {
    const run = await boughtPack();
    await world.spend(run.accountId, 30);
    refund(run);
    await world.tellEvents();
    expect(await world.balance(run.accountId)).toBe(0);
    expect(await look(run)).toMatchObject({ status: 'success', reviewReason: null });
    expect(await reversalOf(run)).toMatchObject({
      cause: 'refund',
      amount: { amount: 2_000, currency: 'usd' },
      isWhole: true,
      creditsTaken: 70,
    });
    expect(await listCreditDifferences(world.database)).toEqual([]);
    const [entry] = await listLedger(
      world.database,
      run.accountId,
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
    const run = await boughtPack();
    refund(run, 500);
    await world.tellEvents();
    expect(await world.balance(run.accountId)).toBe(100);
    expect(await reversalOf(run)).toMatchObject({
      amount: { amount: 500 },
      isWhole: false,
      creditsTaken: 0,
    });
    refund(run, 1_500);
    await world.tellEvents();
    expect(await world.balance(run.accountId)).toBe(0);
    expect(await reversalOf(run)).toMatchObject({
      amount: { amount: 2_000 },
      isWhole: true,
      creditsTaken: 100,
    });
  });

  test.each([
    ['lost', 0, { cause: 'dispute', isWhole: true, creditsTaken: 100 }],
    ['won', 100, undefined],
  ] as const)('whose dispute is %s has %i of them left', async (decided, left, reversal) => {
    const run = await boughtPack();
    const { state } = world.simulator;
    const { id } = disputeCharge(state, chargeOf(run));
    await world.tellEvents();
    // The bank has not decided.
    expect(await world.balance(run.accountId)).toBe(100);
    decideDispute(state, id, decided);
    await world.tellEvents();
    expect(await world.balance(run.accountId)).toBe(left);
    if (reversal) expect(await reversalOf(run)).toMatchObject(reversal);
    else expect(await reversalOf(run)).toBeUndefined();
  });

  test('refunded before anybody looked at its payment is granted and taken back', async () => {
    const accountId = await world.addAccount(null, 'card');
    const run = await world.buyPack(accountId, 'card');
    expect(await world.advance(run)).toBe('waiting');
    await world.confirm(run);
    refund(run);
    await world.tellEvents((events) => events.filter(({ type }) => type === 'charge.refunded'));
    expect(await look(run)).toMatchObject({ status: 'success', reviewReason: null });
    expect(await reversalOf(run)).toMatchObject({ isWhole: true, creditsTaken: 100 });
    expect(await world.balance(accountId)).toBe(0);
    await world.turn(run);
    expect(await world.balance(accountId)).toBe(0);
  });

  test('does not come back to life by a hold that is let go, or by a debit that is refunded', async () => {
    const run = await boughtPack();
    const account = { accountId: run.accountId, kind: 'inbox_previews' } as const;
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
    refund(run);
    await world.tellEvents();
    expect(await reversalOf(run)).toMatchObject({ creditsTaken: 60 });
    await world.database
      .transaction()
      .execute((transaction) => endHold(transaction, account, 'hold_1', 0, world.deps.now()));
    expect(await world.balance(run.accountId)).toBe(0);
    expect(await listCreditDifferences(world.database)).toEqual([]);
  });

  test('whose refund the bank did not take waits for a person', async () => {
    const run = await boughtPack();
    const { id } = refund(run);
    await world.tellEvents();
    failRefund(world.simulator.state, id);
    await world.tellEvents();
    expect(await look(run)).toMatchObject({
      status: 'success',
      reviewReason: expect.stringMatching(/had gone back, and now only 0/),
    });
  });

  test('leaves the credits of other purchases alone', async () => {
    const run = await boughtPack();
    const other = await world.finish(await world.buyPack(run.accountId));
    expect(other).toMatchObject({ status: 'success' });
    refund(run);
    await world.tellEvents();
    expect(await world.balance(run.accountId)).toBe(100);
    expect(await reversalOf(other)).toBeUndefined();
  });
});

test('I22: a refund of what is not ours changes nothing', async () => {
  const run = await boughtPack();
  const { state } = world.simulator;
  const charge = state.get('charge', chargeOf(run))!;
  state.save('charge', { ...charge, id: 'ch_else', payment_intent: null });
  refundCharge(state, 'ch_else', undefined);
  for (const objectId of ['ch_none', 'ch_else'])
    await insertVendorEvent(
      world.database,
      { eventId: `evt_${objectId}`, type: 'charge.refunded', objectId },
      Date.now() - 1_000,
    );
  await world.tellEvents();
  const { rows } = await sql`select from vendor_events where settled_at is null`.execute(
    world.database,
  );
  expect(rows).toEqual([]);
  expect(await world.balance(run.accountId)).toBe(100);
  expect(await reversalOf(run)).toBeUndefined();
});

test('I21: refunds and disputes in any order, repeated, by workers that die while they look, end in the same state', async () => {
  const plan = fc.record({
    ending: fc.constantFrom('refund', 'two refunds', 'dispute', 'part', 'won'),
    spent: fc.nat(100),
    /** Sorts the events, each of which is there twice. */
    ranks: fc.array(fc.nat(1_000), { minLength: 40, maxLength: 40 }),
    /** Which calls of the vendor a worker dies before, or after: at each event one at most. */
    deaths: fc.array(fc.constantFrom('before', 'after', 'none'), { minLength: 12, maxLength: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ ending, spent, ranks, deaths }) => {
      const accountId = await world.addAccount(null, 'card');
      const run = await world.buyPack(accountId, 'card');
      await world.advance(run);
      await world.confirm(run);
      world.takeEvents();
      await world.turn(run);
      if (spent > 0) await world.spend(accountId, spent, `job_${run.runId}`);
      if (ending === 'dispute') dispute(run, 'lost');
      else if (ending === 'won') dispute(run, 'won');
      else if (ending === 'part') refund(run, 700);
      else if (ending === 'refund') refund(run);
      else {
        refund(run, 700);
        refund(run);
      }
      const events = world.takeEvents();
      const told = [...events, ...events]
        .map((event, index) => ({ event, rank: ranks[index % ranks.length]! }))
        .toSorted((one, other) => one.rank - other.rank)
        .map(({ event }) => event);
      await tellToDyingWorkers(told, deaths);
      const isWhole = ending !== 'part' && ending !== 'won';
      expect(await world.balance(accountId)).toBe(isWhole ? 0 : 100 - spent);
      const reversal = await reversalOf(run);
      if (ending === 'won') expect(reversal).toBeUndefined();
      else
        expect(reversal).toMatchObject({
          amount: { amount: isWhole ? 2_000 : 700 },
          isWhole,
          creditsTaken: isWhole ? 100 - spent : 0,
        });
      expect(await look(run)).toMatchObject({ status: 'success', reviewReason: null });
      expect(await listCreditDifferences(world.database)).toEqual([]);
    }),
    { numRuns: 25 },
  );
}, 60_000);

/** Each worker that dies leaves its event to the next one. */
async function tellToDyingWorkers(
  events: readonly VendorEvent[],
  deaths: readonly ('before' | 'after' | 'none')[],
): Promise<void> {
  let callCount = 0;
  const dying = new Proxy(world.vendor, {
    get(vendor, name: keyof Vendor) {
      return async (...parameters: never[]) => {
        const death = deaths[callCount++];
        if (death === 'before') throw new Error('killed');
        const answer = await (vendor[name] as (...given: never[]) => Promise<unknown>)(
          ...parameters,
        );
        if (death === 'after') throw new Error('killed');
        return answer;
      };
    },
  });
  for (const [index, event] of events.entries())
    await insertVendorEvent(
      world.database,
      { ...event, eventId: `${event.eventId}_${index}` },
      world.deps.now() - 1_000,
    );
  for (let turn = 0; turn < 20; turn++) {
    await settleVendorEvents({ ...world.deps, vendor: dying });
    world.clock.aheadMs += 600_000;
  }
  const { rows } = await sql`select from vendor_events where settled_at is null`.execute(
    world.database,
  );
  expect(rows).toEqual([]);
}
