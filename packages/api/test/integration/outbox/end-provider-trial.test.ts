/** A downgrade from a trial to the Builder plan ends all charges. */
import type { Simulator } from '@sluice/billing-vendor/simulator/simulator';
import { listCharges } from '@sluice/billing-vendor/simulator/simulator-controls';
import { renewSubscriptions } from '@sluice/billing-vendor/simulator/objects/simulator-renewals';
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import { findBillingAccount, updateAccountStanding } from '@sluice/database/billing/account-plans';
import { insertProviderCustomer } from '@sluice/database/billing/provider-customers';
import { standingOf } from '@sluice/domain/billing/subscription-status';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRelay } from '../../../src/outbox/outbox-relay.ts';
import { SECRET, startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { startProviderBeside } from '../support/provider-under-test.ts';

const DAY_MS = 86_400_000;

let api: ApiUnderTest;
let simulator: Simulator;
let provider: PaymentProvider;
let failures: unknown[];
let relay: () => Promise<number>;
beforeEach(async () => {
  api = await startApi();
  const beside = await startProviderBeside(api);
  ({ simulator, provider } = beside);
  failures = [];
  relay = createRelay({
    database: api.database,
    mailer: { send: async () => {} },
    analytics: undefined,
    provider,
    providerTimeoutMs: 5_000,
    secret: SECRET,
    now: () => api.clock.nowMs,
    onFailure: (_entry, error) => failures.push(error),
  });

  // As a seller gives a trial: at the payment provider, and the payment provider's event has come.
  const { accountId } = api.a;
  const made = await provider.createCustomer({ accountId, name: 'A', email: 'a@example.com' }, 'a');
  if (made.outcome !== 'ok') throw new Error(made.outcome);
  await provider.setDefaultCard(made.value, 'pm_card_visa');
  await api.database
    .transaction()
    .execute((transaction) =>
      insertProviderCustomer(transaction, accountId, made.value, api.clock.nowMs),
    );
  await beside.stripe.subscriptions.create({
    customer: made.value,
    items: [{ price: 'price_essentials_month' }],
    trial_period_days: 14,
  });
  await sql`
    update accounts set plan_id = 'essentials_month', plan_tier = 'essentials', plan_status = 'trialing'
     where account_id = ${accountId}`.execute(api.database);
});
afterEach(async () => {
  await simulator.close();
  await api.close();
});

const downgrade = async () => {
  const path = `/v1/accounts/${api.a.accountId}/billing/downgrade-to-builder`;
  const answer = await api.call('POST', path, { key: api.a.token, body: {} });
  expect(answer.statusCode).toBe(200);
};
const statuses = () => simulator.state.list('subscription').map((each) => each['status']);
const chargesAfter = (days: number) => {
  simulator.state.advanceClock(days * DAY_MS);
  renewSubscriptions(simulator.state);
  return listCharges(simulator.state);
};

test('a trial without an early end is charged when it is over', () => {
  expect(chargesAfter(15)).toMatchObject([{ amount: 10_000, status: 'succeeded' }]);
});

test('a trial that was left for the Builder plan is ended at the payment provider, and never charged', async () => {
  await downgrade();
  await relay();
  expect(failures).toEqual([]);
  expect(statuses()).toEqual(['canceled']);
  expect(chargesAfter(60)).toEqual([]);
});

test('it is ended as soon as the payment provider answers, once, and only after a purchase that runs', async () => {
  await downgrade();
  simulator.faults.add({ kind: 'error', path: '/subscriptions', count: 1 });
  await relay();
  expect(statuses()).toEqual(['trialing']);
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at)
    values (${api.a.accountId}, 'run_1', 'checkout', 'checkout', 'card', '', '{}', '{}', now())`.execute(
    api.database,
  );
  api.clock.nowMs += DAY_MS;
  await relay();
  expect(statuses()).toEqual(['trialing']);
  await sql`update runs set status = 'failed', result = '{}', finished_at = now()`.execute(
    api.database,
  );
  api.clock.nowMs += DAY_MS;
  await relay();
  expect(statuses()).toEqual(['canceled']);
  expect(failures).toHaveLength(2);
  api.clock.nowMs += DAY_MS;
  expect(await relay()).toBe(0);
});

test('a plan that was bought since keeps the subscription that it has taken over', async () => {
  await downgrade();
  await sql`
    update accounts set plan_id = 'premium_month', plan_tier = 'premium', trial_ends_at = null
     where account_id = ${api.a.accountId}`.execute(api.database);
  await relay();
  expect([statuses(), failures]).toEqual([['trialing'], []]);
});

test('the later status of the trial’s subscription does not change the Builder plan', async () => {
  await downgrade();
  for (const status of ['trialing', 'active', 'past_due', 'canceled']) {
    const standing = standingOf(status)!;
    await api.database
      .transaction()
      .execute((transaction) =>
        updateAccountStanding(transaction, api.a.accountId, standing, api.clock.nowMs),
      );
    expect(await findBillingAccount(api.database, api.a.accountId)).toMatchObject({
      planId: 'builder',
      planStatus: 'active',
    });
  }
});
