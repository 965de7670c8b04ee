/** The simulator's part of the payment provider's API: method and path → action. */
import { renderCoupon } from './objects/simulator-coupons.ts';
import { moveBalance, saveCustomer } from './objects/simulator-customers.ts';
import { renderInvoice } from './objects/simulator-invoice-wire.ts';
import {
  addLine,
  createInvoice,
  finalizeInvoice,
  payInvoice,
  voidInvoice,
} from './objects/simulator-invoices.ts';
import { linesOf } from './objects/simulator-lines.ts';
import { attachPaymentMethod } from './objects/simulator-payments.ts';
import {
  flagOf,
  formOf,
  formsOf,
  integerOf,
  invalid,
  metadataOf,
  noSuch,
  required,
  textOf,
  type Form,
} from './engine/simulator-request.ts';
import { listInvoicePayments, refundCharge } from './objects/simulator-reversals.ts';
import {
  wireOf,
  type Collection,
  type SimulatorState,
  type ProviderObject,
} from './engine/simulator-state.ts';
import {
  cancelSubscription,
  createSubscription,
  previewInvoice,
  updateSubscription,
} from './objects/simulator-subscriptions.ts';

export interface ProviderCall {
  readonly state: SimulatorState;
  /** The id in the path; empty for a path without one. */
  readonly id: string;
  /** Query and body. */
  readonly body: Form;
  readonly expand: readonly string[];
}

type Handler = (call: ProviderCall) => Record<string, unknown>;

const find = (call: ProviderCall, collection: Collection, what: string): ProviderObject => {
  const found = call.state.get(collection, call.id);
  if (!found) throw noSuch(what, call.id);
  return found;
};

const PAGE_SIZE_MAX = 100;
/** The payment provider's rules for each type are not copied; no type takes fewer characters. */
const TAX_ID_LENGTH_MIN = 5;

/** Newest first, as the payment provider lists. */
function list(
  call: ProviderCall,
  collection: Collection,
  isWanted: (object: ProviderObject) => boolean,
  render: (object: ProviderObject) => Record<string, unknown> = wireOf,
) {
  const all = call.state.list(collection).filter(isWanted).toReversed();
  const after = textOf(call.body['starting_after']);
  const from = after === undefined ? 0 : all.findIndex((object) => object.id === after) + 1;
  const limit = Math.min(integerOf(call.body['limit'], 'limit') ?? 10, PAGE_SIZE_MAX);
  return {
    object: 'list',
    url: `/v1/${collection}s`,
    has_more: all.length > from + limit,
    data: all.slice(from, from + limit).map(render),
  };
}

const ofCustomer = (call: ProviderCall) => (object: ProviderObject) => {
  const customer = textOf(call.body['customer']);
  return customer === undefined || object['customer'] === customer;
};

function invoiceOf(call: ProviderCall): ProviderObject {
  return find(call, 'invoice', 'invoice');
}

const subscriptionOf = (invoice: ProviderObject): unknown =>
  (invoice['parent'] as { subscription_details: { subscription: string } } | null)
    ?.subscription_details.subscription;

const showInvoice =
  (call: ProviderCall) =>
  (invoice: ProviderObject): ProviderObject =>
    renderInvoice(call.state, invoice, call.expand);

function showSubscription(
  call: ProviderCall,
  subscription: ProviderObject,
): Record<string, unknown> {
  const shown = wireOf(subscription);
  const invoice = call.state.get('invoice', shown['latest_invoice']);
  return invoice && call.expand.some((path) => path.endsWith('latest_invoice'))
    ? { ...shown, latest_invoice: renderInvoice(call.state, invoice, []) }
    : shown;
}

/** An invoice has the discount of its customer only if the request does not set one. */
function couponOfNew({ state, body }: ProviderCall, customerId: string): string | undefined {
  if (body['discounts'] !== undefined) return textOf(formsOf(body['discounts'])[0]?.['coupon']);
  const coupon = state.get('customer', customerId)?.['simulated_coupon'];
  return typeof coupon === 'string' ? coupon : undefined;
}

/** `:id` stands for an id. */
const ROUTES: Readonly<Record<string, Handler>> = {
  'POST /v1/customers': (call) => wireOf(saveCustomer(call.state, call.body, undefined)),
  'GET /v1/customers': (call) => {
    const email = textOf(call.body['email']);
    return list(call, 'customer', (each) => email === undefined || each['email'] === email);
  },
  'GET /v1/customers/:id': (call) => wireOf(find(call, 'customer', 'customer')),
  'POST /v1/customers/:id': (call) =>
    wireOf(saveCustomer(call.state, call.body, find(call, 'customer', 'customer'))),
  'POST /v1/customers/:id/balance_transactions': (call) =>
    wireOf(moveBalance(call.state, find(call, 'customer', 'customer'), call.body)),
  'GET /v1/customers/:id/balance_transactions': (call) => {
    const { id } = find(call, 'customer', 'customer');
    return list(call, 'customer_balance_transaction', (each) => each['customer'] === id);
  },
  'GET /v1/tax_ids': (call) => {
    const customer = textOf(formOf(call.body['owner'])['customer']);
    return list(call, 'tax_id', (each) => each['customer'] === customer);
  },
  'POST /v1/tax_ids': (call) => {
    const customer = required(formOf(call.body['owner'])['customer'], 'owner[customer]');
    if (!call.state.get('customer', customer)) throw noSuch('customer', customer);
    const value = required(call.body['value'], 'value');
    if (value.length < TAX_ID_LENGTH_MIN)
      throw invalid('Invalid value for this tax id.', { code: 'tax_id_invalid' });
    return call.state.save('tax_id', {
      object: 'tax_id',
      id: call.state.newId('txi'),
      customer,
      type: required(call.body['type'], 'type'),
      value,
    });
  },
  'DELETE /v1/tax_ids/:id': (call) => {
    call.state.delete('tax_id', find(call, 'tax_id', 'tax_id').id);
    return { id: call.id, object: 'tax_id', deleted: true };
  },
  'POST /v1/payment_methods/:id/attach': (call) =>
    wireOf(attachPaymentMethod(call.state, call.id, required(call.body['customer'], 'customer'))),
  'GET /v1/payment_methods/:id': (call) => wireOf(find(call, 'payment_method', 'PaymentMethod')),
  'GET /v1/payment_methods': (call) => list(call, 'payment_method', ofCustomer(call)),
  'GET /v1/prices/:id': (call) => wireOf(find(call, 'price', 'price')),
  'GET /v1/coupons/:id': (call) => renderCoupon(find(call, 'coupon', 'coupon')),
  'POST /v1/invoices': (call) => {
    const customer = required(call.body['customer'], 'customer');
    if (!call.state.get('customer', customer)) throw noSuch('customer', customer);
    return showInvoice(call)(
      createInvoice(call.state, {
        customer,
        currency: textOf(call.body['currency']) ?? 'usd',
        metadata: metadataOf(call.body['metadata']),
        collectionMethod: textOf(call.body['collection_method']) ?? 'charge_automatically',
        autoAdvance: flagOf(call.body['auto_advance']),
        couponId: couponOfNew(call, customer),
        subscription: null,
      }),
    );
  },
  'POST /v1/invoices/create_preview': (call) => previewInvoice(call.state, call.body),
  'GET /v1/invoices': (call) => {
    const status = textOf(call.body['status']);
    const subscription = textOf(call.body['subscription']);
    const isWanted = (invoice: ProviderObject) =>
      ofCustomer(call)(invoice) &&
      (status === undefined || invoice['status'] === status) &&
      (subscription === undefined || subscriptionOf(invoice) === subscription);
    return list(call, 'invoice', isWanted, showInvoice(call));
  },
  'GET /v1/invoices/:id': (call) => showInvoice(call)(invoiceOf(call)),
  'GET /v1/invoices/:id/lines': (call) => ({
    object: 'list',
    url: `/v1/invoices/${call.id}/lines`,
    has_more: false,
    data: linesOf(invoiceOf(call)),
  }),
  'POST /v1/invoices/:id/finalize': (call) =>
    showInvoice(call)(finalizeInvoice(call.state, invoiceOf(call))),
  'POST /v1/invoices/:id/pay': (call) =>
    showInvoice(call)(
      payInvoice(call.state, invoiceOf(call), {
        paymentMethodId: textOf(call.body['payment_method']),
        isOnSession: call.body['off_session'] === 'false',
      }),
    ),
  'POST /v1/invoices/:id/void': (call) =>
    showInvoice(call)(voidInvoice(call.state, invoiceOf(call))),
  'DELETE /v1/invoices/:id': (call) => {
    const invoice = invoiceOf(call);
    if (invoice['status'] !== 'draft')
      throw invalid('You can only delete draft invoices.', { code: 'invoice_not_editable' });
    call.state.delete('invoice', invoice.id);
    return { id: invoice.id, object: 'invoice', deleted: true };
  },
  'POST /v1/invoiceitems': (call) => {
    const invoice = find(
      { ...call, id: required(call.body['invoice'], 'invoice') },
      'invoice',
      'invoice',
    );
    const line = addLine(call.state, invoice, {
      amount: integerOf(required(call.body['amount'], 'amount'), 'amount') ?? 0,
      description: textOf(call.body['description']) ?? null,
      metadata: metadataOf(call.body['metadata']),
    });
    return { ...line, object: 'invoiceitem', invoice: invoice.id };
  },
  'GET /v1/payment_intents/:id': (call) => wireOf(find(call, 'payment_intent', 'payment_intent')),
  'POST /v1/payment_intents/:id/confirm': (call) => {
    const intent = find(call, 'payment_intent', 'payment_intent');
    const secret = textOf(call.body['client_secret']);
    if (secret !== undefined && secret !== intent['client_secret'])
      throw noSuch('payment_intent', call.id);
    const invoice = call.state.get('invoice', intent['simulated_invoice']);
    if (!invoice || invoice['status'] !== 'open')
      throw invalid("This PaymentIntent's status does not allow it to be confirmed.", {
        code: 'payment_intent_unexpected_state',
      });
    payInvoice(call.state, invoice, {
      paymentMethodId: required(call.body['payment_method'], 'payment_method'),
      isOnSession: true,
    });
    return wireOf(find(call, 'payment_intent', 'payment_intent'));
  },
  'GET /v1/charges': (call) => {
    const since = integerOf(formOf(call.body['created'])['gte'], 'created[gte]') ?? 0;
    const isWanted = (each: ProviderObject) => Number(each['created']) >= since;
    return list(call, 'charge', (each) => ofCustomer(call)(each) && isWanted(each));
  },
  'GET /v1/charges/:id': (call) => wireOf(find(call, 'charge', 'charge')),
  'POST /v1/refunds': ({ state, body }) =>
    wireOf(
      refundCharge(state, required(body['charge'], 'charge'), integerOf(body['amount'], 'amount')),
    ),
  'GET /v1/refunds': (call) => list(call, 'refund', () => true),
  'GET /v1/refunds/:id': (call) => wireOf(find(call, 'refund', 'refund')),
  'GET /v1/disputes/:id': (call) => wireOf(find(call, 'dispute', 'dispute')),
  'GET /v1/disputes': (call) => {
    const charge = textOf(call.body['charge']);
    return list(call, 'dispute', (each) => charge === undefined || each['charge'] === charge);
  },
  'GET /v1/invoice_payments': ({ state, body }) =>
    listInvoicePayments(state, required(formOf(body['payment'])['payment_intent'], 'payment')),
  'POST /v1/subscriptions': (call) =>
    showSubscription(call, createSubscription(call.state, call.body)),
  'GET /v1/subscriptions': (call) => {
    // Without a status, ended subscriptions are left out.
    const isAll = textOf(call.body['status']) === 'all';
    const isWanted = (each: ProviderObject) =>
      ofCustomer(call)(each) && (isAll || each['status'] !== 'canceled');
    return list(call, 'subscription', isWanted, (each) => showSubscription(call, each));
  },
  'GET /v1/subscriptions/:id': (call) =>
    showSubscription(call, find(call, 'subscription', 'subscription')),
  'POST /v1/subscriptions/:id': (call) =>
    showSubscription(
      call,
      updateSubscription(call.state, find(call, 'subscription', 'subscription'), call.body),
    ),
  'DELETE /v1/subscriptions/:id': (call) =>
    wireOf(cancelSubscription(call.state, find(call, 'subscription', 'subscription'))),
};

const PATTERNS = Object.entries(ROUTES).map(([route, handler]) => {
  const [method, path] = route.split(' ') as [string, string];
  return { method, pattern: new RegExp(`^${path.replace(':id', '([^/]+)')}$`), handler };
});

/** The handler of a request and the id in its path; undefined if the simulator has no such path. */
export function findRoute(
  method: string,
  path: string,
): { readonly handler: Handler; readonly id: string } | undefined {
  for (const route of PATTERNS) {
    const match = route.method === method ? route.pattern.exec(path) : null;
    if (match) return { handler: route.handler, id: decodeURIComponent(match[1] ?? '') };
  }
  return undefined;
}
