import { expect, test } from 'vitest';
import { DEFAULT_CATALOGUE } from '../../src/catalogue/default-catalogue.ts';
import { parseCatalogue, readCatalogue } from '../../src/catalogue/read-catalogue.ts';

test('the built-in catalogue is one', () => {
  expect(readCatalogue(undefined)).toMatchObject({ version: 1, currency: 'usd' });
});

const [pack] = DEFAULT_CATALOGUE.packs;
const [plan] = DEFAULT_CATALOGUE.plans;
test.each([
  ['a fraction of a cent', { packs: [{ ...pack, amount: 9.5 }] }, /packs\.0\.amount/],
  ['a pack twice', { packs: [pack, pack] }, /pack_100 is there twice/],
  [
    'one price for two things',
    { addons: [{ sku: plan!.price_id, addon: 'a', name: 'A', interval: 'month', amount: 1 }] },
    /price_builder_month is there twice/,
  ],
  [
    'a coupon that takes off nothing',
    { coupons: [{ code: 'A', name: 'A' }] },
    /percentage or an amount/,
  ],
  ['an unknown member', { discount: 1 }, /discount/],
  ['no Builder plan', { plans: DEFAULT_CATALOGUE.plans.slice(1) }, /needs a Builder plan/],
  [
    'a price beyond a safe integer',
    {
      credits: {
        ...DEFAULT_CATALOGUE.credits,
        llm: { multiple: 1, quantity_max: 1_000_000_000, amount_per_multiple: 1_000_000_000 },
      },
    },
    /safe integer/,
  ],
])('%s keeps a process from starting, and is named', (_what, change, message) => {
  expect(() => parseCatalogue({ ...DEFAULT_CATALOGUE, ...change })).toThrow(message);
});

test('a file that is not there is named', () => {
  expect(() => readCatalogue('/nowhere/catalogue.json')).toThrow(/\/nowhere\/catalogue\.json/);
});
