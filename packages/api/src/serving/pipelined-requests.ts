/**
 * Bounds the requests of a connection whose answers are unread. Their answers end with the connection.
 *
 * Node reads a connection in pieces of 64 KB. A piece may have a thousand requests, and Node begins all of them. Their
 * answers wait behind the first one. When the connection closes, Node emits `close` for the first answer alone, so the state
 * of the others stayed for as long as the process: 8 KB a request, and the place of a live tail.
 */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { onRequestHookHandler } from 'fastify';

/** Clients that pipeline send some ten requests at a time; a browser sends one. */
const PIPELINED_COUNT_MAX = 32;

/** Cuts a connection with more requests, and emits `close` for each answer that waits when its connection closes. */
export function boundPipelines(server: Server): void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  server.prependListener('request', ({ socket }, response) => {
    const answers = waiting.get(socket) ?? watch(socket);
    answers.add(response);
    response.once('close', () => answers.delete(response));
    if (answers.size > PIPELINED_COUNT_MAX) socket.destroy();
  });

  function watch(socket: Socket): Set<ServerResponse> {
    const answers = new Set<ServerResponse>();
    waiting.set(socket, answers);
    socket.once('close', () => {
      for (const answer of answers) if (answer.socket === null) endUnsent(answer);
    });
    return answers;
  }
}

/** Hook for every route, the first one: the requests behind the last one of a cut connection are not begun. */
export const leaveCutRequests: onRequestHookHandler = (request, reply, done) => {
  if (request.raw.socket.destroyed) reply.hijack();
  else done();
};

function endUnsent(answer: ServerResponse): void {
  if (answer.writableFinished) return;
  answer.destroy();
  answer.emit('close');
}
