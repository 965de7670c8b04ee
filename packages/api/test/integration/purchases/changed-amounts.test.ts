/** Card purchases that the workers refuse for their price. */
import {
  finishPurchaseWorkflow,
  lockPurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import type { CheckoutRefusal } from '@sluice/domain/billing/decline-message';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
beforeAll(async () => {
  // Longer than the stalls of a busy machine: the call waits until its purchase has ended.
  billing = await startBilling({ purchaseWaitMs: 60_000 });
  await billing.setAccount("billing_rail = 'card'");
});
afterAll(() => billing.api.close());

let endedCount = 0;
beforeEach(async () => {
  endedCount = await billing.countPurchases();
});

/** Not by `call`, which expects an answer below 500. */
const buy = (path: string, payload: object, key: string) =>
  billing.api.app.inject({
    method: 'POST',
    url: `${billing.base}${path}`,
    headers: { authorization: `Bearer ${billing.api.a.token}`, 'idempotency-key': key },
    payload,
  });

/** A worker ends the purchase that the call has started, before any call to the payment provider. */
async function refuse(refusal: CheckoutRefusal | undefined): Promise<string> {
  const runId = await vi.waitFor(async () => {
    const { runs } = (await billing.call('GET', '/runs')).json();
    expect(runs).toHaveLength(endedCount + 1);
    return runs.find((run: { status: string }) => run.status === 'pending').run_id as string;
  }, 20_000);
  const key = { accountId: billing.api.a.accountId, runId };
  await billing.api.database.transaction().execute(async (transaction) => {
    await lockPurchaseWorkflow(transaction, key);
    const result = { charged: null, invoiceId: null, ...(refusal && { refusal }) };
    const end = { status: 'failed', message: 'Not at this price.', result } as const;
    await finishPurchaseWorkflow(transaction, key, end, billing.api.clock.nowMs);
  });
  return runId;
}

test.each([
  ['/credits/purchase', { llm: { quantity: 1_000 } }],
  ['/inbox_previews/payment_intent', { pack: 'pack_100' }],
  ['/ai_credits/payment_intent', { quantity: 2_000 }],
  ['/builder_credits/payment_intent', { quantity: 100 }],
])('%s is 409 amount_changed with its purchase, without a charge', async (path, body) => {
  const waiting = buy(path, body, path);
  const runId = await refuse('amount_changed');
  const { message, errors } = expectProblem(await waiting, 409, 'amount_changed');
  expect(message).toBe(
    'The amount is not the one that was shown; the account was not charged. Buy again at the new amount.',
  );
  expect(errors).toMatchObject([{ field: null }]);
  expect((await waiting).json().meta.run_id).toBe(runId);
  expect((await billing.call('GET', `/runs/${runId}`)).json()).toMatchObject({
    status: 'failed',
    charged: null,
  });
  // The same call again starts no other purchase, and has the same answer.
  const again = await buy(path, body, path);
  expectProblem(again, 409, 'amount_changed');
  expect(again.json().meta.run_id).toBe(runId);
  expect(await billing.countPurchases()).toBe(endedCount + 1);
});

test('a card purchase that failed for another reason does not ask for another amount', async () => {
  const waiting = buy('/credits/purchase', { llm: { quantity: 3_000 } }, 'another');
  await refuse(undefined);
  expectProblem(await waiting, 502, 'vendor_refused');
});
