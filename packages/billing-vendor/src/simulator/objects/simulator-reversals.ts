/**
 * Money that goes back, of the simulated payment provider: refunds, whole or in part, and disputes. A dispute has no
 * effect on the charge but its mark; the bank decides it.
 *
 *     charge succeeded ──refunded──▶ charge with more `amount_refunded`
 *     dispute needs_response ──▶ lost, won
 */
import { emit } from '../engine/simulator-events.ts';
import { invalid, noSuch } from '../engine/simulator-request.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';

/**
 * @param amount - in minor units; the whole rest if absent.
 * @throws ProviderRefusal 400
 */
export function refundCharge(
  state: SimulatorState,
  chargeId: string,
  amount: number | undefined,
): ProviderObject {
  const charge = chargeOf(state, chargeId);
  const left = Number(charge['amount']) - Number(charge['amount_refunded'] ?? 0);
  const refunded = amount ?? left;
  if (charge['status'] !== 'succeeded' || refunded <= 0 || refunded > left)
    throw invalid(`Charge ${chargeId} has no such amount to be refunded.`, {
      code: 'charge_already_refunded',
    });
  const refund = state.save('refund', {
    id: state.newId('re'),
    object: 'refund',
    amount: refunded,
    currency: charge['currency'],
    charge: chargeId,
    payment_intent: charge['payment_intent'],
    status: 'succeeded',
    created: state.nowSeconds(),
    metadata: {},
  });
  moveRefunded(state, charge, refunded);
  return refund;
}

/** The bank did not take it: the money is the merchant's again. */
export function failRefund(state: SimulatorState, refundId: string): ProviderObject {
  const refund = state.get('refund', refundId);
  if (!refund) throw noSuch('refund', refundId);
  const failed = state.save('refund', { ...refund, status: 'failed' });
  const charge = chargeOf(state, String(refund['charge']));
  moveRefunded(state, charge, -Number(refund['amount']));
  emit(state, 'charge.refund.updated', failed);
  return failed;
}

function moveRefunded(state: SimulatorState, charge: ProviderObject, by: number): void {
  const amountRefunded = Number(charge['amount_refunded'] ?? 0) + by;
  const moved = state.save('charge', {
    ...charge,
    amount_refunded: amountRefunded,
    refunded: amountRefunded === charge['amount'],
  });
  if (by > 0) emit(state, 'charge.refunded', moved);
}

/** The customer's bank takes the money back until it has decided. */
export function disputeCharge(state: SimulatorState, chargeId: string): ProviderObject {
  const charge = chargeOf(state, chargeId);
  state.save('charge', { ...charge, disputed: true });
  const dispute = state.save('dispute', {
    id: state.newId('du'),
    object: 'dispute',
    amount: charge['amount'],
    currency: charge['currency'],
    charge: chargeId,
    payment_intent: charge['payment_intent'],
    reason: 'fraudulent',
    status: 'needs_response',
    created: state.nowSeconds(),
    metadata: {},
  });
  emit(state, 'charge.dispute.created', dispute);
  emit(state, 'charge.dispute.funds_withdrawn', dispute);
  return dispute;
}

export function decideDispute(
  state: SimulatorState,
  disputeId: string,
  status: 'lost' | 'won',
): ProviderObject {
  const dispute = state.get('dispute', disputeId);
  if (!dispute) throw noSuch('dispute', disputeId);
  const decided = state.save('dispute', { ...dispute, status });
  emit(state, 'charge.dispute.closed', decided);
  if (status === 'won') emit(state, 'charge.dispute.funds_reinstated', decided);
  return decided;
}

/** The invoice that an intent pays, as the payment provider lists such payments. */
export function listInvoicePayments(
  state: SimulatorState,
  intentId: string,
): Record<string, unknown> {
  const intent = state.get('payment_intent', intentId);
  const invoice = state.get('invoice', intent?.['simulated_invoice']);
  const data = invoice
    ? [
        {
          id: `inpay_${invoice.id}`,
          object: 'invoice_payment',
          invoice: invoice.id,
          is_default: true,
          payment: { type: 'payment_intent', payment_intent: intentId },
          status: invoice['status'] === 'paid' ? 'paid' : 'open',
        },
      ]
    : [];
  return { object: 'list', url: '/v1/invoice_payments', has_more: false, data };
}

function chargeOf(state: SimulatorState, id: string): ProviderObject {
  const charge = state.get('charge', id);
  if (!charge) throw noSuch('charge', id);
  return charge;
}
