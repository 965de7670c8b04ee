import { expect, test } from 'vitest';
import {
  findCoupon,
  priceCredits,
  pricePack,
  type Catalogue,
} from '../../src/billing/catalogue.ts';

const offer = { multiple: 100, quantityMax: 1_000, amountPerMultiple: 250, expiresAfterDays: null };
const catalogue: Catalogue = {
  version: 3,
  currency: 'eur',
  profileAmountDecimal: '0',
  plans: [],
  addons: [],
  packs: [{ id: 'pack_100', quantity: 100, amount: 2_000, expiresAfterDays: 30 }],
  credits: { llm: offer, builder: offer },
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

test('credits are sold in whole multiples up to the greatest quantity, at the price of the catalogue', () => {
  expect(priceCredits(catalogue, 'llm', 300)).toMatchObject({
    kind: 'llm',
    quantity: 300,
    price: { amount: 750, currency: 'eur' },
    catalogueVersion: 3,
  });
  for (const quantity of [0, -100, 50, 1_100, 0.5, Number.NaN])
    expect(priceCredits(catalogue, 'llm', quantity)).toBeUndefined();
});

test('the name of a pack decides its content and price, and any other name is not a pack', () => {
  expect(pricePack(catalogue, 'pack_100')).toMatchObject({
    kind: 'inbox_previews',
    quantity: 100,
    packId: 'pack_100',
    price: { amount: 2_000, currency: 'eur' },
    expiresAfterDays: 30,
  });
  expect(pricePack(catalogue, 'pack_200')).toBeUndefined();
});

test('a coupon is in force until its end', () => {
  expect(findCoupon(catalogue, 'A', 499)).toMatchObject({ percentOff: 10 });
  expect(findCoupon(catalogue, 'A', 500)).toBeUndefined();
  expect(findCoupon(catalogue, 'a', 0)).toBeUndefined();
});
