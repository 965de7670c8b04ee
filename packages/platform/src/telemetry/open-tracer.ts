/** Opens the tracer of a process. The only file that loads `open-telemetry.ts`, by `import()`, if traces are on. */
import type { Logger } from '../process/logger.ts';
import type { Tracer, TracingSettings } from './tracing.ts';

/** Undefined if traces are off: then the libraries of OpenTelemetry are not loaded. */
export async function openTracer(
  settings: TracingSettings,
  serviceName: string,
  logger: Pick<Logger, 'warn'>,
): Promise<Tracer | undefined> {
  const endpoint = settings.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return undefined;
  const { startTracer } = await import('./open-telemetry.ts');
  return startTracer({
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: settings.OTEL_EXPORTER_OTLP_HEADERS,
    serviceName: settings.OTEL_SERVICE_NAME ?? serviceName,
    sampler: settings.OTEL_TRACES_SAMPLER,
    ratio: settings.OTEL_TRACES_SAMPLER_ARG,
    logger,
  });
}
