/**
 * The credit that a subscription gives back for unused time.
 *
 * It is at most the amount that was paid for that time and not refunded (`account-billing.md` §4, add-on purchase rule
 * 1: the rule charges a share of a period, and a change gives back the other share). A coupon of 100 % leaves no
 * credit.
 *
 * The payment provider deducts coupons by itself, but it does not deduct refunds. So a change charges the refunded part
 * of its credit again, on the same invoice (`withheldCredit`). A refund after the credit leaves an excess, which is
 * taken from the customer's balance or withheld by the next change (`excessCredit`).
 *
 * Each change gives back a line whole and charges a new one, so only the latest charge for a price and period counts.
 * Credit that was already given back counts against it. Pure.
 */
import { proratedAmount } from '../values/money.ts';

/** All of one subscription, in minor units of one currency. */
export interface ProratedInvoice {
  readonly invoiceId: string;
  readonly status: string;
  readonly subscriptionLines: readonly SubscriptionLine[];
  /** The part of its credits that it charges again because it was refunded. */
  readonly withheld: number;
  /** The part of its payments that went back to the customer: refunds, and disputes that were lost. */
  readonly returned: number;
}

/** Time of a subscription that is charged, or given back. */
export interface SubscriptionLine {
  readonly subscriptionId: string;
  readonly priceId: string;
  /** After discounts; negative for a credit. */
  readonly amount: number;
  readonly periodEndMs: number;
}

/** A credit of more than was paid for the time. */
export interface ExcessCredit {
  readonly invoiceId: string;
  readonly priceId: string;
  readonly given: number;
  readonly paid: number;
}

/** The last charge for a price and period. */
interface PaidTime {
  readonly charged: number;
  /** The refunded part of the charge. */
  readonly refunded: number;
  /** The part of the rest that was not given back. */
  left: number;
}

/** Statuses of invoices without effect: no money moves in either direction. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['draft', 'void', 'deleted']);

const keyOf = ({ subscriptionId, priceId, periodEndMs }: SubscriptionLine): string =>
  `${subscriptionId} ${priceId} ${periodEndMs}`;

/** @param invoices - oldest first. @returns the credits that were too high, and the amount that was not taken back. */
export function excessCredit(invoices: readonly ProratedInvoice[]): {
  readonly amount: number;
  readonly credits: readonly ExcessCredit[];
} {
  const { amount, credits } = readInvoices(invoices);
  return { amount, credits };
}

/**
 * The part of a change's credits that it has to charge again.
 *
 * @param invoices - all that the subscription has, oldest first.
 * @param takenBack - the part of earlier excess that was taken from the customer's balance.
 * @param lines - the lines that the change would make.
 */
export function withheldCredit(
  invoices: readonly ProratedInvoice[],
  takenBack: number,
  lines: readonly SubscriptionLine[],
): number {
  const { amount, paid } = readInvoices(invoices);
  let given = 0;
  let refunded = 0;
  for (const line of lines) {
    if (line.amount >= 0) continue;
    given -= line.amount;
    const time = paid.get(keyOf(line));
    // The time's invoice is not among them, so its refunds are unknown.
    if (!time) continue;
    const share = proratedAmount(-line.amount, time.refunded, time.charged);
    refunded += Math.max(share, -line.amount - time.left);
  }
  return Math.min(given, refunded + Math.max(0, amount - takenBack));
}

/**
 * Looks for credits without a payment, for `scripts/verify.ts`.
 *
 * @param invoices - of any subscriptions, oldest first.
 * @param takenBackOf - by subscription: the amount of such credit that was taken from its customer's balance, in minor
 *   units. A subscription that is absent has 0.
 * @returns each difference in a sentence.
 */
export function compareProrations(
  invoices: readonly ProratedInvoice[],
  takenBackOf: ReadonlyMap<string, number> = new Map(),
): string[] {
  return [...bySubscription(invoices)].flatMap(([subscriptionId, several]) => {
    const { amount, credits } = excessCredit(several);
    if (amount <= (takenBackOf.get(subscriptionId) ?? 0)) return [];
    return credits.map(
      ({ invoiceId, priceId, given, paid }) =>
        `invoice ${invoiceId}: gives back ${given} for unused time of ${priceId}, for which ${paid} was paid`,
    );
  });
}

/** @returns the subscriptions that gave back too much, whether or not it was taken back. */
export const listSubscriptionsWithExcess = (invoices: readonly ProratedInvoice[]): string[] =>
  [...bySubscription(invoices)].flatMap(([subscriptionId, several]) =>
    excessCredit(several).amount > 0 ? [subscriptionId] : [],
  );

/** An invoice has the lines of one subscription. The ones without lines are together. */
const bySubscription = (invoices: readonly ProratedInvoice[]): Map<string, ProratedInvoice[]> =>
  Map.groupBy(invoices, ({ subscriptionLines: [line] }) => line?.subscriptionId ?? '');

function readInvoices(invoices: readonly ProratedInvoice[]) {
  const paid = new Map<string, PaidTime>();
  const credits: ExcessCredit[] = [];
  let amount = 0;
  for (const { invoiceId, status, subscriptionLines: lines, withheld, returned } of invoices) {
    if (WITHOUT_EFFECT.has(status)) continue;
    // A change of quantity gives back and charges the same price on one invoice.
    for (const line of lines) {
      if (line.amount >= 0) continue;
      const time = paid.get(keyOf(line));
      const left = time?.left ?? 0;
      if (-line.amount > left) {
        credits.push({ invoiceId, priceId: line.priceId, given: -line.amount, paid: left });
        amount += -line.amount - left;
      }
      if (time) time.left = Math.max(0, left + line.amount);
    }
    amount = Math.max(0, amount - withheld);
    const charges = lines.filter((line) => line.amount >= 0);
    const sum = charges.reduce((total, line) => total + line.amount, 0);
    for (const line of charges) {
      const charged = status === 'paid' ? line.amount : 0;
      // Withheld amounts are left out: they are at most its credits, so its refunds are at most its charges.
      const refunded = proratedAmount(charged, returned, sum);
      paid.set(keyOf(line), { charged, refunded, left: charged - refunded });
    }
  }
  return { amount, credits, paid };
}
