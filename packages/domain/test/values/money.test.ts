import fc from 'fast-check';
import { expect, test } from 'vitest';
import { discountedAmount, isSameMoney, money, proratedAmount } from '../../src/values/money.ts';

test('I6: the parts of a whole differ from it by rounding only, and the whole is exact', () => {
  fc.assert(
    fc.property(
      fc.nat(2 ** 40),
      fc.integer({ min: 1, max: 31_622_400 }),
      fc.nat(31_622_400),
      (amount, whole, given) => {
        const share = given % (whole + 1);
        const parts =
          proratedAmount(amount, share, whole) + proratedAmount(amount, whole - share, whole);
        expect(Math.abs(parts - amount)).toBeLessThanOrEqual(1);
        expect(proratedAmount(amount, whole, whole)).toBe(amount);
        expect(proratedAmount(amount, 0, whole)).toBe(0);
      },
    ),
  );
});

test('half a minor unit is rounded up', () => {
  expect(proratedAmount(1, 1, 2)).toBe(1);
  expect(proratedAmount(1, 49, 100)).toBe(0);
});

// The share comes from the clocks of two machines: one a second ahead must not make anybody pay more than the whole.
test('a share below zero costs zero, and a share above the whole costs the whole', () => {
  expect(proratedAmount(1_000, -1, 60)).toBe(0);
  expect(proratedAmount(1_000, 61, 60)).toBe(1_000);
});

test('an amount is whole, not negative, and one that a number holds', () => {
  for (const amount of [-1, 0.5, Number.NaN, 2 ** 53]) {
    expect(() => money(amount, 'usd')).toThrow(/no amount/);
  }
  for (const amount of [0, 1, 2 ** 53 - 1])
    expect(money(amount, 'usd')).toEqual({ amount, currency: 'usd' });
});

test('money is the same in amount and currency, and no charge is the same as 0 of any currency', () => {
  const usd = (amount: number) => ({ amount, currency: 'usd' });
  expect(isSameMoney(usd(5), usd(5))).toBe(true);
  expect(isSameMoney(usd(5), usd(6))).toBe(false);
  expect(isSameMoney(usd(5), { amount: 5, currency: 'eur' })).toBe(false);
  expect(isSameMoney(usd(0), { amount: 0, currency: 'eur' })).toBe(false);
  expect(isSameMoney(usd(0), null)).toBe(true);
  expect(isSameMoney(usd(1), null)).toBe(false);
});

test('the part of a whole of 0 or less is 0', () => {
  for (const whole of [0, -1]) expect(proratedAmount(1_000, 1, whole)).toBe(0);
  expect(proratedAmount(1_000, 1, 1)).toBe(1_000);
});

test('a coupon never makes an amount negative', () => {
  expect(discountedAmount(1_000, { percentOff: 12.5, amountOff: null })).toBe(875);
  expect(discountedAmount(1_000, { percentOff: null, amountOff: 5_000 })).toBe(0);
  expect(discountedAmount(1_000, { percentOff: null, amountOff: 999 })).toBe(1);
  expect(discountedAmount(1_000, { percentOff: 100, amountOff: null })).toBe(0);
  expect(discountedAmount(1_000, { percentOff: null, amountOff: null })).toBe(1_000);
  expect(discountedAmount(1_000, null)).toBe(1_000);
});
