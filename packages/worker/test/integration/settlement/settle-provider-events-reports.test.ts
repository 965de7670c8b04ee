/** The payment provider's events, shared among workers, and their reports. */
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import { insertProviderEvent } from '@sluice/database/billing/provider-events';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import {
  lookAtInvoice,
  settleProviderEvents,
} from '../../../src/settlement/settle-provider-events.ts';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

let world: Purchases;
let logged: unknown[];
beforeEach(async () => {
  world = await startPurchases();
  logged = [];
});

const settle = (changes: { readonly provider?: PaymentProvider } = {}) => {
  const logger = createLogger('test', 'silent');
  logger.error = (fields: unknown) => logged.push(fields);
  return settleProviderEvents({ ...world.deps, ...changes, logger });
};

const keep = (eventId: string, objectId: string, agoMs = 1_000) =>
  insertProviderEvent(
    world.database,
    { eventId, type: 'invoice.updated', objectId },
    world.deps.now() - agoMs,
  );

/** A pack by card that waits for its customer. */
async function waitingPack() {
  const workflow = await world.buyPack(await world.addAccount(null, 'card'), 'card');
  expect(await world.advance(workflow)).toBe('waiting');
  const { invoiceId } = (await world.steps(workflow))[1]!.output as { invoiceId: string };
  return { workflow, invoiceId };
}

test('a purchase that an event moves to manual review is reported, and no other purchase', async () => {
  const { workflow, invoiceId } = await waitingPack();
  const { state } = world.simulator;
  const own = state.get('invoice', invoiceId)!;
  const copy = { ...own, id: 'in_copy' };
  state.save('invoice', { ...copy, status: 'void' });
  const metadata = { ...(own['metadata'] as object), run_id: 'run_else' };
  state.save('invoice', { ...copy, id: 'in_else', status: 'paid', metadata });
  await keep('evt_void', 'in_copy');
  await keep('evt_else', 'in_else');
  expect(await settle()).toBe(2);
  expect(logged).toEqual([]);
  state.save('invoice', { ...copy, status: 'paid' });
  await keep('evt_paid', 'in_copy');
  expect(await settle()).toBe(1);
  expect(logged).toEqual([{ runId: workflow.runId, invoiceId: 'in_copy' }]);
});

test('an event that fails is reported with its ids and its task', async () => {
  const provider: PaymentProvider = {
    ...world.provider,
    findInvoice: () => Promise.reject(new Error('broken')),
  };
  await keep('evt_1', 'in_1');
  expect(await settle({ provider })).toBe(0);
  expect(logged).toMatchObject([
    { task: 'settle vendor event', item: { eventId: 'evt_1', objectId: 'in_1' } },
  ]);
});

test('a worker takes fifty events at a time, and leaves the others to the next worker', async () => {
  await keep('evt_first', 'in_none', 5_000_000);
  await sql`
    insert into vendor_events (event_id, type, object_id, received_at, next_at)
    select 'evt_' || n, 'plan.created', 'plan_' || n, now(), '2026-01-01'::timestamptz + n * interval '1 s'
      from generate_series(1, 51) n`.execute(world.database);
  await sql`update vendor_events set next_at = '2025-12-31' where event_id = 'evt_first'`.execute(
    world.database,
  );
  const counts: number[] = [];
  const provider: PaymentProvider = {
    ...world.provider,
    async findInvoice(invoiceId) {
      counts.push(await settle());
      return world.provider.findInvoice(invoiceId);
    },
  };
  counts.push(await settle({ provider }));
  // The first worker holds its fifty while the second comes.
  expect(counts).toEqual([2, 50]);
});

test('an invoice of a foreign customer, or without a purchase, reads no purchase', async () => {
  const { invoiceId } = await waitingPack();
  const { state } = world.simulator;
  const { metadata, ...invoice } = state.get('invoice', invoiceId)!;
  const { run_id: runId } = metadata as { run_id: string };
  const foreign = { ...invoice, id: 'in_else', customer: 'cus_else', metadata: { run_id: runId } };
  state.save('invoice', foreign);
  state.save('invoice', { ...invoice, id: 'in_plain', metadata: {} });
  await keep('evt_else', 'in_else');
  await keep('evt_plain', 'in_plain');
  const sent = await statementsSentBy(async () => expect(await settle()).toBe(2));
  expect(sent.length).toBeGreaterThan(0);
  expect(sent.filter(({ text }) => /\bruns\b/.test(text))).toEqual([]);
  // Any other answer is reported as a failure.
  const deps = { ...world.deps, logger: createLogger('test', 'silent') };
  for (const id of ['in_else', 'in_plain']) expect(await lookAtInvoice(deps, id)).toBe('ok');
});

test('a look at an invoice has the payment provider’s answer, by which a worker reports a failure', async () => {
  const { invoiceId } = await waitingPack();
  const deps = { ...world.deps, logger: createLogger('test', 'silent') };
  expect(await lookAtInvoice(deps, invoiceId)).toBe('ok');
  const findInvoice = () => Promise.resolve({ outcome: 'refused', code: 'no_access' } as const);
  const provider: PaymentProvider = { ...world.provider, findInvoice };
  expect(await lookAtInvoice({ ...deps, provider }, invoiceId)).toBe('refused');
});
