/**
 * Lines of invoices of the simulated payment provider, in its own shape. The amount of a line is before its discounts;
 * the amount of a proration is after them, and lists no discount.
 */
import type { ProviderObject } from '../engine/simulator-state.ts';

/** The subscription time of a line; times in Unix seconds. */
interface SubscriptionTime {
  readonly subscriptionId: string;
  readonly itemId: string;
  readonly priceId: string;
  /** For part of a period, after a change within it. */
  readonly isProration: boolean;
  readonly start: number;
  readonly end: number;
}

export interface NewLine {
  /** In minor units; negative for unused time. */
  readonly amount: number;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** Absent: it is for one purchase. */
  readonly of?: SubscriptionTime;
  /** The line whose unused time this gives back. */
  readonly credited?: { readonly invoiceId: string; readonly lineId: string };
}

export interface InvoiceLine {
  readonly id: string;
  readonly amount: number;
  readonly discount_amounts: readonly { readonly amount: number; readonly discount: string }[];
  readonly period: { readonly start: number; readonly end: number };
  readonly parent: {
    readonly subscription_item_details: { readonly subscription_item: string } | null;
  };
}

/** A kept file may have lines of an earlier version, which name no subscription. */
export const linesOf = (invoice: ProviderObject): InvoiceLine[] =>
  (invoice['lines'] as { data: InvoiceLine[] }).data.filter(({ parent }) => parent !== undefined);

/** The amount to pay for a line. */
export const netOf = ({ amount, discount_amounts: discounts }: InvoiceLine): number =>
  discounts.reduce((left, discount) => left - discount.amount, amount);

export const subscriptionItemOf = ({ parent }: InvoiceLine): string | undefined =>
  parent.subscription_item_details?.subscription_item;

/** @param atSeconds - the period of a line without one of its own. */
export function toLine(id: string, line: NewLine, atSeconds: number): InvoiceLine {
  const { of, credited } = line;
  const made = {
    id,
    object: 'line_item',
    amount: line.amount,
    description: line.description,
    metadata: line.metadata,
    discountable: of?.isProration !== true,
    discount_amounts: [],
    pricing: of ? { type: 'price_details', price_details: { price: of.priceId } } : null,
    period: { start: of?.start ?? atSeconds, end: of?.end ?? atSeconds },
    parent: {
      type: of ? 'subscription_item_details' : 'invoice_item_details',
      subscription_item_details: of
        ? {
            subscription: of.subscriptionId,
            subscription_item: of.itemId,
            proration: of.isProration,
            proration_details: credited
              ? {
                  credited_items: {
                    invoice: credited.invoiceId,
                    invoice_line_items: [credited.lineId],
                  },
                }
              : null,
          }
        : null,
    },
  };
  return made;
}
