/**
 * The payment provider that the settings name: the real one if there is a key, else the simulator.
 *
 * The SDK is 218 of the modules that a process loads, a sixth of them, and only purchases need it. With a key it is
 * loaded at the start, so that no buyer waits for it; without one, by the first call.
 */
import type { Tracer } from '@sluice/platform/telemetry/tracing';
import type { z } from 'zod';
import type { billingSettings } from './settings.ts';
import type { PaymentProvider } from './port/payment-provider.ts';

type BillingSettings = z.infer<typeof billingSettings>;

/** Used if traces are on. */
export interface ProviderTracing {
  readonly tracer: Tracer;
  /** The place in a trace of the request in progress; undefined if it is not traced. */
  readonly findParent: () => string | undefined;
}

export async function openPaymentProvider(
  settings: BillingSettings,
  tracing?: ProviderTracing,
): Promise<PaymentProvider> {
  let opened: Promise<PaymentProvider> | undefined;
  const open = (): Promise<PaymentProvider> => (opened ??= openStripeProvider(settings, tracing));
  return settings.STRIPE_SECRET_KEY === undefined ? openedByCalls(open) : open();
}

async function openStripeProvider(
  { STRIPE_SECRET_KEY: secretKey, SIMULATOR_URL, VENDOR_TIMEOUT_MS: timeoutMs }: BillingSettings,
  tracing: ProviderTracing | undefined,
): Promise<PaymentProvider> {
  const { createStripeProvider, openStripeClient } = await import('./stripe/stripe-provider.ts');
  const httpClient = tracing && (await openTracedHttpClient(tracing));
  return createStripeProvider(
    secretKey === undefined
      ? openStripeClient({
          secretKey: 'sk_test_simulator',
          baseUrl: SIMULATOR_URL,
          timeoutMs,
          httpClient,
        })
      : openStripeClient({ secretKey, timeoutMs, httpClient }),
  );
}

async function openTracedHttpClient({ tracer, findParent }: ProviderTracing) {
  const { createTracedHttpClient } = await import('./trace-provider-requests.ts');
  return createTracedHttpClient(tracer, findParent);
}

/** All of the port: the compiler reports missing calls. */
const CALLS: Readonly<Record<keyof PaymentProvider, true>> = {
  createCustomer: true,
  findCustomer: true,
  updateCustomer: true,
  readCustomer: true,
  createInvoice: true,
  addLine: true,
  finalizeInvoice: true,
  payInvoice: true,
  discardInvoice: true,
  findInvoice: true,
  readPayment: true,
  listReversedCharges: true,
  listInvoices: true,
  listSubscriptions: true,
  listOpenInvoices: true,
  findInvoiceOfRun: true,
  createSubscription: true,
  changeSubscription: true,
  cancelSubscription: true,
  previewChange: true,
  listInvoicesOfSubscription: true,
  readCreditTakenBack: true,
  takeBackCredit: true,
  findSubscription: true,
  findSubscriptionOfRun: true,
  readSubscription: true,
  findDefaultCard: true,
  setDefaultCard: true,
  isCouponValid: true,
};

function openedByCalls(open: () => Promise<PaymentProvider>): PaymentProvider {
  const calls = (Object.keys(CALLS) as (keyof PaymentProvider)[]).map((name) => [
    name,
    async (...input: unknown[]) =>
      ((await open())[name] as (...input: unknown[]) => unknown)(...input),
  ]);
  return Object.fromEntries(calls) as PaymentProvider;
}
