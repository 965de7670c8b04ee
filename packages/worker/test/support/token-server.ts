/**
 * A token server and a receiver that takes its tokens, for tests.
 *
 * OAuth2 client credentials, over real sockets on this machine.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TokenRequestSeen {
  readonly authorization: string | undefined;
  readonly fields: Readonly<Record<string, string>>;
}

export interface TokenServer {
  readonly url: string;
  readonly requests: TokenRequestSeen[];
  /** Of the tokens issued from now on: `expires_in`. */
  lifetimeSeconds: number | undefined;
  /** Requests that are being answered, and the most there were at a time. */
  readonly atOnceMax: number;
  /** Answer to the next requests in place of a token. */
  refusal: { readonly status: number; readonly body: string } | undefined;
  /** Waited for before each answer. */
  hold: () => Promise<void>;
  close(): void;
}

/** Issues `token 1`, `token 2`, … with underscores. */
export async function startTokenServer(): Promise<TokenServer> {
  let atOnce = 0;
  let atOnceMax = 0;
  const server = createServer((request, response) => {
    void (async () => {
      atOnceMax = Math.max(atOnceMax, ++atOnce);
      const fields = Object.fromEntries(new URLSearchParams(await bodyOf(request)));
      world.requests.push({ authorization: request.headers.authorization, fields });
      const number = world.requests.length;
      await world.hold();
      atOnce--;
      const { refusal, lifetimeSeconds } = world;
      if (refusal) response.writeHead(refusal.status).end(refusal.body);
      else
        response.writeHead(200, { 'content-type': 'application/json' }).end(
          JSON.stringify({
            access_token: `token_${number}`,
            token_type: 'Bearer',
            expires_in: lifetimeSeconds,
          }),
        );
    })();
  });
  const world: TokenServer = {
    url: `http://127.0.0.1:${await portOf(server)}/token`,
    requests: [],
    lifetimeSeconds: 3_600,
    get atOnceMax() {
      return atOnceMax;
    },
    refusal: undefined,
    hold: () => Promise.resolve(),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return world;
}

export interface TokenReceiver {
  readonly url: string;
  /** Of each request: `<event id> <authorization> <status>`. */
  readonly arrivals: string[];
  /** 401 for all others. */
  takes: (token: string) => boolean;
  close(): void;
}

export async function startTokenReceiver(): Promise<TokenReceiver> {
  const server = createServer((request, response) => {
    void (async () => {
      const { event_id: eventId } = JSON.parse(await bodyOf(request)) as { event_id: string };
      const { authorization = 'none' } = request.headers;
      const status = world.takes(authorization.replace('Bearer ', '')) ? 200 : 401;
      world.arrivals.push(`${eventId} ${authorization} ${status}`);
      response.writeHead(status).end();
    })();
  });
  const world: TokenReceiver = {
    url: `http://127.0.0.1:${await portOf(server)}/hook`,
    arrivals: [],
    takes: () => true,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return world;
}

async function portOf(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const part of request.setEncoding('utf8')) body += part as string;
  return body;
}
