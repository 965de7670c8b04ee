/**
 * `/simulator/pay/INVOICE`: the page on which a customer pays an invoice.
 *
 * The payment provider has such a page at an address that cannot be guessed. One button pays with a card that works.
 * The page needs no key, and is for machines of developers alone.
 */
import { PAYMENT_PAGES, payInvoice } from './objects/simulator-invoices.ts';
import { ProviderRefusal } from './engine/simulator-request.ts';
import type { SimulatorState } from './engine/simulator-state.ts';

/** Of the payment provider's test cards, one that is never declined. */
const CARD = 'pm_card_visa';

export interface PageAnswer {
  readonly status: number;
  readonly html: string;
}

/** @returns undefined for another path. */
export function answerPaymentPage(
  state: SimulatorState,
  method: string,
  path: string,
): PageAnswer | undefined {
  if (!path.startsWith(PAYMENT_PAGES)) return undefined;
  const invoice = state.get('invoice', decodeURIComponent(path.slice(PAYMENT_PAGES.length)));
  if (!invoice) return page(404, '<p>There is no such invoice.</p>');
  if (method === 'POST' && invoice['status'] === 'open') {
    try {
      payInvoice(state, invoice, { paymentMethodId: CARD, isOnSession: true });
    } catch (error) {
      if (!(error instanceof ProviderRefusal)) throw error;
      return page(402, `<p>${escaped(error.message)}</p>`);
    }
    return page(200, '<p>Paid. You can close this page.</p>');
  }
  if (invoice['status'] !== 'open')
    return page(200, `<p>This invoice is ${escaped(String(invoice['status']))}.</p>`);
  const amount = `${Number(invoice['amount_remaining'])} ${String(invoice['currency'])}`;
  return page(
    200,
    `<p>Invoice ${escaped(invoice.id)}: ${escaped(amount)}, in the smallest unit.</p>
<form method="post"><button>Pay by card</button></form>`,
  );
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

const page = (status: number, body: string): PageAnswer => ({
  status,
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Simulated payment</title></head><body><main><h1>Simulated payment</h1>${body}</main></body></html>`,
});
