/** Customers of the simulated payment provider, as calls make and change them. */
import { emit } from '../engine/simulator-events.ts';
import {
  formOf,
  integerOf,
  metadataOf,
  noSuch,
  required,
  textOf,
} from '../engine/simulator-request.ts';
import type { Form, FormValue } from '../engine/simulator-request.ts';
import type { SimulatorState, ProviderObject } from '../engine/simulator-state.ts';

/** @param existing - absent: a new one. @throws ProviderRefusal 404 for another customer's card. */
export function saveCustomer(
  state: SimulatorState,
  body: Form,
  existing: ProviderObject | undefined,
): ProviderObject {
  const settings = formOf(body['invoice_settings']);
  const paymentMethod = textOf(settings['default_payment_method']);
  if (paymentMethod !== undefined) {
    const owner = state.get('payment_method', paymentMethod)?.['customer'];
    if (owner === undefined || owner !== existing?.id) throw noSuch('PaymentMethod', paymentMethod);
  }
  const customer = state.save('customer', {
    object: 'customer',
    created: state.nowSeconds(),
    livemode: false,
    balance: 0,
    // Until the first invoice.
    currency: null,
    invoice_settings: { default_payment_method: null },
    tax_exempt: 'none',
    ...existing,
    ...(body['balance'] !== undefined && { balance: integerOf(body['balance'], 'balance') }),
    id: existing?.id ?? state.newId('cus'),
    email: textOf(body['email']) ?? existing?.['email'] ?? null,
    name: textOf(body['name']) ?? existing?.['name'] ?? null,
    metadata: { ...(existing?.['metadata'] as object), ...metadataOf(body['metadata']) },
    address: addressOf(body['address'], existing?.['address'] ?? null),
    ...(paymentMethod !== undefined && {
      invoice_settings: { default_payment_method: paymentMethod },
    }),
  });
  emit(state, existing ? 'customer.updated' : 'customer.created', customer);
  return customer;
}

/** The balance is the customer's debt: a positive amount uses up credit. */
export function moveBalance(
  state: SimulatorState,
  customer: ProviderObject,
  body: Form,
): ProviderObject {
  const amount = integerOf(required(body['amount'], 'amount'), 'amount') ?? 0;
  const balance = Number(customer['balance']) + amount;
  state.save('customer', { ...customer, balance });
  return state.save('customer_balance_transaction', {
    id: state.newId('cbtxn'),
    object: 'customer_balance_transaction',
    amount,
    currency: required(body['currency'], 'currency'),
    customer: customer.id,
    description: textOf(body['description']) ?? null,
    ending_balance: balance,
    type: 'adjustment',
    metadata: metadataOf(body['metadata']),
    created: state.nowSeconds(),
  });
}

/** As it is sent: an empty field is null, and an empty address counts as no address. */
function addressOf(given: FormValue | undefined, existing: unknown): unknown {
  if (given === undefined) return existing;
  if (given === '') return null;
  const fields = ['line1', 'line2', 'city', 'state', 'postal_code', 'country'];
  const form = formOf(given);
  return Object.fromEntries(fields.map((field) => [field, textOf(form[field]) || null]));
}
