/** The settings of intake. */
import {
  addingSettings,
  adminPort,
  demoHosts,
  flag,
  listenHost,
  integer,
  platformSettings,
  serviceDatabaseUrl,
  listenPort,
} from '@sluice/platform/settings/config';
import { tracingSettings } from '@sluice/platform/telemetry/tracing';
import {
  PIPELINES_BATCH_SIZE_BYTES_MAX,
  PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import { z } from 'zod';

const MEBIBYTE = 1_048_576;
/** A larger body is not read to its end. */
const DISCARDED_SIZE_BYTES_MAX = 16 * MEBIBYTE;

export const intakeSettings = platformSettings.extend({
  INTAKE_DATABASE_URL: serviceDatabaseUrl('sluice_intake'),
  ...tracingSettings.shape,
  INTAKE_HOST: listenHost(),
  INTAKE_PORT: listenPort(8080),
  INTAKE_ADMIN_PORT: adminPort(),
  DEMO_HOSTS: demoHosts(),
  INTAKE_IS_HTTPS: flag(false).describe(
    'whether browsers reach intake by HTTPS, through a proxy that terminates TLS',
  ),
  INTAKE_PENDING_SIZE_BYTES_MAX: integer(MEBIBYTE, 4_096 * MEBIBYTE, 64 * MEBIBYTE).describe(
    'maximum request bytes that wait for the broker, and maximum bytes of requests still arriving; beyond either, calls get 503. Half of it is the maximum of large answers that callers have not read; beyond it, answers have no details',
  ),
  INTAKE_BATCH_SIZE_BYTES_MAX: integer(
    PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX,
    DISCARDED_SIZE_BYTES_MAX,
    PIPELINES_BATCH_SIZE_BYTES_MAX,
  ).describe(
    'maximum size of a Pipelines batch, inflated; strict mode keeps 1 MB. At most INTAKE_PENDING_SIZE_BYTES_MAX; a proxy in front must accept as much',
  ),
  INTAKE_COMMIT_DEADLINE_MS: integer(100, 60_000, 2_000).describe(
    'maximum time that a call waits for the broker; afterwards intake writes it to the local disk buffer',
  ),
  REDIS_REPLICAS_MIN: z.coerce
    .number()
    .int()
    .min(0)
    .max(16)
    .optional()
    .describe(
      'number of replicas that must confirm a flush before intake acknowledges it; with Sentinels all replicas must for REDIS_REPLICA_GRACE_MS, and then this number. Absent: 1 with Sentinels or a Cluster, else 0',
    ),
  REDIS_REPLICA_GRACE_MS: integer(0, 3_600_000, 15_000).describe(
    'time with too few replicas after which a master of a Redis Cluster suffices, or with Sentinels the replicas that are left; must be longer than a failover',
  ),
  ...addingSettings,
  INTAKE_ALLOW_UNDURABLE_BROKER: flag(false).describe(
    'whether intake in production adds calls to a broker that may lose confirmed calls, such as a Redis without `appendonly yes` and `appendfsync always`. A crash of that broker then loses acknowledged calls',
  ),
  INTAKE_SPILL_DIRECTORY: z
    .string()
    .default('.sluice/spill')
    .describe(
      'directory of the local disk buffer, to which intake writes while the broker is down or full; must be on a disk that outlives the process',
    ),
  INTAKE_SPILL_SIZE_BYTES_MAX: integer(0, 1_024 * 1_024 * MEBIBYTE, 1_024 * MEBIBYTE).describe(
    'maximum size of the local disk buffer; beyond it, calls get 503',
  ),
  INTAKE_CONNECTION_COUNT_MAX: integer(1, 10_000_000, 50_000).describe(
    'maximum open connections of one process; further ones are cut. On Linux at most three quarters of the open files that the process may have. A proxy or a firewall bounds the connections of one address',
  ),
  INTAKE_RATE_LIMIT_PER_SECOND: integer(0, 1_000_000, 0).describe(
    'maximum calls per second of one workspace in one process; further calls get 429. 0: no limit',
  ),
  INTAKE_PUBLISH_RATE_LIMIT_PER_SECOND: integer(0, 1_000_000, 0).describe(
    'maximum calls to /v1/publish per second of one workspace in one process; further calls get 429. 0: no limit',
  ),
  INTAKE_STREAM_COUNT_MAX: integer(0, 10_000, 100).describe(
    'maximum concurrent streams (POST /v1/stream), about 2 MB of memory each; further streams get 503',
  ),
  INTAKE_STREAM_IDLE_TIMEOUT_MS: integer(100, 86_400_000, 60_000).describe(
    'idle time after which intake ends a stream',
  ),
  INTAKE_REGION: z
    .enum(['us', 'eu'])
    .default('us')
    .describe('region that intake returns to clients that ask for theirs'),
  INTAKE_KEYS_REFRESH_MS: integer(10, 60_000, 1_000).describe(
    'interval at which intake reloads API keys',
  ),
});
