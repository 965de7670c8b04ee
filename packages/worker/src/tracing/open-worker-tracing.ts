/** The traces of a worker, if they are on; waiting spans are sent when the process stops. */
import type { Database } from '@sluice/database/connection/connection';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { openTracer } from '@sluice/platform/telemetry/open-tracer';
import { createWorkerTracing, type WorkerTracing } from './trace-deliveries.ts';

interface OpenTracingDeps {
  readonly database: Database;
  readonly logger: Logger;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
}

export async function openWorkerTracing(
  settings: Parameters<typeof openTracer>[0],
  { database, logger, lifecycle }: OpenTracingDeps,
): Promise<WorkerTracing> {
  const tracer = await openTracer(settings, 'sluice-worker', logger);
  if (tracer) lifecycle.defer('tracer', () => tracer.close());
  return createWorkerTracing({ tracer, database, logger });
}
