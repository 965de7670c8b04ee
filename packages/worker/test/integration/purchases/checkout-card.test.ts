/** The audit log of the card on file, after a checkout. */
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { CrashPoint } from '../../../src/purchases/advance-purchase-workflow.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

async function checkout(
  world: Subscriptions,
  accountId: number,
  card: string,
  killAt?: CrashPoint,
): Promise<{ status: string; entries: unknown[] }> {
  const workflow = await world.checkout(accountId, 'essentials_month', { paymentMethodId: card });
  const { status } = await world.finish(workflow, killAt);
  const { rows } = await sql<{ runId: string }>`
    select run_id as "runId", actor_type as actor, object_id as id, changes from audit_logs
     where account_id = ${accountId} and object_type = 'payment_method'`.execute(world.database);
  expect(rows.every((row) => row.runId === workflow.runId)).toBe(true);
  return { status, entries: rows };
}

const entryOf = (accountId: number, card: string) => ({
  actor: 'system',
  id: String(accountId),
  changes: [{ attribute: 'default', from: null, to: card, redacted: false }],
});

test.each([undefined, 'after-intent:subscribe', 'after-vendor:subscribe'] as const)(
  'the card of a checkout that is bought is recorded once, its worker killed %s',
  async (killAt) => {
    const world = await startSubscriptions();
    const accountId = await world.addAccount('pm_card_visa');
    const bought = await checkout(world, accountId, 'pm_card_mastercard', killAt);
    expect(bought).toMatchObject({
      status: 'success',
      entries: [entryOf(accountId, 'pm_card_mastercard')],
    });
  },
);

test('the card of a checkout that is looked up afterwards is recorded', async () => {
  const world = await startSubscriptions();
  const accountId = await world.addAccount('pm_card_visa');
  const path = '/subscriptions';
  world.simulator.faults.add({ kind: 'error_after', method: 'POST', path, count: 1 });
  const bought = await checkout(world, accountId, 'pm_card_mastercard');
  expect(bought).toMatchObject({ status: 'success', entries: [{ actor: 'system' }] });
});

test('a card that is declined is recorded only if it stays because there was no card before', async () => {
  const world = await startSubscriptions();
  const declined = 'pm_card_chargeCustomerFail';
  const kept = await checkout(world, await world.addAccount('pm_card_visa'), declined);
  expect(kept).toMatchObject({ status: 'failed', entries: [] });
  const accountId = await world.addAccount(null);
  const stays = await checkout(world, accountId, declined);
  expect(stays).toMatchObject({ status: 'failed', entries: [entryOf(accountId, declined)] });
});

test('a checkout that is declined at its second attempt puts back the card from before its first', async () => {
  const world = await startSubscriptions();
  const accountId = await world.addAccount('pm_card_visa');
  const customers = () => world.simulator.state.list('customer');
  const [before] = customers();
  // The card is set, and the payment provider fails for good without having subscribed: asked anew under another key.
  world.simulator.faults.add({ kind: 'error', method: 'POST', path: '/subscriptions', count: 1 });
  const ended = await checkout(world, accountId, 'pm_card_chargeCustomerFail');
  expect(ended).toMatchObject({ status: 'failed', entries: [] });
  const [after] = customers();
  // The next renewal charges the card that it has charged before.
  expect(after!['invoice_settings']).toEqual(before!['invoice_settings']);
});

test('without an earlier card, a card that is declined at the second attempt stays and has one entry', async () => {
  const world = await startSubscriptions();
  const accountId = await world.addAccount(null);
  world.simulator.faults.add({ kind: 'error', method: 'POST', path: '/subscriptions', count: 1 });
  const declined = 'pm_card_chargeCustomerFail';
  const ended = await checkout(world, accountId, declined);
  expect(ended).toMatchObject({ status: 'failed', entries: [entryOf(accountId, declined)] });
});
