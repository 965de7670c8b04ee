/**
 * The payment provider port over the payment provider's official SDK.
 *
 * It never lets the SDK repeat a request on its own account (`maxNetworkRetries: 0`): the workflow decides whether and
 * with which key a call is repeated. The SDK resends once on a socket that closed; that is the same key again, which is
 * harmless.
 */
import { Stripe } from 'stripe';
import { createStripeCustomers } from './stripe-customers.ts';
import { createStripeInvoices } from './stripe-invoices.ts';
import { createStripePayments } from './stripe-payments.ts';
import { createStripeSubscriptions } from './stripe-subscriptions.ts';
import { createStripeUnusedTime } from './stripe-unused-time.ts';
import type { PaymentProvider } from '../port/payment-provider.ts';

export interface StripeOptions {
  readonly secretKey: string;
  /** Of the simulator. Absent: the payment provider itself. */
  readonly baseUrl?: string | undefined;
  readonly timeoutMs: number;
  /** Absent: the SDK's own. */
  readonly httpClient?: ReturnType<typeof Stripe.createNodeHttpClient> | undefined;
}

export function openStripeClient(options: StripeOptions): Stripe {
  const base = options.baseUrl === undefined ? undefined : new URL(options.baseUrl);
  return new Stripe(options.secretKey, {
    maxNetworkRetries: 0,
    timeout: options.timeoutMs,
    telemetry: false,
    ...(options.httpClient && { httpClient: options.httpClient }),
    ...(base && {
      host: base.hostname,
      port: base.port === '' ? (base.protocol === 'https:' ? 443 : 80) : Number(base.port),
      protocol: base.protocol === 'https:' ? 'https' : 'http',
    }),
  });
}

export const createStripeProvider = (stripe: Stripe): PaymentProvider => ({
  ...createStripeCustomers(stripe),
  ...createStripeInvoices(stripe),
  ...createStripePayments(stripe),
  ...createStripeSubscriptions(stripe),
  ...createStripeUnusedTime(stripe),
});
