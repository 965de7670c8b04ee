/** Checkouts of a plan: the wait, callers who share one, and the status. */
import {
  finishPurchaseWorkflow,
  lockPurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import type { PurchaseResult } from '@sluice/domain/billing/purchase-content';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi } from '../support/api-under-test.ts';
import { startPlanCalls, type PlanCalls } from './plan-calls.ts';

let api: PlanCalls['api'];
let call: PlanCalls['call'];
let startCheckout: PlanCalls['startCheckout'];
beforeEach(async () => {
  ({ api, call, startCheckout } = await startPlanCalls());
});
afterEach(() => api.close());

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
    const patient = await startApi({ purchaseWaitMs: 60_000, newId });
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
    }, 30_000);
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
});
