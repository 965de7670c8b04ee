import fc from 'fast-check';
import { expect, test } from 'vitest';
import { priceUnits, readMeters } from '../../src/billing/meters.ts';

test('a price below a minor unit is rounded once, half up, however many digits it has', () => {
  expect(priceUnits(5, '0.9')).toBe(5);
  expect(priceUnits(1, '0.5')).toBe(1);
  expect(priceUnits(1, '0.49')).toBe(0);
  expect(priceUnits(3, '2')).toBe(6);
  // As doubles: 1.005 × 100 is 100.49999999999999.
  expect(priceUnits(100, '1.005')).toBe(101);
  const cents = fc.integer({ min: 0, max: 99 });
  fc.assert(
    fc.property(fc.nat(1_000_000), fc.nat(1_000), cents, (count, whole, part) => {
      const price = `${whole}.${String(part).padStart(2, '0')}`;
      const hundredths = count * (whole * 100 + part);
      expect(priceUnits(count, price)).toBe(Math.floor((hundredths + 50) / 100));
    }),
  );
});

test('only profiles are paid for afterwards, and only those beyond the plan', () => {
  const catalogue = { currency: 'usd', profileAmountDecimal: '1' };
  const plan = { included: { llm: 10, builder: 0, inbox_previews: 0 }, profiles: 100 };
  const used = { profiles: 103, llm: 99, builder: 99, inbox_previews: 99 };
  const overage = (of: typeof plan | undefined) =>
    readMeters(catalogue, of, used).map((line) => [line.meter, line.overage, line.amount.amount]);
  expect(overage(plan)).toEqual([
    ['profiles', 3, 3],
    ['inbox_previews', 0, 0],
    ['llm', 0, 0],
    ['builder', 0, 0],
  ]);
  expect(overage(undefined)[0]).toEqual(['profiles', 103, 103]);
});
