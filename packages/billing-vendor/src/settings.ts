/** Settings of billing, for API and worker, and of the simulator. */
import {
  listenHost,
  integer,
  platformSettings,
  listenPort,
} from '@sluice/platform/settings/config';
import { z } from 'zod';

/** Public, so only good for trying things out. */
export const SIMULATOR_WEBHOOK_SECRET = 'whsec_simulator';

/** Shared by the processes that speak to the payment provider. */
export const billingSettings = z.object({
  STRIPE_SECRET_KEY: z
    .string()
    .startsWith('sk_')
    .optional()
    .describe('secret API key of the payment provider. Absent: Sluice uses the simulator'),
  STRIPE_WEBHOOK_SECRET: z
    .string()
    .min(8)
    .default(SIMULATOR_WEBHOOK_SECRET)
    .describe(
      "secret with which the payment provider signs its events; required with STRIPE_SECRET_KEY; the default is the simulator's public secret",
    ),
  SIMULATOR_URL: z
    .url()
    .default('http://127.0.0.1:8091')
    .describe('URL of the simulated payment provider'),
  VENDOR_TIMEOUT_MS: integer(50, 80_000, 20_000).describe(
    'maximum time of one call to the payment provider',
  ),
  BILLING_CATALOGUE_FILE: z
    .string()
    .optional()
    .describe(
      'JSON file of plans, add-ons, packs, credits and coupons. Absent: the built-in catalogue. A sold add-on must stay in it as `retired`: its price identifies its subscribers',
    ),
});

export const simulatorSettings = z.object({
  LOG_LEVEL: platformSettings.shape.LOG_LEVEL,
  DRAIN_TIMEOUT_MS: platformSettings.shape.DRAIN_TIMEOUT_MS,
  SIMULATOR_HOST: listenHost(),
  SIMULATOR_PORT: listenPort(8091),
  SIMULATOR_FILE: z
    .string()
    .optional()
    .describe(
      'SQLite file for the state of the simulator. Absent: the state is lost when the process ends',
    ),
  SIMULATOR_WEBHOOK_URL: z
    .url()
    .optional()
    .describe('URL to which the simulator sends its events. Absent: the simulator sends no events'),
  STRIPE_WEBHOOK_SECRET: billingSettings.shape.STRIPE_WEBHOOK_SECRET,
  BILLING_CATALOGUE_FILE: billingSettings.shape.BILLING_CATALOGUE_FILE,
});
