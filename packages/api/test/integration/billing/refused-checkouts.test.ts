/** Checkouts that are refused: before they start, or with the reason at their end. */
import {
  finishPurchaseWorkflow,
  lockPurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi } from '../support/api-under-test.ts';
import { startPlanCalls, type PlanCalls } from './plan-calls.ts';

let api: PlanCalls['api'];
let call: PlanCalls['call'];
let buy: PlanCalls['buy'];
beforeEach(async () => {
  ({ api, call, buy } = await startPlanCalls());
});
afterEach(() => api.close());

const usd = (amount: number) => ({ amount, currency: 'usd' });

describe('a checkout', () => {
  test.each([
    ['addons_of_other_cycle', 'plan_transition_not_allowed', {}, null],
    ['coupon_expired', 'coupon_not_valid', { coupon_code: 'FIFTY' }, 'coupon_code'],
    ['amount_changed', 'amount_changed', { expected_amount: usd(99) }, 'expected_amount'],
    ['payment_past_due', 'payment_past_due', { coupon_code: 'FIFTY' }, null],
    ['payment_pending', 'payment_pending', { expected_amount: usd(99) }, null],
  ] as const)(
    'that is refused for %s answers with its own code and the refused field, not as a declined card',
    async (refusal, code, body, field) => {
      const patient = await startApi({ purchaseWaitMs: 60_000 });
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
      }, 20_000);
      // A caller who shares the purchase workflow, once its call is known, has not named it.
      const sharing = wait({}, 'second');
      await vi.waitFor(async () => {
        const { rows } = await sql`
          select from idempotency_keys where outcome is not null`.execute(patient.database);
        expect(rows).toHaveLength(2);
      }, 20_000);
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
