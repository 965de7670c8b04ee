/** The settings of intake. */
import {
  addingSettings,
  flag,
  listenHost,
  integer,
  platformSettings,
  listenPort,
} from '@sluice/platform/settings/config';
import { tracingSettings } from '@sluice/platform/telemetry/tracing';
import { z } from 'zod';

const MEBIBYTE = 1_048_576;

export const intakeSettings = platformSettings.extend({
  ...tracingSettings.shape,
  INTAKE_HOST: listenHost(),
  INTAKE_PORT: listenPort(8080),
  INTAKE_IS_HTTPS: flag(false).describe(
    'browsers reach intake by https (a proxy in front ends TLS)',
  ),
  INTAKE_PENDING_SIZE_BYTES_MAX: integer(MEBIBYTE, 4_096 * MEBIBYTE, 64 * MEBIBYTE).describe(
    'request bytes that may wait for the broker, and as many on their way in; beyond it calls get 503',
  ),
  INTAKE_COMMIT_DEADLINE_MS: integer(100, 60_000, 2_000).describe(
    'how long a call may wait for the broker before it goes to the spill',
  ),
  REDIS_REPLICAS_MIN: z.coerce
    .number()
    .int()
    .min(0)
    .max(16)
    .optional()
    .describe(
      'replicas that must have a flush before it is acknowledged; absent: 1 with Sentinels or a Cluster, else 0',
    ),
  REDIS_REPLICA_GRACE_MS: integer(0, 3_600_000, 15_000).describe(
    'a master of a Redis Cluster that has had fewer for this long is taken at its own word; longer than a failover',
  ),
  ...addingSettings,
  INTAKE_SPILL_DIRECTORY: z
    .string()
    .default('.sluice/spill')
    .describe('where calls are kept while the broker is away; a disk that outlives the process'),
  INTAKE_SPILL_SIZE_BYTES_MAX: integer(0, 1_024 * 1_024 * MEBIBYTE, 1_024 * MEBIBYTE).describe(
    'how much is kept there; beyond it calls get 503',
  ),
  INTAKE_RATE_LIMIT_PER_SECOND: integer(0, 1_000_000, 0).describe(
    'calls a second that a workspace may make in one process, 429 beyond; 0: as many as it likes',
  ),
  INTAKE_STREAM_COUNT_MAX: integer(0, 10_000, 100).describe(
    'streams (POST /v1/stream) open at the same time, about 2 MB each; beyond it 503',
  ),
  INTAKE_STREAM_IDLE_TIMEOUT_MS: integer(100, 86_400_000, 60_000).describe(
    'a stream on which nothing comes for this long is ended',
  ),
  INTAKE_REGION: z
    .enum(['us', 'eu'])
    .default('us')
    .describe('what clients that ask for their region hear'),
  INTAKE_KEYS_REFRESH_MS: integer(10, 60_000, 1_000).describe(
    'how soon a key made or revoked is in force',
  ),
});
