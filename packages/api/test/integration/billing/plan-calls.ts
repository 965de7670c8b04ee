/** Calls about the plan of an account, for tests. */
import { expect } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

/** The API, called by an account about its plan. */
export async function startPlanCalls() {
  const api = await startApi();
  const base = `/v1/accounts/${api.a.accountId}/billing`;
  const call = (
    method: 'GET' | 'POST',
    path: string,
    options: Parameters<ApiUnderTest['call']>[2] = {},
  ) => api.call(method, `${base}${path}`, { key: api.a.token, ...options });
  const buy = (plan: string, body: object = {}) => call('POST', `/plans/${plan}`, { body });
  /** Checkouts end in the test's hands, so each outlives its wait. */
  async function startCheckout(plan: string, body: object = {}): Promise<string> {
    const answer = await buy(plan, body);
    expectProblem(answer, 409, 'checkout_pending');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(answer.json().meta.vendor_code).toBeTypeOf('string');
    return answer.json().meta.run_id as string;
  }
  return { api, call, buy, startCheckout };
}

export type PlanCalls = Awaited<ReturnType<typeof startPlanCalls>>;
