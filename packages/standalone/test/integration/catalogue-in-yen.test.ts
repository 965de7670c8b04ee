/**
 * A catalogue of the operator's own, in a currency without minor units: every answer about money is in it, and two
 * answers about one thing agree.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { refundCharge } from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  CARD,
  INVOICED,
  startPurchaseServices,
  WAIT,
  type PurchaseServices,
} from './purchases/purchase-services.ts';

const TEST_TIMEOUT_MS = 180_000;

const plan = (id: string, tier: string, amount: number, included: object) => ({
  id,
  name: id,
  tier,
  interval: 'month',
  amount,
  price_id: `price_${id}`,
  included,
});
const addon = (sku: string, amount: number) => ({
  sku,
  addon: 'ip',
  name: 'IP',
  interval: 'month',
  amount,
});
const CATALOGUE = {
  version: 1,
  currency: 'jpy',
  plans: [
    plan('builder', 'builder', 0, {}),
    plan('ess', 'essentials', 1_999, { llm: 1_000, builder: 100, inbox_previews: 20 }),
    plan('prem', 'premium', 10_001, { llm: 10_000, builder: 1_000, inbox_previews: 200 }),
  ],
  addons: [addon('ip_m', 333), addon('ip_m2', 444)],
  packs: [{ id: 'pack_100', quantity: 100, amount: 777 }],
  credits: {
    llm: { multiple: 1_000, quantity_max: 1_000_000, amount_per_multiple: 101 },
    builder: { multiple: 100, quantity_max: 100_000, amount_per_multiple: 1 },
  },
  coupons: [
    { code: 'FREE', name: 'all', percent_off: 100 },
    { code: 'ONCE', name: 'once', percent_off: 50, max_redemptions: 1 },
  ],
};

let directory: string;
let services: PurchaseServices;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-catalogue-'));
  const file = join(directory, 'catalogue.json');
  await writeFile(file, JSON.stringify(CATALOGUE));
  services = await startPurchaseServices(testRedisUrl(), file);
  for (const account of [CARD, INVOICED])
    await services.call(account, '/payment_method/default', { payment_method_id: 'pm_card_visa' });
}, TEST_TIMEOUT_MS);
afterAll(async () => {
  await services.close();
  await rm(directory, { recursive: true });
});

type Account = typeof CARD | typeof INVOICED;
const get = async (account: Account, path: string) => {
  const answer = await fetch(`${services.api.url}${path}`, {
    headers: { authorization: `Bearer ${account.token}` },
  });
  expect(answer.status).toBe(200);
  return answer.text();
};
/** Every value under the name `currency`, however deep. */
const currenciesIn = (text: string): string[] =>
  [...text.matchAll(/"currency":\s*"(\w+)"/g)].map((match) => match[1]!);

test('the currency is the catalogue’s at every place', { timeout: TEST_TIMEOUT_MS }, async () => {
  const bought = await services.call(INVOICED, '/plans/prem', {});
  expect(bought.body).toMatchObject({
    subscription: { amount: { amount: 10_001, currency: 'jpy' } },
  });
  // It gives back more than it takes, so no invoice has a charge.
  const less = await services.call(INVOICED, '/plans/ess', {});
  expect(less.body).toMatchObject({ subscription: { amount: { amount: 0, currency: 'jpy' } } });
  const base = `/v1/accounts/${INVOICED.accountId}`;
  const seen: string[] = [];
  for (const path of [
    '',
    ...['info', 'profile', 'usage_profile', 'plans', 'runs'].map((part) => `/billing/${part}`),
  ]) {
    const found = currenciesIn(await get(INVOICED, `${base}${path}`));
    expect(found.length).toBeGreaterThan(0);
    seen.push(...found);
  }
  // Of an account that the payment provider does not know yet, too.
  seen.push(...currenciesIn(await get(CARD, `/v1/accounts/${CARD.accountId}/billing/info`)));
  expect(new Set(seen)).toEqual(new Set(['jpy']));
  expect(await get(INVOICED, `${base}/billing/profile`)).toContain(
    '"credit_balance":{"amount":8002',
  );
});

test(
  'a coupon is valid as long as the payment provider takes it',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const validOf = async () => {
      const { body } = await services.call(INVOICED, '/profile?coupons=ONCE,FREE,NONE');
      const { coupons } = body['profile'] as { coupons: { code: string; valid: boolean }[] };
      return Object.fromEntries(coupons.map(({ code, valid }) => [code, valid]));
    };
    expect(await validOf()).toEqual({ ONCE: true, FREE: true, NONE: false });
    const bought = await services.call(CARD, '/plans/prem', { coupon_code: 'ONCE' });
    expect(bought.status).toBe(200);
    expect(await validOf()).toEqual({ ONCE: false, FREE: true, NONE: false });
    services.simulator.state.delete('coupon', 'FREE');
    expect(await validOf()).toEqual({ ONCE: false, FREE: false, NONE: false });
  },
);

test(
  'two prices of one add-on are refused by name, before anything is started',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const before = (await services.call(CARD, '/runs')).body['runs'];
    const answer = await services.call(CARD, '/addons', { skus: { add: ['ip_m', 'ip_m2'] } });
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', message: expect.stringMatching(/\bip_m and ip_m2\b/) },
    });
    expect((await services.call(CARD, '/runs')).body['runs']).toEqual(before);
  },
);

test(
  'a receipt shows its amount, its refund and the rest',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const bought = await services.call(INVOICED, '/inbox_previews/invoiced_purchase', {
      pack: 'pack_100',
    });
    // The credit of the plan above pays the first packs; this one is paid with the card.
    const { state } = services.simulator;
    for (const customer of state.list('customer'))
      state.save('customer', { ...customer, balance: 0 });
    await services.untilEnded(INVOICED, bought.body.run_id);
    const paid = await services.call(INVOICED, '/credits/purchase', { llm: { quantity: 7_000 } });
    const runId = paid.body.run_id;
    const ended = await services.untilEnded(INVOICED, runId);
    expect(ended).toMatchObject({ status: 'success', charged: { amount: 707, currency: 'jpy' } });
    const page = () => get(INVOICED, `/settings/receipts/${String(ended['receipt_id'])}`);
    expect(await page()).not.toContain('Refunded');
    const charge = services.paid().find((each) => each.runId === runId)!;
    refundCharge(state, charge.id, 200);
    await vi.waitFor(async () => expect(await page()).toContain('Refunded'), WAIT);
    const shown = await page();
    expect(shown).toContain('¥707');
    expect(shown).toContain('-¥200');
    expect(shown).toContain('¥507');
    const run = await services.call(INVOICED, `/runs/${runId}`);
    expect(run.body).toMatchObject({ refunded: { amount: { amount: 200, currency: 'jpy' } } });
  },
);
