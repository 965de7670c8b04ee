/**
 * The receipt of a purchase that took money.
 *
 * It is computed from the content and the charge of its purchase workflow, so each computation gives the same receipt.
 * Pure; `worker/src/settlement/record-ending.ts` writes it down.
 */
import { describeCredits } from './catalogue.ts';
import type { Money } from '../values/money.ts';
import type { Address } from '../accounts/postal-address.ts';
import type { PurchaseContent, PurchaseResult, PurchaseReversal } from './purchase-content.ts';

export interface Receipt {
  readonly receiptId: string;
  readonly number: string;
  readonly issuedAt: Date;
  /** Lines of a name and an address. */
  readonly billedTo: string;
  /** Amounts in minor units. */
  readonly lines: readonly ReceiptLine[];
  readonly total: number;
  /** ISO 4217 in lower case. */
  readonly currency: string;
  /** As people name it: `Visa ending in 4242`. */
  readonly paymentMethod: string | null;
}

/** A receipt as it is shown: it stays as it was issued, with the amount that has gone back since. */
export interface ShownReceipt extends Receipt {
  /** Null if no money has gone back. */
  readonly reversal: PurchaseReversal | null;
}

interface ReceiptLine {
  readonly description: string;
  readonly quantity: number;
  readonly amount: number;
}

/** The payer, as the account is at the time of payment. */
export interface BilledAccount {
  readonly name: string;
  readonly address: Address | null;
}

/**
 * Made from its purchase workflow, which has one receipt. It has no card, because the stored charge does not name one.
 */
export function purchaseReceipt(
  workflow: { readonly runId: string; readonly content: PurchaseContent },
  result: PurchaseResult,
  charged: Money,
  account: BilledAccount,
  nowMs: number,
): Receipt {
  return {
    receiptId: workflow.runId,
    number: `R-${workflow.runId.replace(/^run_/, '')}`,
    issuedAt: new Date(nowMs),
    billedTo: billedTo(account),
    lines: [{ ...describe(workflow.content, result), amount: charged.amount }],
    total: charged.amount,
    currency: charged.currency,
    paymentMethod: null,
  };
}

/** One line: the payment provider charges for a purchase at once, reductions and unused time taken off. */
function describe(content: PurchaseContent, result: PurchaseResult): Omit<ReceiptLine, 'amount'> {
  switch (content.type) {
    case 'purchase':
      return { description: describeCredits(content.purchase), quantity: 1 };
    case 'addons': {
      const added = (result.items ?? []).filter((item) => item.result === 'added');
      return { description: `Add-ons: ${added.map((item) => item.sku).join(', ')}`, quantity: 1 };
    }
    case 'checkout': {
      const { plan, quantity, couponCode } = content;
      const coupon = couponCode === null ? '' : `, coupon ${couponCode}`;
      return { description: `${plan.name}, by the ${plan.interval}${coupon}`, quantity };
    }
  }
}

function billedTo({ name, address }: BilledAccount): string {
  if (!address) return name;
  const region = [address.state, address.postal_code].filter((part) => part !== null).join(' ');
  return [
    address.company ?? name,
    address.line1,
    address.line2,
    region === '' ? address.city : `${address.city}, ${region}`,
    address.country,
    address.tax_id && `Tax number ${address.tax_id.value}`,
  ]
    .filter((line) => line !== null && line !== '')
    .join('\n');
}
