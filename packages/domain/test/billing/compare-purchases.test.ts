import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  comparePurchases,
  compareSubscriptions,
  type BilledInvoice,
  type BookedPurchase,
} from '../../src/billing/compare-purchases.ts';

const usd = (amount: number) => ({ amount, currency: 'usd' });

const purchase = (changes: Partial<BookedPurchase> = {}): BookedPurchase => ({
  accountId: 1,
  runId: 'run_1',
  status: 'success',
  isSetAside: false,
  invoiceId: 'in_1',
  charged: usd(2_000),
  isAwaited: false,
  returned: 0,
  quantity: 100,
  granted: 100,
  ...changes,
});
const invoice = (changes: Partial<BilledInvoice> = {}): BilledInvoice => ({
  invoiceId: 'in_1',
  status: 'paid',
  total: usd(2_000),
  runId: 'run_1',
  subscriptionId: null,
  taken: 2_000,
  returned: 0,
  ...changes,
});
const awaited = { charged: null, isAwaited: true, quantity: null, granted: 0 } as const;
const failed = { status: 'failed', charged: null, granted: 0 } as const;

describe('the ledger of purchases', () => {
  test('agrees with the invoices if every payment belongs to a granted, pending or refunded purchase', () => {
    const ledger = [
      purchase(),
      purchase({ runId: 'run_2', invoiceId: 'in_2', ...failed }),
      // No price to pay: held add-ons.
      purchase({ runId: 'run_3', invoiceId: null, charged: null, quantity: null, granted: 0 }),
      // Refunded in part, and refunded because it should not have been paid.
      purchase({ runId: 'run_7', invoiceId: 'in_7', returned: 500 }),
      purchase({ runId: 'run_8', invoiceId: 'in_8', ...failed, status: 'declined' }),
      // Put right too: the rest had come from the customer's balance.
      purchase({ runId: 'run_10', invoiceId: 'in_10', ...failed, status: 'declined' }),
      // A bank has still to pay.
      purchase({ runId: 'run_9', invoiceId: 'in_9', ...awaited }),
      // Under way: paid, and not yet known here.
      purchase({ runId: 'run_4', invoiceId: 'in_4', ...failed, status: 'pending' }),
    ];
    const billed = [
      invoice(),
      invoice({ invoiceId: 'in_2', runId: 'run_2', status: 'void' }),
      invoice({ invoiceId: 'in_4', runId: 'run_4' }),
      invoice({ invoiceId: 'in_7', runId: 'run_7', returned: 500 }),
      invoice({ invoiceId: 'in_8', runId: 'run_8', returned: 2_000 }),
      invoice({ invoiceId: 'in_10', runId: 'run_10', taken: 1_500, returned: 1_500 }),
      invoice({ invoiceId: 'in_9', runId: 'run_9', status: 'open', subscriptionId: 'sub_1' }),
      // A renewal, and an invoice without a purchase of ours.
      invoice({ invoiceId: 'in_5', runId: null, subscriptionId: 'sub_1', status: 'open' }),
      invoice({ invoiceId: 'in_6', runId: null, returned: 2_000 }),
    ];
    expect(comparePurchases(ledger, billed)).toEqual([]);
  });

  test.each<[string, Partial<BookedPurchase>, Partial<BilledInvoice>, RegExp]>([
    ['too much paid', {}, { total: usd(4_000) }, /2000 usd here, 4000 usd/],
    ['another currency', {}, { total: { amount: 2_000, currency: 'eur' } }, /2000 eur/],
    ['not paid', {}, { status: 'void' }, /in_1 is void/],
    ['no such invoice', { invoiceId: 'in_9' }, {}, /in_9 is not known to the payment provider/],
    ['not given', { granted: 0 }, {}, /0 credits were given, not 100/],
    ['given twice', { granted: 200 }, {}, /200 credits were given, not 100/],
    ['given for nothing', { ...failed, granted: 100 }, { status: 'void' }, /100 credits/],
    ['paid, though declined', { ...failed, status: 'declined' }, {}, /which is declined/],
    ['collectable', failed, { status: 'open' }, /can still be collected/],
    ['collectable later', failed, { status: 'uncollectible' }, /can still be collected/],
    ['nobody’s purchase', {}, { runId: 'run_9' }, /run_9 is not in our ledger/],
    [
      'refunded there',
      {},
      { returned: 2_000 },
      /: 0 of its price was refunded here, 2000 at the payment provider/,
    ],
    [
      'refunded further',
      { returned: 500 },
      { returned: 700 },
      /500 of its price was refunded here, 700/,
    ],
    [
      'a refund failed',
      { returned: 2_000 },
      {},
      /2000 of its price was refunded here, 0 at the payment provider/,
    ],
    ['paid by the bank', awaited, {}, /still to be paid here, and its invoice in_1 is paid/],
    ['no more to be paid', awaited, { status: 'void' }, /its invoice in_1 is void/],
    ['partly put right', { ...failed, status: 'declined' }, { returned: 900 }, /which is declined/],
    [
      'paid from the balance alone',
      { ...failed, status: 'declined' },
      { taken: 0 },
      /which is declined/,
    ],
    ['set aside', { isSetAside: true }, {}, /waits for a person/],
  ])('differ: %s', (_what, ours, theirs, said) => {
    expect(comparePurchases([purchase(ours)], [invoice(theirs)]).join('\n')).toMatch(said);
  });

  test('differs from the invoices if a purchase is paid a second time', () => {
    expect(comparePurchases([purchase()], [invoice(), invoice({ invoiceId: 'in_2' })])).toEqual([
      'invoice in_2: it is paid beside account 1, purchase run_1, which is success',
    ]);
  });

  test('I2: any entry taken out of one of two agreeing ledgers is reported as missing', () => {
    const count = fc.integer({ min: 1, max: 20 });
    fc.assert(
      fc.property(count, fc.nat(), fc.boolean(), (size, at, isOurs) => {
        const numbers = Array.from({ length: size }, (_, index) => index);
        const ledger = numbers.map((n) => purchase({ runId: `run_${n}`, invoiceId: `in_${n}` }));
        const billed = numbers.map((n) => invoice({ runId: `run_${n}`, invoiceId: `in_${n}` }));
        expect(comparePurchases(ledger, billed)).toEqual([]);
        (isOurs ? ledger : billed).splice(at % size, 1);
        expect(comparePurchases(ledger, billed)).toHaveLength(1);
      }),
    );
  });
});

test('a customer has one subscription, and it has every price that was bought', () => {
  const subscriber = { accountId: 1, customerId: 'cus_1', priceIds: ['plan', 'addon'] };
  const held = (subscriptionId: string, ...priceIds: string[]) => ({
    subscriptionId,
    customerId: 'cus_1',
    priceIds,
  });
  expect(compareSubscriptions([subscriber], [held('sub_1', 'addon', 'plan', 'more')])).toEqual([]);
  expect(compareSubscriptions([subscriber], [held('sub_1', 'plan')])).toEqual([
    'account 1: has bought addon, its subscription has not',
  ]);
  expect(compareSubscriptions([subscriber], [])).toHaveLength(2);
  expect(
    compareSubscriptions([subscriber], [held('sub_1', 'plan', 'addon'), held('sub_2', 'plan')]),
  ).toEqual(['customer cus_1: has 2 subscriptions, sub_1, sub_2']);
});
