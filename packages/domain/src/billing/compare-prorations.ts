/**
 * Looks for money from nothing among the payment provider's invoices: what a subscription gives back for time that is
 * not used is at most what was paid for that time (`account-billing.md` §4, add-on purchase rule 1, charges a share of a
 * period; a change gives back the other share). A coupon of 100 % leaves nothing to give back.
 *
 * Each change gives back a line whole and charges a new one, so only the latest charge for a price and period counts.
 * What was given back of it before counts against it.
 */
export interface ProratedInvoice {
  readonly invoiceId: string;
  readonly status: string;
  readonly subscriptionLines: readonly {
    readonly subscriptionId: string;
    readonly priceId: string;
    /** In minor units, after discounts; negative: given back. */
    readonly amount: number;
    readonly periodEndMs: number;
  }[];
}

/** Of these nothing was taken and nothing was given. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['draft', 'void', 'deleted']);

/** @param invoices - oldest first. @returns each difference in a sentence. */
export function compareProrations(invoices: readonly ProratedInvoice[]): string[] {
  const found: string[] = [];
  /** What may be given back, by subscription, price and end of the period, in minor units. */
  const paid = new Map<string, number>();
  for (const { invoiceId, status, subscriptionLines: lines } of invoices) {
    if (WITHOUT_EFFECT.has(status)) continue;
    // A change of quantity gives back and charges the same price on one invoice.
    const creditsFirst = lines.toSorted(
      (one, other) => Math.sign(one.amount) - Math.sign(other.amount),
    );
    for (const { subscriptionId, priceId, amount, periodEndMs } of creditsFirst) {
      const key = `${subscriptionId} ${priceId} ${periodEndMs}`;
      const left = paid.get(key) ?? 0;
      if (amount >= 0) {
        paid.set(key, status === 'paid' ? amount : 0);
        continue;
      }
      if (-amount > left)
        found.push(
          `invoice ${invoiceId}: gives back ${-amount} for unused time of ${priceId}, for which ${left} was paid`,
        );
      paid.set(key, Math.max(0, left + amount));
    }
  }
  return found;
}
