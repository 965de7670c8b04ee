/** The payment provider's events, in any order, often and late. */
import {
  clearProviderEvents,
  insertProviderEvent,
  type ProviderEvent,
} from '@sluice/database/billing/provider-events';
import { refundCharge } from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import { findPurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { releasePurchaseFromReview } from '@sluice/database/billing/purchases-in-review';
import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { settleProviderEvents } from '../../../src/settlement/settle-provider-events.ts';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

/** The payment provider's waiting events of this purchase, taken from it. */
const takeEvents = (world: Purchases) =>
  world.takeEvents().filter(({ type }) => type.startsWith('invoice.'));

/** A pack whose invoice the customer has paid, without a report to the worker. */
async function startPaid() {
  const world = await startPurchases();
  const accountId = await world.addAccount(null, 'card');
  takeEvents(world);
  const workflow = await world.buyPack(accountId, 'card');
  expect(await world.advance(workflow)).toBe('waiting');
  await world.confirm(workflow);
  const events = takeEvents(world);
  return { world, accountId, workflow, events };
}

test('I21: events in any order, repeated, and before or after the worker looks, end in the same state', async () => {
  const world = await startPurchases();
  const order = fc.record({
    isPaid: fc.boolean(),
    /** Sorts the events, each of which is there twice. */
    ranks: fc.array(fc.nat(1_000), { minLength: 20, maxLength: 20 }),
    /** After how many of them the worker looks by itself. */
    workerAfter: fc.nat(12),
  });
  await fc.assert(
    fc.asyncProperty(order, async ({ isPaid, ranks, workerAfter }) => {
      const accountId = await world.addAccount(null, 'card');
      takeEvents(world);
      const workflow = await world.buyPack(accountId, 'card');
      expect(await world.advance(workflow)).toBe('waiting');
      if (isPaid) await world.confirm(workflow);
      else {
        const { invoiceId } = (await world.steps(workflow))[1]!.output as { invoiceId: string };
        await world.provider.discardInvoice(invoiceId, `void ${workflow.runId}`);
      }
      const events = takeEvents(world);
      const told = [...events, ...events]
        .map((event, index) => ({ event, rank: ranks[index % ranks.length]! }))
        .toSorted((one, other) => one.rank - other.rank);
      for (const [index, { event }] of told.entries()) {
        if (index === workerAfter) await world.turn(workflow);
        await insertProviderEvent(world.database, event, Date.now() - 1_000);
        await world.settleEvents();
      }
      const { rows } = await sql<{ status: string; review: string | null }>`
        select status, review_reason as review from runs where run_id = ${workflow.runId}`.execute(
        world.database,
      );
      expect(rows).toEqual([{ status: isPaid ? 'success' : 'failed', review: null }]);
      expect(await world.balance(accountId)).toBe(isPaid ? 100 : 0);
      expect(world.succeeded().filter((charge) => charge.runId === workflow.runId)).toHaveLength(
        isPaid ? 1 : 0,
      );
    }),
    { numRuns: 20 },
  );
}, 180_000);

test('I22: events of objects that are foreign or missing are settled and leave all purchases as they are', async () => {
  const world = await startPurchases();
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.finish(await world.buyPack(accountId));
  const invoice = world.simulator.state.get('invoice', workflow.invoiceId)!;
  // Its own name for somebody else's purchase, another account's, and one without any.
  const foreign = [
    { ...invoice, id: 'in_else', metadata: { run_id: 'run_else', account_id: String(accountId) } },
    { ...invoice, id: 'in_other', metadata: { run_id: workflow.runId, account_id: '999999' } },
    { ...invoice, id: 'in_plain', metadata: {} },
  ];
  for (const each of foreign) world.simulator.state.save('invoice', each);
  for (const objectId of [...foreign.map((each) => each.id), 'in_none'])
    await insertProviderEvent(
      world.database,
      { eventId: `evt_${objectId}`, type: 'invoice.paid', objectId },
      Date.now() - 1_000,
    );
  expect(await world.settleEvents()).toBe(4);
  expect(await world.balance(accountId)).toBe(100);
  const { rows } = await sql`select from runs where review_reason is not null`.execute(
    world.database,
  );
  expect(rows).toEqual([]);
});

test('a copy of a purchase’s invoice, paid beside it, is in manual review; a void copy has no effect', async () => {
  const world = await startPurchases();
  const accountId = await world.addAccount(null, 'card');
  const workflow = await world.buyPack(accountId, 'card');
  expect(await world.advance(workflow)).toBe('waiting');
  const { invoiceId } = (await world.steps(workflow))[1]!.output as { invoiceId: string };
  const copy = { ...world.simulator.state.get('invoice', invoiceId)!, id: 'in_copy' };
  const tell = async (status: string) => {
    world.simulator.state.save('invoice', { ...copy, status });
    const event = { eventId: `evt_${status}`, type: 'invoice.updated', objectId: copy.id };
    await insertProviderEvent(world.database, event, Date.now() - 1_000);
    await world.settleEvents();
    return findPurchaseWorkflow(world.database, accountId, workflow.runId);
  };
  // Its own invoice can still be paid.
  expect(await tell('void')).toMatchObject({ status: 'pending', reviewReason: null });
  await world.confirm(workflow);
  await world.turn(workflow);
  const twice = await tell('paid');
  expect(twice).toMatchObject({
    status: 'success',
    reviewReason: expect.stringContaining(copy.id),
  });
  expect(await world.balance(accountId)).toBe(100);
});

test('a copy that is paid, and refunded while the purchase is under way, sets it aside once', async () => {
  const world = await startPurchases();
  const { state } = world.simulator;
  const accountId = await world.addAccount(null, 'card');
  const workflow = await world.buyPack(accountId, 'card');
  expect(await world.advance(workflow)).toBe('waiting');
  const { invoiceId } = (await world.steps(workflow))[1]!.output as { invoiceId: string };
  // The copy has a payment of its own: another purchase's, that was not written down yet.
  const other = await world.addAccount(null, 'card');
  const copied = await world.buyPack(other, 'card');
  expect(await world.advance(copied)).toBe('waiting');
  const { invoiceId: copyId } = (await world.steps(copied))[1]!.output as { invoiceId: string };
  await world.confirm(copied);
  const { metadata, customer } = state.get('invoice', invoiceId)!;
  state.save('invoice', { ...state.get('invoice', copyId)!, metadata, customer });
  const look = () => findPurchaseWorkflow(world.database, accountId, workflow.runId);
  await world.tellEvents();
  expect(await look()).toMatchObject({
    status: 'pending',
    reviewReason: expect.stringContaining(copyId),
  });
  const [charge] = world.succeeded();
  refundCharge(state, charge!.id, undefined);
  await releasePurchaseFromReview(
    world.database,
    workflow.runId,
    { actor: { type: 'system' } },
    world.deps.now(),
  );
  await world.tellEvents();
  world.clock.aheadMs += 600_000;
  await world.settleEvents();
  expect(await look()).toMatchObject({ status: 'pending', reviewReason: null });
  const { rows } = await sql`select from vendor_events where settled_at is null`.execute(
    world.database,
  );
  expect(rows).toEqual([]);
  await world.confirm(workflow);
  await world.turn(workflow);
  expect(await look()).toMatchObject({ status: 'success', reviewReason: null });
  expect(await world.balance(accountId)).toBe(100);
});

test('I3: events that come again after they were forgotten grant no credit again and move no purchase to review', async () => {
  const { world, accountId, workflow, events } = await startPaid();
  for (let time = 0; time < 2; time++) {
    for (const event of events)
      await insertProviderEvent(world.database, event, Date.now() - 1_000);
    expect(await world.settleEvents()).toBe(events.length);
    await clearProviderEvents(world.database, Date.now() + 1, 100);
  }
  const { rows } = await sql<{ status: string; review: string | null }>`
    select status, review_reason as review from runs where run_id = ${workflow.runId}`.execute(
    world.database,
  );
  expect(rows).toEqual([{ status: 'success', review: null }]);
  expect(await world.balance(accountId)).toBe(100);
});

test('an event that the payment provider cannot be asked about waits, and is applied once it can', async () => {
  const { world, accountId, workflow, events } = await startPaid();
  for (const event of events) await insertProviderEvent(world.database, event, Date.now() - 1_000);
  const waiting = async () => {
    const { rows } = await sql<{ eventId: string }>`
      select event_id as "eventId" from vendor_events where settled_at is null order by 1`.execute(
      world.database,
    );
    return rows.map(({ eventId }) => eventId);
  };
  const eventIds = events.map(({ eventId }) => eventId).toSorted();
  world.simulator.faults.add({ kind: 'error', method: 'GET', path: '/invoices', count: 1_000 });
  // A busy machine may need more than the 5 s for which they wait.
  const askedAtMs = world.deps.now();
  const settleAtOnce = () => settleProviderEvents({ ...world.deps, now: () => askedAtMs });
  expect(await settleAtOnce()).toBe(0);
  expect(await waiting()).toEqual(eventIds);
  expect(await world.balance(accountId)).toBe(0);
  // Again at once it is not asked: the events wait for their time.
  world.simulator.faults.clear();
  expect(await settleAtOnce()).toBe(0);
  world.clock.aheadMs += 600_000;
  expect(await world.settleEvents()).toBe(events.length);
  expect(await waiting()).toEqual([]);
  expect(await world.balance(accountId)).toBe(100);
  expect(await findPurchaseWorkflow(world.database, accountId, workflow.runId)).toMatchObject({
    status: 'success',
  });
});

test('an event that cannot be read does not keep those behind it from being worked off, and is looked at ever less often', async () => {
  const { world, accountId, events } = await startPaid();
  const [{ objectId }] = events as [ProviderEvent];
  const invoice = world.simulator.state.get('invoice', objectId)!;
  // Postgres takes no such text.
  const metadata = { run_id: 'run\0', account_id: String(accountId) };
  world.simulator.state.save('invoice', { ...invoice, id: 'in_unreadable', metadata });
  await insertProviderEvent(
    world.database,
    { eventId: 'evt_0', type: 'invoice.paid', objectId: 'in_unreadable' },
    Date.now() - 60_000,
  );
  for (const event of events) await insertProviderEvent(world.database, event, Date.now() - 1_000);
  expect(await world.settleEvents()).toBe(events.length);
  expect(await world.balance(accountId)).toBe(100);
  const waitsMs: number[] = [];
  for (let count = 0; count < 8; count++) {
    const nowMs = Date.now();
    await sql`update vendor_events set next_at = ${new Date(nowMs)} where settled_at is null`.execute(
      world.database,
    );
    expect(await settleProviderEvents({ ...world.deps, now: () => nowMs })).toBe(0);
    const { rows: waiting } = await sql<{ nextAt: Date }>`
      select next_at as "nextAt" from vendor_events where settled_at is null`.execute(
      world.database,
    );
    waitsMs.push(waiting[0]!.nextAt.getTime() - nowMs);
  }
  expect(waitsMs).toEqual([10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
});

test('all events that wait are settled in one call, however many there are', async () => {
  const world = await startPurchases();
  await sql`
    insert into vendor_events (event_id, type, object_id, received_at, next_at)
    select 'evt_' || n, 'plan.created', 'plan_' || n, now(), '2026-01-01' from generate_series(1, 101) n`.execute(
    world.database,
  );
  expect(await world.settleEvents()).toBe(101);
  expect(await world.settleEvents()).toBe(0);
});
