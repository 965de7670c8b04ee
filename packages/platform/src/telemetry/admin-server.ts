/**
 * `/livez`, `/readyz` and `/metrics` on a port of their own. It serves a process without another server, and one whose
 * port is public (`*_ADMIN_PORT`).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Lifecycle } from '../process/lifecycle.ts';
import type { Logger } from '../process/logger.ts';
import { portTaken } from '../process/port-taken.ts';
import type { Metrics } from './metrics.ts';

export interface Readiness {
  readonly isReady: boolean;
  /** Shown as JSON. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AdminServerOptions {
  /** Prefix of its settings, as in `portTaken`. */
  readonly owner: string;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly metrics: Pick<Metrics, 'render' | 'contentType'>;
  /** If false, `/readyz` answers only whether the process is ready, and `/metrics` is not there. */
  readonly showsDetails: boolean;
  readonly readiness: () => Promise<Readiness>;
}

export interface AdminServer {
  readonly port: number;
  close(): Promise<void>;
}

const TEXT_TYPE = 'text/plain; charset=utf-8';
/** The answer of Node has no type. */
const BROKEN_HEAD_ANSWER = [
  'HTTP/1.1 400 Bad Request',
  `Content-Type: ${TEXT_TYPE}`,
  'X-Content-Type-Options: nosniff',
  'Content-Length: 0',
  'Connection: close',
  '\r\n',
].join('\r\n');

/** @throws AppError PORT_TAKEN */
export async function startAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const send = (status: number, contentType: string, body: string) => {
      response
        .writeHead(status, {
          'Content-Type': contentType,
          'X-Content-Type-Options': 'nosniff',
          'Cache-Control': 'no-store',
        })
        .end(body);
    };
    const answer = async (): Promise<void> => {
      switch (request.url) {
        case '/livez':
          return send(200, TEXT_TYPE, 'alive\n');
        case '/readyz': {
          const { isReady, details } = await options.readiness();
          return send(
            isReady ? 200 : 503,
            'application/json; charset=utf-8',
            `${JSON.stringify({ ready: isReady, ...(options.showsDetails && details) })}\n`,
          );
        }
        case '/metrics':
          if (!options.showsDetails)
            return send(404, TEXT_TYPE, `set ${options.owner}_ADMIN_PORT: metrics are there\n`);
          return send(200, options.metrics.contentType, await options.metrics.render());
        default:
          return send(404, TEXT_TYPE, 'there is /livez, /readyz and /metrics\n');
      }
    };
    answer().catch(() => send(500, TEXT_TYPE, 'could not be read\n'));
  };
  // The answers of Node to such requests have no type.
  const server = createServer({ requireHostHeader: false }, serve);
  server.on('checkExpectation', serve);
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end(BROKEN_HEAD_ANSWER);
    else socket.destroy();
  });
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(
  server: Server,
  { owner, host, port }: Pick<AdminServerOptions, 'owner' | 'host' | 'port'>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(portTaken({ owner, host, port }, error)));
    server.listen(port, host, resolve);
  });
}

/** Place of the numbers and the details of a process. */
export type AdminPlace =
  | { readonly place: 'service' }
  | { readonly place: 'off' }
  | { readonly place: 'port'; readonly port: number };

/** In development on the port of the service; in production nowhere, until a port is set. */
export function adminPlaceOf(
  mode: string,
  servicePort: number,
  adminPort: number | undefined,
): AdminPlace {
  if (adminPort === undefined) return { place: mode === 'production' ? 'off' : 'service' };
  return adminPort !== 0 && adminPort === servicePort
    ? { place: 'service' }
    : { place: 'port', port: adminPort };
}

/** Starts the server of an admin port, if the process has one. It stops with `lifecycle`. @throws AppError PORT_TAKEN */
export async function serveAdmin(
  admin: AdminPlace,
  options: Omit<AdminServerOptions, 'port' | 'showsDetails'> & {
    readonly lifecycle: Pick<Lifecycle, 'defer'>;
    readonly logger: Pick<Logger, 'info'>;
  },
): Promise<void> {
  if (admin.place !== 'port') return;
  const { lifecycle, logger } = options;
  const server = await startAdminServer({ ...options, port: admin.port, showsDetails: true });
  lifecycle.defer('admin server', () => server.close());
  logger.info({ adminPort: server.port }, 'metrics and details of /readyz are served');
}
