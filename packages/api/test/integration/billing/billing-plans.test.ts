/** The plans that an account may choose. */
import { untilLockWaiters } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startPlanCalls, type PlanCalls } from './plan-calls.ts';

let api: PlanCalls['api'];
let call: PlanCalls['call'];
let startCheckout: PlanCalls['startCheckout'];
beforeEach(async () => {
  ({ api, call, startCheckout } = await startPlanCalls());
});
afterEach(() => api.close());

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
