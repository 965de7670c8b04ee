/** Address and program of a call, for the audit log. Used by the guards and by the calls of the console's page. */
import type { FastifyRequest } from 'fastify';

export interface CallSource {
  readonly ipAddr: string | null;
  readonly userAgent: string | null;
}

export const sourceOf = (request: FastifyRequest): CallSource => ({
  ipAddr: request.ip,
  userAgent: request.headers['user-agent'] ?? null,
});
