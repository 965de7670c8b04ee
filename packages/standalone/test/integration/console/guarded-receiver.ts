/**
 * A receiver over TLS that asks for a client certificate.
 *
 * It also issues the access tokens that it is sent.
 */
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { LOCAL_CERTIFICATE, LOCAL_CERTIFICATE_KEY } from '../local-certificate.ts';

interface Delivery {
  /** Common name of the client's certificate. */
  readonly client: string | undefined;
  readonly token: string | undefined;
}

/**
 * `POST /token` gives the client `shop` the token `token-of-shop`; every other path is an endpoint, which answers 200.
 *
 * @param clientAuthority - PEM. A client without a certificate of it gets no connection.
 */
export async function startGuardedReceiver(clientAuthority: string) {
  const deliveries: Delivery[] = [];
  const server = createServer(
    {
      cert: LOCAL_CERTIFICATE,
      key: LOCAL_CERTIFICATE_KEY,
      ca: clientAuthority,
      requestCert: true,
      rejectUnauthorized: true,
    },
    (request, response) => {
      response.setHeader('content-type', 'application/json');
      if (request.url === '/token')
        response.end(JSON.stringify({ ...tokenFor(request), expires_in: 3_600 }));
      else {
        const { CN: name } = (request.socket as TLSSocket).getPeerCertificate().subject;
        deliveries.push({
          client: Array.isArray(name) ? name.join() : name,
          token: request.headers.authorization,
        });
        response.end('{}');
      }
      request.resume();
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    deliveries,
    url: `https://127.0.0.1:${port}`,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

function tokenFor({ headers }: IncomingMessage): object {
  const [, basic = ''] = (headers.authorization ?? '').split(' ');
  const [clientId = ''] = Buffer.from(basic, 'base64').toString().split(':');
  return { access_token: `token-of-${clientId}`, token_type: 'Bearer' };
}
