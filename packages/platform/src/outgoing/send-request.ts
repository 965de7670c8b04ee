/**
 * One request to a customer's address over a vetted connection (`vetted-connection.ts`). Redirects are answers like any
 * other. Node's own client: for a request now and then, whose answer is wanted piece by piece.
 */
import { request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { VettedConnector } from './vetted-connection.ts';

export interface OutgoingRequest {
  /** GET, if absent. */
  readonly method?: string;
  /** Beside `host`, and `authorization` if the URL has credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent for a request without a body. */
  readonly body?: string;
  /** Aborted: the request ends at once, also while it is being connected. */
  readonly ending: AbortSignal;
}

/**
 * @returns the answer, with its body to be read. @throws the error that cut the connection, or the reason of `ending`.
 */
export async function sendRequest(
  connector: VettedConnector,
  url: URL,
  given: OutgoingRequest,
): Promise<IncomingMessage> {
  return sendOver(await open(connector, url, given.ending), url, given);
}

/** Not Node's part: its request cannot be ended as long as it has no socket, and would wait for ever. */
function open(connector: VettedConnector, url: URL, ending: AbortSignal): Promise<Socket> {
  const { protocol, hostname, port } = url;
  const target = { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port };
  return new Promise((resolve, reject) => {
    ending.throwIfAborted();
    const opening = connector.openSocket(target, (error, socket) => {
      ending.removeEventListener('abort', giveUp);
      if (socket) resolve(socket);
      else reject(error ?? new Error('not connected'));
    });
    const giveUp = (): void => {
      opening?.destroy();
      reject(ending.reason as Error);
    };
    ending.addEventListener('abort', giveUp, { once: true });
  });
}

function sendOver(
  socket: Socket,
  url: URL,
  { method = 'GET', headers = {}, body, ending }: OutgoingRequest,
): Promise<IncomingMessage> {
  const { pathname, search, host, username, password } = url;
  return new Promise((resolve, reject) => {
    request({
      // TLS is the connector's work.
      protocol: 'http:',
      method,
      signal: ending,
      path: pathname + search,
      headers: {
        ...headers,
        host,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
      ...(username || password ? { auth: `${decoded(username)}:${decoded(password)}` } : {}),
      // With it there is no agent, which would keep the connection.
      createConnection: () => socket,
    })
      // One that came through a proxy was paused.
      .once('socket', () => void socket.resume())
      .once('response', resolve)
      .on('error', reject)
      .end(body);
  });
}

/** Percent-decoded; unchanged if the encoding is not valid. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
