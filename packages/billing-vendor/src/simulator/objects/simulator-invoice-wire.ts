/** Invoices of the simulated payment provider as its answers show them. */
import { wireOf, type SimulatorState, type ProviderObject } from '../engine/simulator-state.ts';

/** The others are a list of their own, as with the payment provider. */
const SHOWN_LINE_COUNT_MAX = 10;

/**
 * The invoice as the wire shows it: client secret and payments only if they are asked for, as with the payment
 * provider.
 */
export function renderInvoice(
  state: SimulatorState,
  invoice: ProviderObject,
  expand: readonly string[],
): ProviderObject {
  const intent = state.get('payment_intent', invoice['simulated_payment_intent']);
  const wire = wireOf(invoice);
  const lines = (invoice['lines'] as { data: unknown[] }).data;
  wire['lines'] = {
    object: 'list',
    data: lines.slice(0, SHOWN_LINE_COUNT_MAX),
    has_more: lines.length > SHOWN_LINE_COUNT_MAX,
    url: `/v1/invoices/${invoice.id}/lines`,
  };
  if (intent && expand.some((path) => path.endsWith('confirmation_secret')))
    wire['confirmation_secret'] = {
      client_secret: intent['client_secret'],
      type: 'payment_intent',
    };
  if (intent && expand.includes('payments.data.payment.payment_intent'))
    wire['payments'] = {
      object: 'list',
      has_more: false,
      data: [
        {
          id: `inpay_${invoice.id}`,
          object: 'invoice_payment',
          is_default: true,
          status: invoice['status'] === 'paid' ? 'paid' : 'open',
          payment: { type: 'payment_intent', payment_intent: wireOf(intent) },
        },
      ],
    };
  return wire;
}
