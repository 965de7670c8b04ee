/**
 * Purchases paid by credit with the payment provider.
 *
 * The customer's credit pays them wholly or in part, through the processes.
 */
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  CARD,
  INVOICED,
  startPurchaseServices,
  type PurchaseServices,
} from './purchase-services.ts';

const TEST_TIMEOUT_MS = 180_000;

let services: PurchaseServices;
beforeAll(async () => {
  services = await startPurchaseServices(testRedisUrl());
  for (const account of [CARD, INVOICED])
    await services.call(account, '/payment_method/default', { payment_method_id: 'pm_card_visa' });
}, TEST_TIMEOUT_MS);
afterAll(() => services.close());

type Account = typeof CARD | typeof INVOICED;

const setCredit = (account: Account, amount: number): void => {
  const { state } = services.simulator;
  const customer = state
    .list('customer')
    .find(
      (each) =>
        (each['metadata'] as { account_id: string }).account_id === String(account.accountId),
    );
  state.save('customer', { ...customer!, balance: -amount });
};
const credit = (): number =>
  services.simulator.state.list('customer').reduce((sum, each) => sum - Number(each['balance']), 0);
const listRuns = async (account: Account): Promise<readonly { status: string }[]> =>
  (await services.call(account, '/runs?limit=100')).body['runs'] as { status: string }[];

test.each([
  ['/inbox_previews/payment_intent', { pack: 'pack_100' }, 2_000],
  ['/ai_credits/payment_intent', { quantity: 1_000 }, 1_000],
  ['/builder_credits/payment_intent', { quantity: 100 }, 1_500],
])(
  '%s: a purchase that credit pays is granted at once, and repeated calls buy it once',
  { timeout: TEST_TIMEOUT_MS },
  async (path, body, price) => {
    setCredit(CARD, 10_000);
    const before = (await listRuns(CARD)).length;
    const answers = await Promise.all([1, 2].map(() => services.call(CARD, path, body)));
    answers.push(await services.call(CARD, path, body));
    for (const answer of answers)
      expect(answer).toMatchObject({
        status: 200,
        body: {
          status: 'granted',
          payment: null,
          client_secret: null,
          amount: { amount: 0, currency: 'usd' },
        },
      });
    const [invoiceId] = new Set(answers.map((answer) => answer.body['invoice_id']));
    expect(new Set(answers.map((answer) => answer.body['invoice_id']))).toEqual(
      new Set([expect.stringMatching(/^in_/)]),
    );
    const polled = await services.call(
      CARD,
      `${path.replace('payment_intent', 'purchase_status')}?invoice_id=${String(invoiceId)}`,
    );
    expect(polled.body).toMatchObject({ status: 'granted' });
    expect((await listRuns(CARD)).length).toBe(before + 1);
    expect(credit()).toBe(10_000 - price);
    expect(services.paid()).toEqual([]);
    setCredit(CARD, 0);
  },
);

test(
  'by invoice: a purchase that credit pays succeeds without a card, and a repeated call is granted',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    setCredit(INVOICED, 10_000);
    const first = await services.call(INVOICED, '/credits/purchase', { llm: { quantity: 1_000 } });
    expect(first).toMatchObject({ status: 200, body: { payment: null, client_secret: null } });
    expect(await services.untilEnded(INVOICED, first.body.run_id)).toMatchObject({
      status: 'success',
    });
    const again = await services.call(INVOICED, '/ai_credits/invoiced_purchase', {
      quantity: 1_000,
    });
    expect(again).toMatchObject({
      status: 200,
      body: { run_id: first.body.run_id, status: 'granted', payment: null, client_secret: null },
    });
    expect(credit()).toBe(9_000);
    setCredit(INVOICED, 0);
  },
);

test(
  'if credit pays a part, the payment is for the rest; the same purchase again is the same payment',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    setCredit(CARD, 500);
    const buy = () => services.call(CARD, '/credits/purchase', { llm: { quantity: 4_000 } });
    const answers = await Promise.all([buy(), buy()]);
    const [first, second] = answers.map(({ body }) => body);
    expect(first).toMatchObject({
      status: 'pending',
      payment: { amount: { amount: 3_500, currency: 'usd' } },
    });
    expect(second).toMatchObject({
      purchase_id: first!['purchase_id'],
      payment: first!['payment'],
      client_secret: (first!['payment'] as { client_secret: string }).client_secret,
    });
    const legacy = await services.call(CARD, '/ai_credits/payment_intent', { quantity: 4_000 });
    expect(legacy.body).toMatchObject({
      status: 'open',
      amount: { amount: 3_500, currency: 'usd' },
      payment: first!['payment'],
    });
  },
);
