/**
 * Settings of webhook delivery. Defaults are the values of `ingestion-webhooks.md` §8, if it has one.
 *
 * The specification leaves the backoff open: 10 s, 20 s, 40 s, … up to an hour, each shortened at random by up to a half.
 * It is for failures that are not on the one-hour list: timeouts, and the 503s and 504s of a receiver during a deployment,
 * which takes tens of seconds. 10 s is longer than the timeout, so a slow receiver has more rest than requests. It is also
 * short enough for a soon return. The cap is the longest wait of the specification: the worker finds a receiver that is
 * back within an hour, for about 170 requests in seven days.
 */
import { GIVE_UP_AFTER_MS_DEFAULT } from '@sluice/domain/delivery/delivery-schedule';
import type { LanePolicy } from '@sluice/domain/delivery/lane';
import type { AddressRange } from '@sluice/domain/delivery/network-address';
import { outgoingSettings } from '@sluice/platform/outgoing/outgoing-settings';
import type { Proxy } from '@sluice/platform/outgoing/proxy-tunnel';
import { integer } from '@sluice/platform/settings/config';
import { z } from 'zod';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Part of the worker's settings. */
export const webhookSettings = z.object({
  WEBHOOK_TIMEOUT_MS: integer(1, 60_000, 4_000).describe(
    'maximum time of one delivery attempt, from DNS look-up to last byte; must be less than half of DRAIN_TIMEOUT_MS, because a shutdown waits for it',
  ),
  WEBHOOK_LISTED_FAILURE_WAIT_MS: integer(1, 7 * DAY_MS, HOUR_MS).describe(
    'first wait after a failure of the one-hour list',
  ),
  WEBHOOK_BACKOFF_BASE_MS: integer(1, DAY_MS, 10_000).describe(
    'first wait of the exponential backoff',
  ),
  WEBHOOK_BACKOFF_CAP_MS: integer(1, 7 * DAY_MS, HOUR_MS).describe(
    'longest wait of the exponential backoff',
  ),
  WEBHOOK_GIVE_UP_AFTER_MS: integer(1, 365 * DAY_MS, GIVE_UP_AFTER_MS_DEFAULT).describe(
    'time after its first attempt at which a delivery is abandoned',
  ),
  WEBHOOK_ALERT_AFTER_MS: integer(1, 365 * DAY_MS, HOUR_MS).describe(
    'time of failure after which a webhook is reported to the other webhooks that selected `reporting_webhook_failing`',
  ),
  WEBHOOK_LOG_RETENTION_DAYS: integer(1, 3_650, 30).describe(
    'retention of deliveries and their attempts, in days, the current day included; unfinished deliveries are kept longer',
  ),
  ...outgoingSettings.shape,
  WEBHOOK_WINDOW_MAX: integer(1, 10_000, 64).describe('maximum concurrent requests to one webhook'),
});

export interface WebhookOptions {
  readonly lanes: LanePolicy;
  readonly timeoutMs: number;
  readonly allowPrivateAddresses: boolean;
  readonly allowedNetworks: readonly AddressRange[];
  readonly proxy: Proxy | undefined;
}

export function webhookOptions(settings: z.infer<typeof webhookSettings>): WebhookOptions {
  return {
    lanes: {
      listedFailureWaitMs: settings.WEBHOOK_LISTED_FAILURE_WAIT_MS,
      backoffBaseMs: settings.WEBHOOK_BACKOFF_BASE_MS,
      backoffCapMs: settings.WEBHOOK_BACKOFF_CAP_MS,
      giveUpAfterMs: settings.WEBHOOK_GIVE_UP_AFTER_MS,
      windowMax: settings.WEBHOOK_WINDOW_MAX,
    },
    timeoutMs: settings.WEBHOOK_TIMEOUT_MS,
    allowPrivateAddresses: settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES,
    allowedNetworks: settings.WEBHOOK_ALLOWED_NETWORKS,
    proxy: settings.WEBHOOK_PROXY_URL,
  };
}
