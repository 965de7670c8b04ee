/** Settings of the worker. `webhook-settings.ts` has the settings of delivery. */
import { billingSettings } from '@sluice/billing-vendor/settings';
import {
  adminPort,
  listenHost,
  importSettings,
  integer,
  platformSettings,
  serviceDatabaseUrl,
  listenPort,
  encryptionSettings,
} from '@sluice/platform/settings/config';
import { tracingSettings } from '@sluice/platform/telemetry/tracing';
import { webhookSettings } from './webhook-settings.ts';

const eachSetting = platformSettings.extend({
  WORKER_DATABASE_URL: serviceDatabaseUrl('sluice_worker'),
  ...tracingSettings.shape,
  ...encryptionSettings.shape,
  ...importSettings.shape,
  ...webhookSettings.shape,
  ...billingSettings.shape,
  WORKER_HOST: listenHost('address of /livez, /readyz and /metrics'),
  WORKER_PORT: listenPort(8092),
  WORKER_ADMIN_PORT: adminPort(),
  // An attempt waits for batches of other shards for up to 4 s.
  WORKER_HUNG_AFTER_MS: integer(6_000, 3_600_000, 60_000).describe(
    'maximum time of one attempt at a commit batch, or of one time slice of a delivery queue; beyond it, the worker process exits',
  ),
  USAGE_DAY_CLOSED_AFTER_MS: integer(0, 31_622_400_000, 86_400_000).describe(
    'time after the end of a UTC day at which its usage is summed up; until then the API lists its runs separately',
  ),
  INGESTION_ISSUES_KEPT_DAYS: integer(1, 36_500, 90).describe(
    'retention of the issues log, in days',
  ),
  IMPORTS_KEPT_DAYS: integer(1, 36_500, 90).describe(
    'retention of an ended import and its rows with errors, in days',
  ),
  WORKER_SWEEP_INTERVAL_MS: integer(10, 600_000, 1_000).describe(
    'interval of the reconciliation loop, which finds delivery queues whose wake-up was lost',
  ),
});

/**
 * A stop waits for the requests of replays, and then for the requests of delivery queues. A request that is cut has no record,
 * so its delivery is sent again. The settings are refused, not corrected: the platform that ends the process (Kubernetes,
 * Compose, systemd) has a time of its own, which must be longer still.
 */
export const workerSettings = eachSetting.superRefine(
  ({ WEBHOOK_TIMEOUT_MS: timeoutMs, DRAIN_TIMEOUT_MS: drainTimeoutMs }, context) => {
    if (2 * timeoutMs < drainTimeoutMs) return;
    context.addIssue({
      code: 'custom',
      path: ['WEBHOOK_TIMEOUT_MS'],
      message: `is ${timeoutMs}, and must be less than half of DRAIN_TIMEOUT_MS, which is ${drainTimeoutMs}: otherwise a stop cuts deliveries in progress, and they are sent again. Set DRAIN_TIMEOUT_MS above ${2 * timeoutMs}, and the grace period of the platform (terminationGracePeriodSeconds, stop_grace_period) above that`,
    });
  },
);
