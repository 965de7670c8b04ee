/** The client of the vendor that the settings name: the real one where there is a key, else the simulator. */
import type { Stripe } from 'stripe';
import type { z } from 'zod';
import type { billingSettings } from './settings.ts';
import { openStripeClient, type StripeOptions } from './stripe-vendor.ts';

export function openVendorClient(
  settings: z.infer<typeof billingSettings>,
  httpClient?: StripeOptions['httpClient'],
): Stripe {
  const { STRIPE_SECRET_KEY: secretKey, SIMULATOR_URL, VENDOR_TIMEOUT_MS: timeoutMs } = settings;
  return secretKey === undefined
    ? openStripeClient({
        secretKey: 'sk_test_simulator',
        baseUrl: SIMULATOR_URL,
        timeoutMs,
        httpClient,
      })
    : openStripeClient({ secretKey, timeoutMs, httpClient });
}
