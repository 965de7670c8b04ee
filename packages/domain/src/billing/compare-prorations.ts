/**
 * Looks for money from nothing among the payment provider's invoices: credit for unused time of more than was paid for
 * it and not refunded (`unused-time.ts`). Pure; `scripts/verify.ts` reads the invoices.
 */
import { excessCredit, type ProratedInvoice } from './unused-time.ts';

/**
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
