/** A simulated payment provider by the clock of an API under test. Also our client of it. */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator } from '@sluice/billing-vendor/simulator/simulator';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import type { ApiUnderTest } from './api-under-test.ts';

/** Close `simulator` when done. */
export async function startProviderBeside(api: ApiUnderTest) {
  const simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: 'whsec_test',
    catalogue: readCatalogue(undefined),
    now: () => api.clock.nowMs,
    random: Math.random,
  });
  const stripe = openStripeClient({
    secretKey: 'sk_test_simulator',
    baseUrl: `http://127.0.0.1:${simulator.port}`,
    timeoutMs: 30_000,
  });
  return { simulator, stripe, provider: createStripeProvider(stripe) };
}
