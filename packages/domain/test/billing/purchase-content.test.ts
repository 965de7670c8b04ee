import { expect, test } from 'vitest';
import { pricePack, priceCredits, type Catalogue } from '../../src/billing/catalogue.ts';
import { refusalOfContent, type PurchaseContent } from '../../src/billing/purchase-content.ts';

const offer = { multiple: 100, quantityMax: 1_000, amountPerMultiple: 250, expiresAfterDays: null };
const plan = {
  id: 'essentials',
  name: 'Essentials',
  productType: 'platform',
  tier: 'essentials',
  interval: 'month',
  amount: 10_000,
  priceId: 'price_1',
  included: { llm: 1, builder: 2, inbox_previews: 3 },
  profiles: 5,
  features: ['a'],
  isRetired: false,
} as const;
const catalogue: Catalogue = {
  version: 3,
  currency: 'eur',
  profileAmountDecimal: '0',
  plans: [plan, { ...plan, id: 'retired', priceId: 'price_2', isRetired: true }],
  addons: [
    { sku: 'sku_1', addon: 'ip', name: 'IP', interval: 'month', amount: 1, isRetired: false },
    { sku: 'sku_3', addon: 'logs', name: 'Logs', interval: 'month', amount: 5, isRetired: false },
  ],
  packs: [{ id: 'pack_100', quantity: 100, amount: 2_000, expiresAfterDays: 30 }],
  credits: { llm: offer, builder: { ...offer, amountPerMultiple: 500 } },
  coupons: [
    {
      code: 'A',
      name: 'A',
      percentOff: 10,
      amountOff: null,
      expiresAtMs: 500,
      duration: 'once',
      durationMonths: null,
      redemptionCountMax: null,
    },
  ],
};
const NOW_MS = 499;
const judge = (content: object, nowMs = NOW_MS) =>
  refusalOfContent(
    { contact: { name: 'a', email: 'a@example.com' }, ...content } as PurchaseContent,
    catalogue,
    nowMs,
  );
const buy = (purchase: object) => judge({ type: 'purchase', purchase });
const checkout = (changes: object = {}) =>
  judge({
    type: 'checkout',
    plan,
    quantity: 1,
    couponCode: null,
    paymentMethodId: null,
    ...changes,
  });

test('credits and packs are sold as the catalogue has them, at each version with the same price', () => {
  const pack = pricePack(catalogue, 'pack_100')!;
  const credits = priceCredits(catalogue, 'llm', 300)!;
  for (const sold of [pack, credits]) {
    expect(buy(sold)).toBeUndefined();
    expect(buy({ ...sold, catalogueVersion: 2 })).toBeUndefined();
    for (const change of [
      { price: { ...sold.price, amount: sold.price.amount - 1 } },
      { price: { ...sold.price, currency: 'usd' } },
      { quantity: sold.quantity + 100 },
      { expiresAfterDays: 365 },
      { kind: 'builder' },
      { kind: 'constructor' },
      { kind: 'gift' },
    ])
      expect(buy({ ...sold, ...change }), JSON.stringify(change)).toBe('amount_changed');
  }
  // In the ledger a text would be joined to the other amounts.
  expect(buy({ ...credits, quantity: '300' })).toBe('amount_changed');
  expect(buy({ ...pack, packId: 'pack_200' })).toBe('amount_changed');
  expect(buy({ ...pack, packId: null })).toBe('amount_changed');
});

test('a plan is sold at its price with its allowances, and its texts may differ', () => {
  expect(checkout()).toBeUndefined();
  expect(checkout({ plan: { ...plan, name: 'Start', features: [] }, quantity: 7 })).toBeUndefined();
  for (const change of [
    { id: 'other' },
    { tier: 'premium' },
    { interval: 'year' },
    { amount: 9_999 },
    { priceId: 'price_2' },
    { profiles: 6 },
    { included: { ...plan.included, llm: 2 } },
    { included: { ...plan.included, builder: 0 } },
    { included: { ...plan.included, inbox_previews: 4 } },
  ])
    expect(checkout({ plan: { ...plan, ...change } }), JSON.stringify(change)).toBe(
      'amount_changed',
    );
  expect(checkout({ plan: catalogue.plans[1] })).toBe('amount_changed');
});

test('a plan is sold in whole quantities from 1', () => {
  for (const quantity of [0, -1, 1.5, '1'])
    expect(checkout({ quantity }), String(quantity)).toBe('amount_changed');
});

test('a coupon counts while it is in force', () => {
  expect(checkout({ couponCode: 'A' })).toBeUndefined();
  expect(checkout({ couponCode: 'B' })).toBe('coupon_expired');
  expect(
    judge({ type: 'checkout', plan, quantity: 1, couponCode: 'A', paymentMethodId: null }, 500),
  ).toBe('coupon_expired');
});

test('a price of an add-on names the add-on of the catalogue', () => {
  const addons = (prices?: readonly object[]) => judge({ type: 'addons', skus: ['sku_1'], prices });
  expect(addons()).toBeUndefined();
  expect(addons([{ sku: 'sku_1', addon: 'ip' }])).toBeUndefined();
  expect(addons([{ sku: 'sku_2', addon: 'other' }])).toBeUndefined();
  expect(addons([{ sku: 'sku_1', addon: 'other' }])).toBe('amount_changed');
  // Its add-on is sold, at another price.
  expect(addons([{ sku: 'sku_1', addon: 'logs' }])).toBe('amount_changed');
});

test('add-ons are not sold if one price of several names another add-on', () => {
  const own = { sku: 'sku_1', addon: 'ip' };
  const other = { sku: 'sku_3', addon: 'ip' };
  for (const prices of [
    [own, other],
    [other, own],
  ])
    expect(judge({ type: 'addons', skus: ['sku_1', 'sku_3'], prices })).toBe('amount_changed');
});

test('a content of an unknown type is not sold', () => {
  expect(judge({ type: 'gift' })).toBe('amount_changed');
  expect(judge({})).toBe('amount_changed');
});
