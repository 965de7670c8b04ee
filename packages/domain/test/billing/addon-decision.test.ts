import { expect, test } from 'vitest';
import {
  decideAddons,
  explainRefusal,
  unknownAddons,
  type BoughtAddon,
} from '../../src/billing/addon-decision.ts';
import type { AddonPrice, Catalogue } from '../../src/billing/catalogue.ts';

const price = (sku: string, addon: string, changes: Partial<AddonPrice> = {}): AddonPrice => ({
  sku,
  addon,
  name: addon,
  interval: 'month',
  amount: 1_000,
  isRetired: false,
  ...changes,
});
const catalogue = {
  addons: [
    price('sso', 'sso'),
    price('sso_old', 'sso', { isRetired: true }),
    price('sso_cheap', 'sso'),
    price('ip', 'ip'),
    price('ip_year', 'ip', { interval: 'year' }),
  ],
} as unknown as Catalogue;
const decide = (held: string[], skus: string[], bought: BoughtAddon[] = []) =>
  decideAddons(catalogue, new Set(held), bought, 'month', skus);

test('a price of an add-on that is not held is added', () => {
  expect(decide(['plan'], ['sso', 'ip'])).toMatchObject({ outcome: 'add', skus: ['sso', 'ip'] });
});

test('a price that is held is a no-op, even if it is retired', () => {
  expect(decide(['sso_old'], ['sso_old'])).toMatchObject({ outcome: 'nothing-to-do' });
  expect(decide(['sso'], ['sso', 'ip'])).toMatchObject({
    outcome: 'add',
    skus: ['ip'],
    items: [{ result: 'already_present' }, { result: 'added' }],
  });
});

test.each([
  ['another price of an add-on that is held', ['sso'], 'sso_cheap', 'other_price_held'],
  ['a price on another billing cycle', [], 'ip_year', 'other_billing_cycle'],
  ['a retired price', [], 'sso_old', 'retired'],
  ['a price that nobody sells', [], 'nothing', 'unknown_price'],
])('%s is refused', (_what, held, sku, reason) => {
  expect(decide(held, [sku])).toMatchObject({
    outcome: 'refused',
    items: [{ sku, result: 'refused', reason }],
  });
});

test('one refused price refuses all, and no item reads as added', () => {
  const decision = decide([], ['ip', 'sso_old']);
  expect(decision.outcome).toBe('refused');
  expect(decision.items.some((item) => item.result === 'added')).toBe(false);
  expect(explainRefusal(decision.items)).toBe('sso_old: it is not sold any more');
});

test('two prices of one add-on in one purchase are refused', () => {
  expect(decide([], ['sso', 'sso_cheap'])).toMatchObject({ outcome: 'refused' });
});

test('a purchase identifies the held add-on if the catalogue no longer has its price', () => {
  const bought = [{ sku: 'ip_gone', addon: 'ip' }];
  expect(decide(['plan', 'ip_gone'], ['ip'], bought)).toMatchObject({
    outcome: 'refused',
    items: [{ sku: 'ip', reason: 'other_price_held' }],
  });
  expect(decide(['plan', 'ip_gone'], ['sso'], bought)).toMatchObject({ outcome: 'add' });
  // Bought once and gone from the subscription since.
  expect(decide(['plan'], ['ip'], bought)).toMatchObject({ outcome: 'add' });
  expect(unknownAddons(catalogue, new Set(['plan', 'ip_gone']), bought)).toEqual([]);
});

test('the entry of a price in the catalogue counts more than the stored entry of its purchase', () => {
  const bought = [{ sku: 'sso', addon: 'ip' }];
  expect(decide(['sso'], ['ip'], bought)).toMatchObject({ outcome: 'add' });
});

test('a held price is unknown if it was bought as an add-on and belongs to no known add-on', () => {
  const bought = [
    { sku: 'gone', addon: null },
    { sku: 'sso', addon: null },
    { sku: 'dropped', addon: null },
  ];
  expect(unknownAddons(catalogue, new Set(['plan', 'gone', 'sso']), bought)).toEqual(['gone']);
});
