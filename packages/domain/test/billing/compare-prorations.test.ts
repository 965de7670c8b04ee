/** Money given back was paid before: the return of a change of subscription, against the charges. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  compareProrations,
  listSubscriptionsWithExcess,
  type ProratedInvoice,
} from '../../src/billing/unused-time.ts';

type Line = ProratedInvoice['subscriptionLines'][number];

const line = (amount: number, changes: Partial<Line> = {}): Line => ({
  subscriptionId: 'sub_1',
  priceId: 'price_premium',
  amount,
  periodEndMs: 1_000,
  ...changes,
});
let count = 0;
const invoice = (
  subscriptionLines: readonly Line[],
  status = 'paid',
  changes: Partial<ProratedInvoice> = {},
): ProratedInvoice => ({
  invoiceId: `in_${++count}`,
  status,
  subscriptionLines,
  withheld: 0,
  returned: 0,
  ...changes,
});

describe('unused time', () => {
  test('gives back at most the amount that was paid for it', () => {
    expect(compareProrations([invoice([line(80)]), invoice([line(-80)])])).toEqual([]);
    const given = invoice([line(-100)]);
    expect(compareProrations([invoice([line(80)]), given])).toEqual([
      `invoice ${given.invoiceId}: gives back 100 for unused time of price_premium, for which 80 was paid`,
    ]);
  });

  test.each([
    ['a line that a coupon left nothing of', [invoice([line(0)]), invoice([line(-1)])]],
    ['an invoice that is not paid', [invoice([line(80)], 'open'), invoice([line(-80)])]],
    ['an invoice that was given up', [invoice([line(80)], 'uncollectible'), invoice([line(-80)])]],
    ['an invoice that is void', [invoice([line(80)], 'void'), invoice([line(-80)])]],
    ['nothing at all', [invoice([line(-80)])]],
    ['another price', [invoice([line(80, { priceId: 'price_other' })]), invoice([line(-80)])]],
    [
      'another subscription',
      [invoice([line(80, { subscriptionId: 'sub_2' })]), invoice([line(-80)])],
    ],
    ['another period', [invoice([line(80, { periodEndMs: 2_000 })]), invoice([line(-80)])]],
    [
      'what was given back before',
      [invoice([line(80)]), invoice([line(-50)]), invoice([line(-50)])],
    ],
    [
      'an earlier price of the same time, which was given back for this one',
      [invoice([line(80)]), invoice([line(-80), line(0)]), invoice([line(-1)])],
    ],
    [
      'the rest of an earlier price, after a coupon left nothing of the latest',
      [invoice([line(80)]), invoice([line(-50), line(0)]), invoice([line(-30)])],
    ],
  ])('is not given back for %s', (_, invoices) => {
    expect(compareProrations(invoices)).toHaveLength(1);
  });

  test('of a changed quantity is given back and charged on one invoice, in any order of its lines', () => {
    const later = [line(160), line(-80)];
    for (const lines of [later, later.toReversed()])
      expect(
        compareProrations([invoice([line(80)]), invoice(lines), invoice([line(-160)])]),
      ).toEqual([]);
  });

  test('is not paid by a charge on the invoice that gives it back, in any order of its lines', () => {
    const lines = [line(160), line(-81)];
    for (const ordered of [lines, lines.toReversed()])
      expect(compareProrations([invoice([line(80)]), invoice(ordered)])).toHaveLength(1);
  });

  test('is not given back for a refunded amount, before or after the credit', () => {
    const refunded = (returned: number) => invoice([line(80)], 'paid', { returned });
    expect(compareProrations([refunded(80), invoice([line(-1)])])).toHaveLength(1);
    expect(compareProrations([refunded(30), invoice([line(-50)])])).toEqual([]);
    expect(compareProrations([refunded(31), invoice([line(-50)])])).toHaveLength(1);
  });

  test('may be given back if it is charged again, or was taken back', () => {
    const refunded = invoice([line(80)], 'paid', { returned: 80 });
    const charged = (withheld: number) => invoice([line(-40)], 'paid', { withheld });
    expect(compareProrations([refunded, charged(40)])).toEqual([]);
    expect(compareProrations([refunded, charged(39)])).toHaveLength(1);
    const invoices = [refunded, charged(0)];
    expect(compareProrations(invoices, new Map([['sub_1', 40]]))).toEqual([]);
    expect(compareProrations(invoices, new Map([['sub_1', 39]]))).toHaveLength(1);
    expect(compareProrations(invoices, new Map([['sub_2', 40]]))).toHaveLength(1);
  });

  test.each(['draft', 'void', 'deleted'])(
    'is neither given nor charged by an invoice that is %s',
    (status) => {
      expect(compareProrations([invoice([line(-80)], status)])).toEqual([]);
      const [paid, left] = [invoice([line(80)]), invoice([line(-80)])];
      expect(compareProrations([paid, invoice([line(40)], status), left])).toEqual([]);
      expect(compareProrations([paid, invoice([line(-80)], status), left])).toEqual([]);
    },
  );

  test('that gives back too much names its subscriptions, also if that was taken back', () => {
    const of = (subscriptionId: string, amounts: readonly number[]) =>
      amounts.map((amount) => invoice([line(amount, { subscriptionId })]));
    const invoices = [
      ...of('sub_even', [80, -80]),
      ...of('sub_more', [80, -81]),
      ...of('sub_paid', [80]),
      ...of('sub_unpaid', [-80]),
      invoice([]),
    ];
    expect(listSubscriptionsWithExcess(invoices)).toEqual(['sub_more', 'sub_unpaid']);
  });

  test('never adds up to more than was paid, in any order of changes', () => {
    const changes = fc.array(fc.integer({ min: -100, max: 100 }), { maxLength: 20 });
    fc.assert(
      fc.property(changes, (amounts) => {
        const invoices = amounts.map((amount) => invoice([line(amount)]));
        if (compareProrations(invoices).length > 0) return;
        const paid = amounts.filter((amount) => amount > 0).reduce((sum, each) => sum + each, 0);
        const given = amounts.filter((amount) => amount < 0).reduce((sum, each) => sum - each, 0);
        expect(given).toBeLessThanOrEqual(paid);
      }),
    );
  });
});
