/** The settings of billing: those that API and worker share, and those of the simulator. */
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
    .describe('of the payment vendor; absent: the simulator'),
  STRIPE_WEBHOOK_SECRET: z
    .string()
    .min(8)
    .default(SIMULATOR_WEBHOOK_SECRET)
    .describe(
      "what the vendor signs its events with; the default is the simulator's, which is not good in production",
    ),
  SIMULATOR_URL: z.url().default('http://127.0.0.1:8091').describe('where the simulated vendor is'),
  VENDOR_TIMEOUT_MS: integer(50, 80_000, 20_000).describe('one call of the payment vendor'),
  BILLING_CATALOGUE_FILE: z
    .string()
    .optional()
    .describe(
      'JSON: plans, add-ons, packs, credits, coupons; absent: the one that comes along. An add-on that was ever sold stays in it, `retired`: who has it is told by its price',
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
    .describe('SQLite file of what it knows; absent: forgotten with the process'),
  SIMULATOR_WEBHOOK_URL: z.url().optional().describe('where its events go; absent: nowhere'),
  STRIPE_WEBHOOK_SECRET: billingSettings.shape.STRIPE_WEBHOOK_SECRET,
  BILLING_CATALOGUE_FILE: billingSettings.shape.BILLING_CATALOGUE_FILE,
});
