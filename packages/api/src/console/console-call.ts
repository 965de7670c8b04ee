/** Common parts of the calls of the console's page. */
import type { FastifyRequest } from 'fastify';
import { sourceOf } from '../serving/call-source.ts';

/** For the schema of a route of the page, for which the API has no reference. */
export const HIDDEN = { hide: true } as const;

/** By which call something is done, for the audit log. */
export const callOf = (request: FastifyRequest) => ({
  ...sourceOf(request),
  requestId: request.id,
});
