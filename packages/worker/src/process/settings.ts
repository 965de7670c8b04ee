/** The settings of the worker; those of delivery are in `webhook-settings.ts`. */
import { billingSettings } from '@sluice/billing-vendor/settings';
import {
  listenHost,
  importSettings,
  integer,
  platformSettings,
  listenPort,
  encryptionSettings,
} from '@sluice/platform/settings/config';
import { tracingSettings } from '@sluice/platform/telemetry/tracing';
import { webhookSettings } from './webhook-settings.ts';

const eachSetting = platformSettings.extend({
  ...tracingSettings.shape,
  ...encryptionSettings.shape,
  ...importSettings.shape,
  ...webhookSettings.shape,
  ...billingSettings.shape,
  WORKER_HOST: listenHost('address of /livez, /readyz and /metrics'),
  WORKER_PORT: listenPort(8092),
  WORKER_HUNG_AFTER_MS: integer(1_000, 3_600_000, 60_000).describe(
    'a try of one envelope, or of one slice of a lane, that takes this long ends the process',
  ),
  USAGE_DAY_CLOSED_AFTER_MS: integer(0, 31_622_400_000, 86_400_000).describe(
    'how long after its end a UTC day of usage is summed up; until then its runs are listed one by one',
  ),
  INGESTION_ISSUES_KEPT_DAYS: integer(1, 36_500, 90).describe(
    'how long a day of the issues log is kept',
  ),
  IMPORTS_KEPT_DAYS: integer(1, 36_500, 90).describe(
    'how long an ended import and its rows with errors are kept',
  ),
  WORKER_SWEEP_INTERVAL_MS: integer(10, 600_000, 1_000).describe(
    'how often lanes whose wake-up was lost are looked for',
  ),
});

/**
 * A stop waits for the requests of replays and then for those of lanes. One that is cut is not written down, so its delivery
 * is sent again. Refused and not lengthened by ourselves: whoever ends the process (Kubernetes, Compose, systemd) has a time
 * of its own, which must be longer still.
 */
export const workerSettings = eachSetting.superRefine(
  ({ WEBHOOK_TIMEOUT_MS: timeoutMs, DRAIN_TIMEOUT_MS: drainTimeoutMs }, context) => {
    if (2 * timeoutMs < drainTimeoutMs) return;
    context.addIssue({
      code: 'custom',
      path: ['WEBHOOK_TIMEOUT_MS'],
      message: `is ${timeoutMs}, and must be less than half of DRAIN_TIMEOUT_MS, which is ${drainTimeoutMs}: a stop would cut deliveries under way, and they would be sent again; set DRAIN_TIMEOUT_MS above ${2 * timeoutMs}, and what the platform waits (terminationGracePeriodSeconds, stop_grace_period) above that`,
    });
  },
);
