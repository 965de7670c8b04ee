/** Refunded credit that a change of subscription charges again. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  excessCredit,
  withheldCredit,
  type ProratedInvoice,
} from '../../src/billing/unused-time.ts';

type Line = ProratedInvoice['subscriptionLines'][number];

const line = (amount: number, priceId = 'price_premium'): Line => ({
  subscriptionId: 'sub_1',
  priceId,
  amount,
  periodEndMs: 1_000,
});
const invoice = (
  subscriptionLines: readonly Line[],
  changes: Partial<ProratedInvoice> = {},
): ProratedInvoice => ({
  invoiceId: 'in_1',
  status: 'paid',
  subscriptionLines,
  withheld: 0,
  returned: 0,
  ...changes,
});

test.each([
  ['all of the credit, of a price that was refunded whole', 100, 50, 50],
  ['its share of the credit, of a price that was refunded in part', 30, 50, 15],
  ['nothing, of a price that was not refunded', 0, 50, 0],
])('a change charges again %s', (_, returned, given, withheld) => {
  const bought = invoice([line(100)], { returned });
  expect(withheldCredit([bought], 0, [line(-given), line(20, 'price_other')])).toBe(withheld);
});

test('a refund is shared by all that its invoice charged', () => {
  const bought = invoice([line(60), line(40, 'price_other')], { returned: 50 });
  expect(withheldCredit([bought], 0, [line(-60)])).toBe(30);
});

test('a change charges again the part of its credit that an earlier change has given back', () => {
  const bought = invoice([line(100)]);
  const earlier = invoice([line(-60), line(10, 'price_other')]);
  expect(withheldCredit([bought, earlier], 0, [line(-40)])).toBe(0);
  expect(withheldCredit([bought, earlier], 0, [line(-100)])).toBe(60);
});

test('after a refund of the difference, the payment of the earlier plan stays as credit', () => {
  const first = invoice([line(50, 'price_essentials')]);
  const upgrade = invoice([line(-50, 'price_essentials'), line(100)], { returned: 50 });
  expect(withheldCredit([first, upgrade], 0, [line(-100)])).toBe(50);
});

test('the excess is the part of a credit beyond the payment, to the last cent', () => {
  const bought = invoice([line(80)]);
  const given = [{ invoiceId: 'in_1', priceId: 'price_premium', given: 100, paid: 80 }];
  expect(excessCredit([bought, invoice([line(-100)])])).toEqual({ amount: 20, credits: given });
  expect(excessCredit([bought, invoice([line(-80)]), invoice([line(-1)])]).amount).toBe(1);
  expect(excessCredit([bought, invoice([line(-79)]), invoice([line(-1)])]).amount).toBe(0);
  expect(excessCredit([invoice([line(-1)])]).amount).toBe(1);
  const unpaid = invoice([line(80)], { status: 'open' });
  expect(excessCredit([unpaid, invoice([line(-1)])]).amount).toBe(1);
});

test('each credit that was too high is named, the oldest first', () => {
  const given = (invoiceId: string) => invoice([line(-10)], { invoiceId });
  const { credits } = excessCredit([given('in_2'), given('in_3'), given('in_4')]);
  expect(credits.map(({ invoiceId }) => invoiceId)).toEqual(['in_2', 'in_3', 'in_4']);
});

test('a refund of time that was already given back is withheld by the next change, unless it was taken back', () => {
  const first = invoice([line(50, 'price_essentials')], { returned: 50 });
  const upgrade = invoice([line(-50, 'price_essentials'), line(100)]);
  expect(excessCredit([first, upgrade]).amount).toBe(50);
  expect(withheldCredit([first, upgrade], 0, [line(-100)])).toBe(50);
  expect(withheldCredit([first, upgrade], 50, [line(-100)])).toBe(0);
  const left = invoice([line(-100)], { withheld: 50 });
  expect(excessCredit([first, upgrade, left]).amount).toBe(0);
});

test('no credit is withheld for an unknown invoice, and never more than the credit itself', () => {
  expect(withheldCredit([], 0, [line(-100)])).toBe(0);
  const first = invoice([line(50, 'price_essentials')], { returned: 50 });
  const upgrade = invoice([line(-50, 'price_essentials'), line(100)]);
  expect(withheldCredit([first, upgrade], 0, [line(-10)])).toBe(10);
});

test('a customer who leaves has at most the credit that they paid, except for refunds that came too late', () => {
  const step = fc.record({
    price: fc.constantFrom(0, 50, 100, 333),
    refund: fc.integer({ min: 0, max: 400 }),
    /** Of the first invoice, after its time was given back. */
    isLate: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
      const invoices: ProratedInvoice[] = [];
      const charged: number[] = [];
      let balance = 0;
      let held: Line | undefined;
      const changeTo = (price: number) => {
        const credits = held ? [line(-held.amount, held.priceId)] : [];
        const withheld = withheldCredit(invoices, 0, credits);
        held = line(price, `price_${invoices.length}`);
        invoices.push(invoice([...credits, held], { withheld }));
        const total = price + withheld + credits.reduce((sum, { amount }) => sum + amount, 0);
        charged.push(Math.max(0, total - balance));
        balance += charged.at(-1)! - total;
      };
      const refundOf = (index: number, wanted: number) => {
        const before = invoices[index]!;
        const returned = before.returned + Math.min(wanted, charged[index]! - before.returned);
        invoices[index] = { ...before, returned };
      };
      for (const { price, refund, isLate } of steps) {
        changeTo(price);
        refundOf(isLate ? 0 : invoices.length - 1, refund);
      }
      changeTo(0);
      const paid = charged.reduce((sum, each) => sum + each, 0);
      const returned = invoices.reduce((sum, each) => sum + each.returned, 0);
      // Each share is rounded once.
      const rounding = invoices.length;
      expect(balance).toBeLessThanOrEqual(
        paid - returned + excessCredit(invoices).amount + rounding,
      );
    }),
    { numRuns: 500 },
  );
});
