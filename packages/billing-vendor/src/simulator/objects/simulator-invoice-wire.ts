/** Invoices of the simulated payment provider as its answers show them. */
import { wireOf, type SimulatorState, type ProviderObject } from '../engine/simulator-state.ts';

/** What the wire shows: client secret and payments only where they are asked for, as with the payment provider. */
export function renderInvoice(
  state: SimulatorState,
  invoice: ProviderObject,
  expand: readonly string[],
): ProviderObject {
  const intent = state.get('payment_intent', invoice['simulated_payment_intent']);
  const wire = wireOf(invoice);
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
