/** What kind of call a request is, whoever makes it. */
import type { FastifyRequest } from 'fastify';

/** Whether the call changes nothing: a GET or a HEAD, or a search whose filter is a body. */
export const isRead = ({ method, routeOptions }: FastifyRequest): boolean =>
  method === 'GET' || method === 'HEAD' || routeOptions.config.capability === 'workspace.read';
