/**
 * Ends connections whose other side is silent for too long: no byte comes or goes. A sender that stopped in the middle of
 * a file had its connection for six hours, and a reader that did not take its answer had megabytes of memory for as long
 * as it liked. A call that waits for us goes on.
 *
 * The end of a silent request has the answer of `error-handling.ts`, unless an answer was sent over the connection before.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { handleClientError } from '../http/error-handling.ts';

/** The server reports a connection that is silent for as long as its `timeout`. */
export function endSilentConnections(server: Server, newId: () => string): void {
  const giveUp = handleClientError(newId);
  const calls = new WeakMap<Socket, IncomingMessage>();
  server.prependListener('request', (request, response) => {
    const { socket } = request;
    calls.set(socket, request);
    response.once('close', () => calls.get(socket) === request && calls.delete(socket));
  });
  server.on('timeout', (socket) => {
    const call = calls.get(socket);
    // A file is paused while its bytes are stored.
    const isOurTurn = call !== undefined && (call.complete || call.isPaused());
    if (isOurTurn && socket.writableLength === 0) {
      socket.setTimeout(server.timeout);
      return;
    }
    const error = new Error('no byte came or went for too long');
    giveUp(Object.assign(error, { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
  });
}
