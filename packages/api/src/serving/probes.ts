/** Probes of the platform that runs us: alive, ready, and the numbers. No credentials, no tenant's data. */
import { z } from 'zod';
import type { ApiServer } from '../http/api-server.ts';

export interface Readiness {
  readonly isReady: boolean;
  /** Name of a check → its result. */
  readonly checks: Readonly<Record<string, string>>;
}

export interface ProbeEffects {
  readonly checkReadiness: () => Promise<Readiness>;
  /** False: `/readyz` only answers whether it is ready, and `/metrics` is not there (`API_ADMIN_PORT`). */
  readonly showsProbeDetails: boolean;
  readonly renderMetrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
}

const readinessBody = z.object({
  ready: z.boolean(),
  checks: z.record(z.string(), z.string()).optional(),
});

/** `/livez` answers as long as the process does; `/readyz` checks its dependencies. */
export function registerProbes(
  app: ApiServer,
  { renderMetrics, checkReadiness, showsProbeDetails }: ProbeEffects,
): void {
  app.get('/livez', { schema: { hide: true } }, (_request, reply) =>
    reply.header('content-type', 'text/plain; charset=utf-8').send('alive\n'),
  );

  app.get(
    '/readyz',
    { schema: { hide: true, response: { 200: readinessBody, 503: readinessBody } } },
    async (_request, reply) => {
      const { isReady, checks } = await checkReadiness();
      return reply
        .code(isReady ? 200 : 503)
        .send({ ready: isReady, ...(showsProbeDetails && { checks }) });
    },
  );

  if (!showsProbeDetails) return;
  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) => {
    const { contentType, body } = await renderMetrics();
    return reply.header('content-type', contentType).send(body);
  });
}
