/**
 * Answers methods that a path does not take: 405 with `Allow`, and to OPTIONS 204 with `Allow`. No CORS headers: a
 * bearer key does not belong in a browser.
 *
 * Fastify knows routes by method first, so the paths are noted as they are declared and the missing methods are
 * declared last.
 */
import type { HTTPMethods } from 'fastify';
import { sendProblem } from '../http/error-handling.ts';
import type { ApiServer } from '../http/api-server.ts';

/** Call before the first route; call the returned function after the last. */
export function watchMethods(app: ApiServer): () => void {
  const methodsByPath = new Map<string, Set<string>>();
  let isWatching = true;
  app.addHook('onRoute', ({ url, method }) => {
    if (!isWatching) return;
    const methods = methodsByPath.get(url) ?? new Set();
    for (const each of [method].flat()) methods.add(each);
    methodsByPath.set(url, methods);
  });

  return () => {
    isWatching = false;
    for (const [url, methods] of methodsByPath) {
      const allow = [...methods, 'OPTIONS'].toSorted().join(', ');
      const missing = app.supportedMethods.filter(
        (method) => !methods.has(method),
      ) as HTTPMethods[];
      app.route({
        url,
        method: missing,
        schema: { hide: true },
        // Answered before the body is read: it could not change the answer.
        onRequest: async (request, reply) => {
          void reply.header('allow', allow);
          if (request.method === 'OPTIONS') return reply.code(204).send();
          return sendProblem(request, reply, {
            code: 'method_not_allowed',
            message: `Method Not Allowed: this path takes ${allow}`,
          });
        },
        handler: (_request, reply) => reply,
      });
    }
  };
}
