import {
  finishPurchaseWorkflow,
  lockPurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { untilLockWaiters } from '@sluice/database/testing/testing';
import type { PurchaseResult } from '@sluice/domain/billing/purchase-content';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
let base: string;
beforeEach(async () => {
  api = await startApi();
  base = `/v1/accounts/${api.a.accountId}/billing`;
});
afterEach(() => api.close());

const call = (
  method: 'GET' | 'POST',
  path: string,
  options: Parameters<ApiUnderTest['call']>[2] = {},
) => api.call(method, `${base}${path}`, { key: api.a.token, ...options });
const buy = (plan: string, body: object = {}) => call('POST', `/plans/${plan}`, { body });

const usd = (amount: number) => ({ amount, currency: 'usd' });

const subscriptionTo = (planId: string, couponCode: string | null): PurchaseResult => ({
  charged: { amount: 100, currency: 'usd' },
  invoiceId: 'in_1',
  subscription: {
    id: 'sub_1',
    planId,
    status: 'active',
    quantity: 1,
    couponCode,
    currentPeriodStartMs: 0,
    currentPeriodEndMs: 0,
    amount: { amount: 100, currency: 'usd' },
    latestInvoiceId: 'in_1',
  },
});
const endPurchaseWorkflow = (runId: string, status: 'success' | 'failed', result: PurchaseResult) =>
  api.database.transaction().execute(async (transaction) => {
    const key = { accountId: api.a.accountId, runId };
    await lockPurchaseWorkflow(transaction, key);
    await finishPurchaseWorkflow(
      transaction,
      key,
      { status, message: 'The card has expired. Use another card.', result },
      0,
    );
  });

/** Checkouts end in the test's hands, so each outlives its wait. */
const startCheckout = async (plan: string, body: object = {}): Promise<string> => {
  const answer = await buy(plan, body);
  expectProblem(answer, 409, 'checkout_pending');
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  expect(answer.json().meta.vendor_code).toBeTypeOf('string');
  return answer.json().meta.run_id as string;
};
const status = async (runId: string, query: string) =>
  (await call('GET', `/plans/checkout_status?run_id=${runId}&${query}`)).json();

describe('a checkout', () => {
  test('I24: that outlives its wait goes on, and its status reports the end', async () => {
    const runId = await startCheckout('premium_month');
    expect(await status(runId, 'plan_id=premium_month')).toEqual({
      run_id: runId,
      status: 'pending',
      message: null,
    });
    await endPurchaseWorkflow(runId, 'success', subscriptionTo('premium_month', null));
    expect(await status(runId, 'plan_id=premium_month')).toMatchObject({
      status: 'success',
      subscription: { id: 'sub_1', plan_id: 'premium_month', coupon_code: null },
    });
  });

  test('I25: for another plan at the same time joins the running purchase and never shows its subscription', async () => {
    const runIds = await Promise.all([
      startCheckout('premium_month'),
      startCheckout('essentials_month'),
      startCheckout('premium_year', { coupon_code: 'FIFTY' }),
    ]);
    const [runId] = runIds;
    expect(new Set(runIds).size).toBe(1);
    await endPurchaseWorkflow(runId, 'success', subscriptionTo('essentials_month', null));
    for (const query of ['plan_id=premium_month', 'plan_id=essentials_month&coupon_code=FIFTY']) {
      const told = await status(runId, query);
      expect(told.status).toBe('conflict');
      expect(told).not.toHaveProperty('subscription');
    }
    expect(await status(runId, 'plan_id=essentials_month')).toMatchObject({ status: 'success' });
  });

  test('I25: callers who wait for one run hear 409 unless it bought their plan, so many of it, with their coupon', async () => {
    let startCount = 0;
    const newId = () => String(++startCount);
    const patient = await startApi({ purchaseWaitMs: 15_000, newId });
    onTestFinished(() => patient.close());
    const { accountId, token } = patient.a;
    const plans = `/v1/accounts/${accountId}/billing/plans`;
    // With ids of their own, so that only runs are given new ones.
    const headers = { 'x-request-id': 'waiting' };
    const wait = (plan: string, body: object = {}) =>
      patient.call('POST', `${plans}/${plan}`, { key: token, body, headers });
    const waiting = [
      wait('premium_month'),
      wait('premium_month', { quantity: 2 }),
      wait('premium_month', { coupon_code: 'FIFTY' }),
      wait('premium_month', { expected_amount: { amount: 99, currency: 'usd' } }),
      wait('essentials_month'),
    ];
    // All have begun to start one, and each is done with it.
    await vi.waitFor(async () => {
      expect(startCount).toBe(waiting.length);
      const { rows } = await sql`
        select from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()
           and xact_start is not null`.execute(patient.database);
      expect(rows).toEqual([]);
    }, 10_000);
    const { rows } = await sql<{ runId: string }>`select run_id as "runId" from runs`.execute(
      patient.database,
    );
    expect(rows).toHaveLength(1);
    const { runId } = rows[0]!;
    await patient.database.transaction().execute(async (transaction) => {
      const key = { accountId, runId };
      await lockPurchaseWorkflow(transaction, key);
      const result = subscriptionTo('premium_month', null);
      await finishPurchaseWorkflow(
        transaction,
        key,
        { status: 'success', message: null, result },
        0,
      );
    });
    const [own, ...others] = await Promise.all(waiting);
    expect(own!.json()).toMatchObject({ subscription: { plan_id: 'premium_month' } });
    for (const other of others) {
      expectProblem(other, 409, 'checkout_conflict');
      expect(other.headers['retry-after']).toBeUndefined();
      expect(other.json().meta.run_id).toBe(runId);
    }
  });

  test('I26: that applied a coupon also answers a status query without a coupon', async () => {
    const runId = await startCheckout('premium_month', { coupon_code: 'FIFTY' });
    await endPurchaseWorkflow(runId, 'success', subscriptionTo('premium_month', 'FIFTY'));
    expect(await status(runId, 'plan_id=premium_month')).toMatchObject({
      status: 'success',
      subscription: { coupon_code: 'FIFTY' },
    });
  });

  test('that failed gives the reason in words for the customer', async () => {
    const runId = await startCheckout('premium_month');
    await endPurchaseWorkflow(runId, 'failed', { charged: null, invoiceId: null });
    expect(await status(runId, 'plan_id=premium_month')).toEqual({
      run_id: runId,
      status: 'failed',
      message: 'The card has expired. Use another card.',
    });
  });

  test.each([
    ['addons_of_other_cycle', 'plan_transition_not_allowed', {}, null],
    ['coupon_expired', 'coupon_not_valid', { coupon_code: 'FIFTY' }, 'coupon_code'],
    ['amount_changed', 'amount_changed', { expected_amount: usd(99) }, 'expected_amount'],
    ['payment_past_due', 'payment_past_due', { coupon_code: 'FIFTY' }, null],
    ['payment_pending', 'payment_pending', { expected_amount: usd(99) }, null],
  ] as const)(
    'that is refused for %s answers with its own code and the refused field, not as a declined card',
    async (refusal, code, body, field) => {
      const patient = await startApi({ purchaseWaitMs: 15_000 });
      onTestFinished(() => patient.close());
      const { accountId, token: key } = patient.a;
      const billing = `/v1/accounts/${accountId}/billing`;
      const wait = (asked: object, sharer: string) =>
        patient.call('POST', `${billing}/plans/premium_year`, {
          key,
          body: asked,
          headers: { 'idempotency-key': sharer },
        });
      const waiting = wait(body, 'first');
      const runId = await vi.waitFor(async () => {
        const { runs: workflows } = (await patient.call('GET', `${billing}/runs`, { key })).json();
        expect(workflows).toHaveLength(1);
        return workflows[0].run_id as string;
      }, 10_000);
      // A caller who shares the purchase workflow, once its call is known, has not named it.
      const sharing = wait({}, 'second');
      await vi.waitFor(async () => {
        const { rows } = await sql`
          select from idempotency_keys where outcome is not null`.execute(patient.database);
        expect(rows).toHaveLength(2);
      }, 10_000);
      await patient.database.transaction().execute(async (transaction) => {
        await lockPurchaseWorkflow(transaction, { accountId, runId });
        const result = { charged: null, invoiceId: null, refusal };
        const end = { status: 'failed', message: 'Not now.', result } as const;
        await finishPurchaseWorkflow(transaction, { accountId, runId }, end, 0);
      });
      const answer = await waiting;
      expect(expectProblem(answer, 409, code).errors).toMatchObject([{ field }]);
      expect(answer.json().meta.run_id).toBe(runId);
      expect((await sharing).json()).toMatchObject({ code, errors: [{ field: null }] });
    },
  );

  test('I27: is found by run and plan, which are both required, and only by its own account', async () => {
    const runId = await startCheckout('premium_month');
    for (const [query, missing] of [
      ['plan_id=premium_month', 'run_id'],
      [`run_id=${runId}`, 'plan_id'],
    ]) {
      const answer = await call('GET', `/plans/checkout_status?${query}`);
      const { errors } = expectProblem(answer, 422, 'validation_failed');
      expect(errors).toMatchObject([{ field: missing, reason: 'required' }]);
    }
    const asB = `/v1/accounts/${api.b.accountId}/billing/plans/checkout_status`;
    expectProblem(
      await api.call('GET', `${asB}?run_id=${runId}&plan_id=premium_month`, { key: api.b.token }),
      404,
      'not_found',
    );
  });

  test.each([
    [{ coupon_code: 'NOTHING' }, 'coupon_code'],
    [{ amount: 1 }, 'amount'],
    [{ quantity: 0 }, 'quantity'],
    [{ payment_method_id: 'card' }, 'payment_method_id'],
  ])('with %j is refused before it starts', async (body, field) => {
    const answer = await buy('premium_month', body);
    expectProblem(answer, 422, 'validation_failed');
    expect(answer.json().errors[0].field).toBe(field);
    expectProblem(await buy('no_such_plan'), 404, 'not_found');
    expect((await call('GET', '/runs')).json().runs).toEqual([]);
  });
});

test('the plans of the catalogue are listed with the change from the plan of the account', async () => {
  await sql`update accounts set plan_id = 'essentials_month', plan_tier = 'essentials'
             where account_id = ${api.a.accountId}`.execute(api.database);
  const { plans } = (await call('GET', '/plans')).json();
  expect(plans.map((plan: { id: string; change: string }) => [plan.id, plan.change])).toEqual([
    ['builder', 'downgrade'],
    ['essentials_month', null],
    ['premium_month', 'upgrade'],
    ['premium_year', 'upgrade'],
  ]);
  expect((await call('GET', '/plans?product_type=none')).json().plans).toEqual([]);
});

describe('the way to the Builder plan', () => {
  const put = (tier: string, state: string) =>
    sql`update accounts set plan_id = 'essentials_month', plan_tier = ${tier}, plan_status = ${state}
         where account_id = ${api.a.accountId}`.execute(api.database);
  const planOf = async () => {
    const { rows } = await sql`
      select plan_tier as tier, plan_status as status, (select count(*)::int from audit_logs) as entries
        from accounts where account_id = ${api.a.accountId}`.execute(api.database);
    return rows[0];
  };
  const downgrade = (more: object = {}) =>
    call('POST', '/downgrade-to-builder', { body: { reason: 'small', ...more } });

  test('leads from an Essentials trial only, with one entry in the audit log', async () => {
    for (const [tier, state] of [
      ['essentials', 'active'],
      ['premium', 'trialing'],
    ] as const) {
      await put(tier, state);
      expectProblem(await downgrade(), 409, 'plan_transition_not_allowed');
      expectProblem(await downgrade({ if_trialing: false }), 409, 'plan_transition_not_allowed');
    }
    await put('essentials', 'trialing');
    for (let time = 0; time < 2; time++) {
      const answer = await downgrade();
      expect([answer.statusCode, answer.body]).toEqual([200, '']);
    }
    const { rows } = await sql<{ plan: string; entries: number }>`
      select plan_id as plan, (select count(*)::int from audit_logs) as entries from accounts
       where account_id = ${api.a.accountId}`.execute(api.database);
    expect(rows).toEqual([{ plan: 'builder', entries: 1 }]);
  });

  test('with if_trialing, an account that is in no such trial stays as it is, and one in a trial is moved', async () => {
    const states = ['essentials active', 'premium trialing', 'premium active', 'builder active'];
    for (const state of states) {
      const [tier = '', standing = ''] = state.split(' ');
      await put(tier, standing);
      const answer = await downgrade({ if_trialing: true });
      expect([answer.statusCode, answer.body]).toEqual([200, '']);
      expect(await planOf()).toEqual({ tier, status: standing, entries: 0 });
    }
    await put('essentials', 'trialing');
    expect((await downgrade({ if_trialing: true })).statusCode).toBe(200);
    expect(await planOf()).toEqual({ tier: 'builder', status: 'active', entries: 1 });
    expectProblem(await downgrade({ if_trialing: 'yes' }), 422, 'validation_failed');
  });

  test('is closed to an account on the Builder plan that never had a trial', async () => {
    await sql`
      update accounts set plan_id = 'builder', plan_tier = 'builder', plan_status = 'active', trial_ends_at = null
       where account_id = ${api.a.accountId}`.execute(api.database);
    expectProblem(await downgrade(), 409, 'plan_transition_not_allowed');
  });

  test('I28: and a checkout that starts at the same moment cannot both win', async () => {
    await put('essentials', 'trialing');
    const { accountId } = api.a;
    const started = Promise.withResolvers<void>();
    const committed = Promise.withResolvers<void>();
    // A checkout whose start is written and not yet committed.
    const starting = api.database.transaction().execute(async (transaction) => {
      await sql`
        insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at)
        values (${accountId}, 'run_1', 'checkout', 'checkout', 'card', '', '{}', '{}', now())`.execute(
        transaction,
      );
      started.resolve();
      await committed.promise;
    });
    await started.promise;
    const downgrading = downgrade();
    await untilLockWaiters(api.database, 1);
    committed.resolve();
    await starting;
    expectProblem(await downgrading, 409, 'plan_transition_not_allowed');
  });

  test('I28: is closed while a checkout runs', async () => {
    await put('essentials', 'trialing');
    await startCheckout('premium_month');
    expectProblem(await downgrade(), 409, 'plan_transition_not_allowed');
  });
});
