/** The kind of a call, for callers of all kinds. */
import type { FastifyRequest } from 'fastify';

/** True for a call without a change: a GET or a HEAD, or a search whose filter is a body. */
export const isRead = ({ method, routeOptions }: FastifyRequest): boolean =>
  method === 'GET' || method === 'HEAD' || routeOptions.config.capability === 'workspace.read';
