/** An account after its subscription renews, is past due, or ends. */
import { findAccount } from '@sluice/database/accounts/accounts';
import { insertProviderEvent } from '@sluice/database/billing/provider-events';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { settleSubscription } from '../../../src/settlement/settle-subscription.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
let accountId: number;
let customerId: string;

beforeEach(async () => {
  world = await startSubscriptions();
  accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.checkout(accountId, 'premium_month');
  await world.finish(workflow);
  const found = await world.provider.findCustomer(accountId, `billing-${accountId}@example.com`);
  customerId = (found.outcome === 'ok' && found.value) || '';
});

const DAY_MS = 86_400_000;
const later = (days: number) =>
  fetch(`http://127.0.0.1:${world.simulator.port}/simulator/clock`, {
    method: 'POST',
    body: JSON.stringify({ advance_ms: days * DAY_MS }),
  });

/** Of a past-due subscription: the simulator does not collect it again by itself for three days. */
const triedNow = () => ({
  simulated_refused_at: world.simulator.state.nowSeconds(),
  simulated_tries: 0,
});

/** The newest first. */
const tellEvents = () => world.tellEvents((events) => events.toReversed());
const standing = async () => {
  const { rows } = await sql<{ status: string; plan: string }>`
    select status, plan_status as plan from accounts where account_id = ${accountId}`.execute(
    world.database,
  );
  return rows[0];
};
const auditCount = async () => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int from audit_logs where object_type = 'account'`.execute(world.database);
  return rows[0]!.count;
};

test('a renewal is charged to the card on file, and leaves account and credits as they are', async () => {
  const credits = () =>
    sql`select * from credit_transactions order by 1, 2, 3`.execute(world.database);
  const { rows: bought } = await credits();
  await later(32);
  await tellEvents();
  expect(world.succeeded().map((charge) => charge.amount)).toEqual([100_000, 100_000]);
  expect(await standing()).toEqual({ status: 'active', plan: 'active' });
  expect(await auditCount()).toBe(0);
  expect((await credits()).rows).toEqual(bought);
});

test('a card that refuses the renewal makes the account past due, and active again when it is paid', async () => {
  await world.provider.setDefaultCard(customerId, 'pm_card_chargeCustomerFail');
  await later(32);
  await tellEvents();
  expect(await standing()).toEqual({ status: 'past_due', plan: 'active' });
  await world.provider.setDefaultCard(customerId, 'pm_card_visa');
  await later(4);
  await tellEvents();
  expect(await standing()).toEqual({ status: 'active', plan: 'active' });
  expect(await auditCount()).toBe(2);
});

test('a card that asks for its holder when it renews makes the account past due, until they have confirmed', async () => {
  await world.provider.setDefaultCard(customerId, 'pm_card_authenticationRequired');
  await later(32);
  await tellEvents();
  expect(await standing()).toEqual({ status: 'past_due', plan: 'active' });
  expect(await world.finish(await world.checkout(accountId, 'essentials_month'))).toMatchObject({
    status: 'failed',
    result: { refusal: 'payment_past_due' },
  });
  const [intent] = world.simulator.state
    .list('payment_intent')
    .filter((each) => each['status'] === 'requires_action');
  await fetch(`http://127.0.0.1:${world.simulator.port}/v1/payment_intents/${intent!.id}/confirm`, {
    method: 'POST',
    headers: { authorization: 'Bearer pk_test' },
    body: new URLSearchParams({ payment_method: 'pm_card_authenticationRequired' }),
  });
  await later(0);
  await tellEvents();
  expect(await standing()).toEqual({ status: 'active', plan: 'active' });
  expect(world.succeeded().map((charge) => charge.amount)).toEqual([100_000, 100_000]);
});

test('a subscription that ends unpaid ends the plan; a plan bought afterwards begins a new one', async () => {
  await world.provider.setDefaultCard(customerId, 'pm_card_chargeCustomerFail');
  await later(60);
  await tellEvents();
  expect(await standing()).toEqual({ status: 'active', plan: 'canceled' });
  await world.provider.setDefaultCard(customerId, 'pm_card_visa');
  const workflow = await world.checkout(accountId, 'essentials_month');
  expect(await world.finish(workflow)).toMatchObject({ status: 'success' });
  await tellEvents();
  expect(await standing()).toEqual({ status: 'active', plan: 'active' });
  expect(await findAccount(world.database, accountId)).toMatchObject({
    planId: 'essentials_month',
  });
});

test('an event that comes again, late, or of a foreign customer has no effect', async () => {
  const [subscription] = world.simulator.state.list('subscription');
  world.simulator.state.save('subscription', { ...subscription!, status: 'paused' });
  const tell = async (eventId: string, objectId: string) => {
    const event = { eventId, type: 'customer.subscription.updated', objectId };
    await insertProviderEvent(world.database, event, Date.now() - 1_000);
    await world.settleEvents();
  };
  for (let time = 0; time < 3; time++) await tell(`evt_${time}`, subscription!.id);
  expect(await standing()).toEqual({ status: 'paused', plan: 'paused' });
  expect(await auditCount()).toBe(1);
  world.simulator.state.save('subscription', {
    ...subscription!,
    id: 'sub_else',
    customer: 'cus_else',
    status: 'canceled',
  });
  await tell('evt_else', 'sub_else');
  await tell('evt_none', 'sub_none');
  expect(await standing()).toEqual({ status: 'paused', plan: 'paused' });
});

test('a change of a subscription before its purchase is written down is not lost', async () => {
  await tellEvents();
  const workflow = await world.checkout(accountId, 'essentials_month');
  await world.advance(workflow, {
    async onPoint(point) {
      if (point !== 'after-vendor:subscribe') return;
      // Changed, ended by hand at once, and the payment provider's events are worked off before the worker goes on.
      const [subscription] = world.simulator.state.list('subscription');
      await world.provider.cancelSubscription(subscription!.id, 'by hand');
      await tellEvents();
      expect(await standing()).toEqual({ status: 'active', plan: 'canceled' });
    },
  });
  await world.settleEvents();
  expect(await standing()).toEqual({ status: 'active', plan: 'canceled' });
});

test('a subscription that does not exist, of a foreign customer, or in an unknown state leaves the account as it is', async () => {
  const { state } = world.simulator;
  const [subscription] = state.list('subscription');
  state.save('subscription', { ...subscription!, id: 'sub_else', customer: 'cus_else' });
  const asked: string[] = [];
  const provider = {
    ...world.provider,
    findSubscription(customer: string) {
      asked.push(customer);
      return world.provider.findSubscription(customer);
    },
  };
  const before = await findAccount(world.database, accountId);
  for (const id of ['sub_none', 'sub_else'])
    expect(await settleSubscription({ ...world.deps, provider }, id)).toBe(true);
  expect(asked).toEqual([]);
  state.save('subscription', { ...subscription!, status: 'of_next_year' });
  expect(await settleSubscription({ ...world.deps, provider }, subscription!.id)).toBe(true);
  expect(asked).toEqual([customerId]);
  expect(await findAccount(world.database, accountId)).toEqual(before);
});

test('the audit log shows that the service changed the account, from which state to which', async () => {
  const [subscription] = world.simulator.state.list('subscription');
  world.simulator.state.save('subscription', {
    ...subscription!,
    status: 'past_due',
    ...triedNow(),
  });
  await settleSubscription(world.deps, subscription!.id);
  world.simulator.state.save('subscription', { ...subscription!, status: 'paused' });
  await settleSubscription(world.deps, subscription!.id);
  const { rows } = await sql<{ actor: string; objectId: string; changes: object[] }>`
    select actor_type as actor, object_id as "objectId", changes from audit_logs
     where object_type = 'account' order by audit_log_id`.execute(world.database);
  const account = { actor: 'system', objectId: String(accountId) };
  const status = (from: string, to: string) => ({ attribute: 'status', from, to });
  const plan = { attribute: 'plan', from: { status: 'active' }, to: { status: 'paused' } };
  expect(rows).toMatchObject([
    { ...account, changes: [status('active', 'past_due')] },
    { ...account, changes: [status('past_due', 'paused'), plan] },
  ]);
});

describe('an event is applied only if', () => {
  const set = (status: string) => {
    const [subscription] = world.simulator.state.list('subscription');
    world.simulator.state.save('subscription', { ...subscription!, status, ...triedNow() });
    return subscription!.id;
  };

  test.each([
    ['paused', 'canceled', { status: 'active', plan: 'canceled' }],
    // Only the one or only the other of the two changes.
    ['active', 'past_due', { status: 'past_due', plan: 'active' }],
    ['canceled', 'active', { status: 'active', plan: 'active' }],
  ])(
    'the subscription stays as it was read: from %s to %s meanwhile, it is looked at again',
    async (first, second, expected) => {
      const id = set(first);
      const provider = {
        ...world.provider,
        async findSubscription(customer: string) {
          const read = await world.provider.findSubscription(customer);
          set(second);
          return read;
        },
      };
      expect(await settleSubscription({ ...world.deps, provider }, id)).toBe(false);
      expect(await settleSubscription(world.deps, id)).toBe(true);
      expect(await standing()).toEqual(expected);
    },
  );

  test.each(['readSubscription', 'findSubscription'] as const)(
    'the payment provider answers (%s)',
    async (call) => {
      const id = set('paused');
      let answers = 0;
      const failing = (from: number) => ({
        ...world.provider,
        [call]: async (of: string) =>
          answers++ < from
            ? world.provider[call](of)
            : ({ outcome: 'unknown', reason: 'no answer', isFinal: false } as const),
      });
      expect(await settleSubscription({ ...world.deps, provider: failing(0) }, id)).toBe(false);
      expect(await standing()).toEqual({ status: 'active', plan: 'active' });
      if (call === 'readSubscription') return;
      // After the write.
      answers = 0;
      expect(await settleSubscription({ ...world.deps, provider: failing(1) }, id)).toBe(false);
      expect(await standing()).toEqual({ status: 'paused', plan: 'paused' });
    },
  );

  test('the payment provider does not refuse the question, which it would refuse again', async () => {
    const id = set('paused');
    for (const call of ['readSubscription', 'findSubscription'] as const) {
      const refuse = async () => ({ outcome: 'refused', code: 'gone' }) as const;
      const provider = { ...world.provider, [call]: refuse };
      expect(await settleSubscription({ ...world.deps, provider }, id)).toBe(true);
    }
    expect(await standing()).toEqual({ status: 'active', plan: 'active' });
  });
});
