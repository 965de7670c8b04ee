/** An account that a statement closes is not charged any more. */
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import { listClosedCustomers } from '@sluice/database/billing/provider-customers';
import { listBookedSubscribers } from '@sluice/database/verify/verify-purchases';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import {
  endClosedSubscriptions,
  type EndClosedSubscriptionsDeps,
} from '../../../src/purchases/end-closed-subscriptions.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

const DAY_MS = 86_400_000;

let world: Subscriptions;
let asked: string[];
beforeEach(async () => {
  world = await startSubscriptions();
  asked = [];
});

const subscribe = async (): Promise<number> => {
  const accountId = await world.addAccount('pm_card_visa');
  await world.finish(await world.checkout(accountId, 'premium_month'));
  return accountId;
};
const put = (accountId: number, status: string) =>
  sql`update accounts set status = ${status} where account_id = ${accountId}`.execute(
    world.database,
  );
const look = (provider: EndClosedSubscriptionsDeps['provider'] = watched()) =>
  endClosedSubscriptions({ ...world.deps, provider });
const statuses = () =>
  world.simulator.state.list('subscription').map((each) => String(each['status']));

async function expectDone(): Promise<void> {
  world.clock.aheadMs += 660_000;
  asked = [];
  await look();
  expect(asked).toEqual([]);
  expect(await listClosedCustomers(world.database, world.deps.now(), 10)).toEqual([]);
}

/** The payment provider; its requests are recorded. */
function watched(): Pick<PaymentProvider, 'findSubscription' | 'cancelSubscription'> {
  const { provider } = world;
  return {
    findSubscription(customerId) {
      asked.push(customerId);
      return provider.findSubscription(customerId);
    },
    cancelSubscription: (subscriptionId, key) => provider.cancelSubscription(subscriptionId, key),
  };
}

test('the subscription of a closed account is ended once, and subscriptions of other accounts go on', async () => {
  const closed = await subscribe();
  await subscribe();
  await look();
  expect(asked).toEqual([]);
  await put(closed, 'closed');
  await look();
  expect(statuses()).toEqual(['canceled', 'active']);
  // No subscription is left, so soon the payment provider is not asked any more.
  await look();
  await expectDone();
  world.moveClocks(32 * DAY_MS);
  expect(world.succeeded()).toHaveLength(3);
  await world.tellEvents();
  const { rows } = await sql<{ status: string }>`
    select status from accounts order by account_id`.execute(world.database);
  expect(rows.map(({ status }) => status)).toEqual(['closed', 'active']);
  // Nor does `npm run verify` miss it.
  const subscribers = await listBookedSubscribers(world.database);
  expect(subscribers.map(({ accountId }) => accountId)).not.toContain(closed);
});

test('a subscription that was made by hand beside it is ended too', async () => {
  const accountId = await subscribe();
  const [made] = world.simulator.state.list('subscription');
  world.simulator.state.save('subscription', { ...made!, id: 'sub_by_hand', status: 'trialing' });
  await put(accountId, 'closed');
  await look();
  expect(statuses()).toEqual(['canceled', 'canceled']);
});

test('two workers at the same time, and one after another that died, do no more than one', async () => {
  const accountId = await subscribe();
  await put(accountId, 'closed');
  const dying = {
    ...watched(),
    async cancelSubscription(subscriptionId: string, key: string) {
      await world.provider.cancelSubscription(subscriptionId, key);
      throw new Error('killed');
    },
  };
  await look(dying);
  await Promise.all([look(), look()]);
  expect(statuses()).toEqual(['canceled']);
  await expectDone();
});

test('an account whose subscription cannot be ended does not keep the next from its turn, and is tried again', async () => {
  const accountIds = [await subscribe(), await subscribe()];
  for (const accountId of accountIds) await put(accountId, 'closed');
  const [first] = world.simulator.state.list('subscription');
  const away = {
    ...watched(),
    cancelSubscription: (subscriptionId: string, key: string) =>
      subscriptionId === first!.id
        ? Promise.resolve({ outcome: 'unknown', reason: '500', isFinal: true } as const)
        : world.provider.cancelSubscription(subscriptionId, key),
  };
  // In either order, a payment provider that does not answer is left alone until the next look.
  for (let time = 0; time < 30; time++) await look(away);
  expect(statuses()).toEqual(['active', 'canceled']);
  await look();
  expect(statuses()).toEqual(['canceled', 'canceled']);
});

test('a plan that is bought while the account is closed is ended when the purchase is over', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.checkout(accountId, 'premium_month');
  await world.turn(workflow, 'before-intent:subscribe');
  await put(accountId, 'closed');
  await look();
  await world.finish(workflow);
  expect(statuses()).toEqual(['active']);
  await look();
  expect(statuses()).toEqual(['canceled']);
});

test('an account that is opened, buys a plan and is closed again is looked at again', async () => {
  const accountId = await subscribe();
  await put(accountId, 'closed');
  await look();
  await expectDone();
  await put(accountId, 'active');
  await look();
  await world.finish(await world.checkout(accountId, 'premium_month'));
  await put(accountId, 'closed');
  await look();
  expect(statuses()).toEqual(['canceled', 'canceled']);
});

const standing = async (accountId: number) => {
  const { rows } = await sql<{ status: string; plan: string }>`
    select status, plan_status as plan from accounts where account_id = ${accountId}`.execute(
    world.database,
  );
  return rows[0];
};

test('an account that a version from before has closed loses its plan, once', async () => {
  const accountId = await subscribe();
  await world.tellEvents();
  // An account that was never sold a plan is its operator's matter, on any plan.
  const given = await world.addAccount('pm_card_visa');
  await put(accountId, 'closed');
  await put(given, 'closed');
  await look();
  world.takeEvents();
  await sql`update accounts set plan_status = 'active' where account_id = ${accountId}`.execute(
    world.database,
  );
  world.clock.aheadMs += 660_000;
  await look();
  expect(await standing(accountId)).toEqual({ status: 'closed', plan: 'canceled' });
  expect(await standing(given)).toEqual({ status: 'closed', plan: 'active' });
  const { rows } = await sql<{ changes: unknown }>`
    select changes from audit_logs where account_id = ${accountId} and object_type = 'account'
     order by audit_log_id desc limit 1`.execute(world.database);
  expect(JSON.stringify(rows)).toContain('canceled');
  await expectDone();
});

test('an account that is opened during an empty look-up, and on a plan, keeps it', async () => {
  const accountId = await subscribe();
  await world.tellEvents();
  await put(accountId, 'closed');
  await look({
    ...watched(),
    async findSubscription() {
      await put(accountId, 'active');
      return { outcome: 'ok', value: null };
    },
  });
  expect(await standing(accountId)).toEqual({ status: 'active', plan: 'active' });
});

test.each([
  ['and the vendor tells it', true],
  ['though the vendor’s event is lost', false],
])('an account that is opened again has no plan until it buys one, %s', async (_what, isTold) => {
  const accountId = await subscribe();
  await world.tellEvents();
  await put(accountId, 'closed');
  await look();
  if (isTold) await world.tellEvents();
  else world.takeEvents();
  expect(await standing(accountId)).toEqual({ status: 'closed', plan: 'canceled' });
  await put(accountId, 'active');
  await world.settleEvents();
  expect(await standing(accountId)).toEqual({ status: 'active', plan: 'canceled' });
  await world.finish(await world.checkout(accountId, 'premium_month'));
  await world.tellEvents();
  expect(await standing(accountId)).toEqual({ status: 'active', plan: 'active' });
});

test('an account that is opened while the payment provider is asked keeps its subscription', async () => {
  const accountId = await subscribe();
  await put(accountId, 'closed');
  await look({
    ...watched(),
    async findSubscription(customerId) {
      const found = await world.provider.findSubscription(customerId);
      await put(accountId, 'active');
      return found;
    },
  });
  expect(statuses()).toEqual(['active']);
});

test('a purchase that an older version starts after an empty look-up is found within ten minutes', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  await put(accountId, 'closed');
  await look();
  const workflow = await world.checkout(accountId, 'premium_month');
  world.clock.aheadMs += 300_000;
  await look();
  // It may take long, and is waited for.
  world.clock.aheadMs += 3_600_000;
  await world.finish(workflow);
  await look();
  expect(statuses()).toEqual(['canceled']);
});

test('an account that the payment provider knows no customer for is not read again and again', async () => {
  await world.finish(await world.buyPack(await world.addAccount('pm_card_visa')));
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name, status) values ('Acme', 'closed')
    returning account_id::int as "accountId"`.execute(world.database);
  await look();
  expect(rows).toHaveLength(1);
  await expectDone();
});

test('a worker that stops asks about no other account, nor one whom the payment provider does not answer', async () => {
  for (let count = 0; count < 3; count++) await put(await subscribe(), 'closed');
  const stopping = { ...watched() };
  await endClosedSubscriptions({ ...world.deps, provider: stopping }, () => asked.length > 0);
  expect(new Set(asked).size).toBe(1);
  asked = [];
  const away = {
    ...watched(),
    findSubscription(customerId: string) {
      asked.push(customerId);
      return Promise.resolve({ outcome: 'unknown', reason: 'timeout', isFinal: false } as const);
    },
  };
  await look(away);
  expect(asked).toHaveLength(1);
});
