/**
 * Signing secret of the payment provider's events. The default is public: in production any caller could sign with it
 * and write rows that workers look up, repeatedly if no payment provider answers.
 *
 * Used by `main.ts`, for `provider-event-endpoint.ts`.
 */
import { randomBytes } from 'node:crypto';
import { SIMULATOR_WEBHOOK_SECRET } from '@sluice/billing-vendor/settings';
import { AppError } from '@sluice/domain/values/errors';

export interface ProviderEventSettings {
  readonly NODE_ENV: string;
  readonly STRIPE_SECRET_KEY?: string | undefined;
  readonly STRIPE_WEBHOOK_SECRET: string;
}

/**
 * @returns the setting; in production with neither a payment provider nor a secret set, a random one, so that no event
 * is taken.
 * @throws AppError CONFIG_INVALID with the public secret beside a real payment provider: in production its events would
 * all be refused, and anywhere else anybody could sign them.
 */
export function providerEventSecretOf(settings: ProviderEventSettings): string {
  const { NODE_ENV, STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET: secret } = settings;
  if (secret !== SIMULATOR_WEBHOOK_SECRET) return secret;
  if (STRIPE_SECRET_KEY !== undefined)
    throw new AppError(
      'CONFIG_INVALID',
      "STRIPE_WEBHOOK_SECRET is required with STRIPE_SECRET_KEY, because the default is public; set it to the signing secret of the payment provider's endpoint for /v1/vendor_events",
    );
  return NODE_ENV === 'production' ? randomBytes(32).toString('base64url') : secret;
}
