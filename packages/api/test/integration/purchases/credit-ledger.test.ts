import { grantCredits } from '@sluice/database/credits/credits';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
beforeEach(async () => {
  billing = await startBilling();
});
afterEach(() => billing.api.close());

test('the ledger is paged both here and to its end, and a place in one is no place in another', async () => {
  const { accountId } = billing.api.a;
  await billing.api.database.transaction().execute(async (transaction) => {
    for (let n = 1; n <= 5; n++)
      await grantCredits(
        transaction,
        { accountId, kind: 'llm' },
        { pool: 'goodwill', amount: n, expiresAtMs: null, key: `goodwill:${n}` },
        billing.api.clock.nowMs,
      );
  });
  const first = (await billing.call('GET', '/credits/ledger?limit=3')).json();
  expect(first.entries.map((entry: { amount: number }) => entry.amount)).toEqual([5, 4, 3]);
  const rest = (await billing.call('GET', `/credits/ledger?limit=3&start=${first.next}`)).json();
  expect(rest.entries.map((entry: { amount: number }) => entry.amount)).toEqual([2, 1]);
  expect(rest.next).toBe('');
  const foreign = await billing.call(
    'GET',
    `/credits/ledger?credit_type=builder&start=${first.next}`,
  );
  expectProblem(foreign, 400, 'invalid_request');
  expect((await billing.call('GET', '/credits/balance/llm')).json()).toMatchObject({
    total_available: 15,
    pools: [{ granted: 0 }, { pool: 'goodwill', granted: 15, used: 0, remaining: 15 }, {}],
  });
  expect((await billing.call('GET', '/credits/balance')).json().balances).toHaveLength(2);
  expectProblem(await billing.call('GET', '/credits/balance/sms'), 404, 'not_found');
});
