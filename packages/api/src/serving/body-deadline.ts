/**
 * Time limit of a body: seconds, but hours for a file. Node has one bound for all routes, so that is as long as a file
 * may take, and the shorter one is enforced here.
 *
 * Runs first in the app, before credentials are looked at. The answer is the one of `error-handling.ts` to a request
 * that Node gave up.
 */
import type { onRequestHookHandler } from 'fastify';
import type { AnsweredBodies } from './answered-bodies.ts';
import { handleClientError } from '../http/error-handling.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its body is a file, which takes as long as it takes. */
    takesFile?: boolean;
  }
}

/** Hook for every route. */
export function boundBodyTime(
  timeoutMs: number,
  newId: () => string,
  answered: AnsweredBodies,
): onRequestHookHandler {
  const giveUp = handleClientError(newId);
  return (request, reply, done) => {
    const { raw, headers } = request;
    const hasBody =
      headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
    if (hasBody) reply.raw.once('finish', () => isIncomplete(raw) && answered.add(raw));
    if (hasBody && request.routeOptions.config.takesFile !== true) {
      const timer = setTimeout(() => {
        if (raw.complete) return;
        const error = new Error('the body takes too long');
        giveUp(Object.assign(error, { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), raw.socket);
      }, timeoutMs);
      const clear = (): void => clearTimeout(timer);
      raw.once('end', clear).once('close', clear);
      // If it was answered before the body was read, the deadline stays while more of the body is to come.
      reply.raw.once('close', () => !isIncomplete(raw) && clear());
    }
    done();
  };
}

/** False also if it is not known, as for requests that came over no socket. */
const isIncomplete = ({ complete }: { readonly complete?: boolean }): boolean =>
  complete !== undefined && !complete;
