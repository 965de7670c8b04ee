/**
 * The vendor that the settings name: the real one where there is a key, else the simulator.
 *
 * The SDK is 218 of the modules that a process loads, a sixth of them, and only purchases need it. With a key it is
 * loaded at the start, so that no buyer waits for it; without one, by the first call.
 */
import type { Tracer } from '@sluice/platform/telemetry/tracing';
import type { z } from 'zod';
import type { billingSettings } from './settings.ts';
import type { Vendor } from './port/vendor.ts';

type BillingSettings = z.infer<typeof billingSettings>;

/** Where traces are on. */
export interface VendorTracing {
  readonly tracer: Tracer;
  /** The place in a trace of the request in progress; undefined where it is in none. */
  readonly findParent: () => string | undefined;
}

export async function openVendor(
  settings: BillingSettings,
  tracing?: VendorTracing,
): Promise<Vendor> {
  let opened: Promise<Vendor> | undefined;
  const open = (): Promise<Vendor> => (opened ??= openStripeVendor(settings, tracing));
  return settings.STRIPE_SECRET_KEY === undefined ? openedByCalls(open) : open();
}

async function openStripeVendor(
  { STRIPE_SECRET_KEY: secretKey, SIMULATOR_URL, VENDOR_TIMEOUT_MS: timeoutMs }: BillingSettings,
  tracing: VendorTracing | undefined,
): Promise<Vendor> {
  const { createStripeVendor, openStripeClient } = await import('./stripe/stripe-vendor.ts');
  const httpClient = tracing && (await openTracedHttpClient(tracing));
  return createStripeVendor(
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

async function openTracedHttpClient({ tracer, findParent }: VendorTracing) {
  const { createTracedHttpClient } = await import('./trace-vendor-requests.ts');
  return createTracedHttpClient(tracer, findParent);
}

/** All of the port: the compiler asks for what is missing. */
const CALLS: Readonly<Record<keyof Vendor, true>> = {
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
  findSubscription: true,
  findSubscriptionOfRun: true,
  readSubscription: true,
  findDefaultCard: true,
  setDefaultCard: true,
};

function openedByCalls(open: () => Promise<Vendor>): Vendor {
  const calls = (Object.keys(CALLS) as (keyof Vendor)[]).map((name) => [
    name,
    async (...input: unknown[]) =>
      ((await open())[name] as (...input: unknown[]) => unknown)(...input),
  ]);
  return Object.fromEntries(calls) as Vendor;
}
