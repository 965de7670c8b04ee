/**
 * The credit that a subscription gives back for unused time: at most what was paid for that time and not refunded
 * (`account-billing.md` §4, add-on purchase rule 1, charges a share of a period; a change gives back the other share).
 * A coupon of 100 % leaves nothing to give back, and a refund leaves nothing of what it returned.
 *
 * The payment provider deducts coupons by itself, and knows nothing of refunds. So a change charges the refunded part
 * of its credit again, on the same invoice (`withheldCredit`). A refund that comes after the credit leaves an excess,
 * which is taken from the customer's balance or withheld by the next change (`excessCredit`).
 *
 * Each change gives back a line whole and charges a new one, so only the latest charge for a price and period counts.
 * What was given back of it before counts against it. Pure.
 */
import { proratedAmount } from '../values/money.ts';

/** All of one subscription, in minor units of one currency. */
export interface ProratedInvoice {
  readonly invoiceId: string;
  readonly status: string;
  readonly subscriptionLines: readonly SubscriptionLine[];
  /** Of its credits, what it charges again because it was refunded. */
  readonly withheld: number;
  /** Of its payments, what went back to the customer: refunds, and disputes that were lost. */
  readonly returned: number;
}

/** Time of a subscription that is charged, or given back. */
export interface SubscriptionLine {
  readonly subscriptionId: string;
  readonly priceId: string;
  /** After discounts; negative: given back. */
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

/** What was charged last for a price and period. */
interface PaidTime {
  readonly charged: number;
  /** Of the charged amount, what was refunded. */
  readonly refunded: number;
  /** Of the rest, what was not given back. */
  left: number;
}

/** Of these nothing was taken and nothing was given. */
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
 * @param takenBack - of earlier excess, what was taken from the customer's balance.
 * @param lines - those that the change would make.
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
    // Of time whose invoice is not among them nothing is known.
    if (!time) continue;
    const share = proratedAmount(-line.amount, time.refunded, time.charged);
    refunded += Math.max(share, -line.amount - time.left);
  }
  return Math.min(given, refunded + Math.max(0, amount - takenBack));
}

/**
 * Looks for money from nothing, for `scripts/verify.ts`.
 *
 * @param invoices - of any subscriptions, oldest first.
 * @param takenBackOf - by subscription: the amount of such credit that was taken from its customer's balance, in minor
 *   units. Absent: none.
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

/** An invoice has the lines of one subscription. */
function bySubscription(invoices: readonly ProratedInvoice[]): Map<string, ProratedInvoice[]> {
  const withLines = invoices.filter(({ subscriptionLines }) => subscriptionLines.length > 0);
  return Map.groupBy(withLines, ({ subscriptionLines: [line] }) => line?.subscriptionId ?? '');
}

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
      // Not of what is withheld: that is at most its credits, so what is refunded is at most its charges.
      const refunded = proratedAmount(charged, returned, sum);
      paid.set(keyOf(line), { charged, refunded, left: charged - refunded });
    }
  }
  return { amount, credits, paid };
}
