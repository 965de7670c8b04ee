/** `/livez`, `/readyz` and `/metrics` of a process that otherwise serves nobody. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics } from '@sluice/platform/telemetry/metrics';
import { portTaken } from '@sluice/platform/process/port-taken';

export interface Readiness {
  readonly isReady: boolean;
  /** Shown as JSON. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface HealthServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly metrics: Metrics;
  readonly readiness: () => Promise<Readiness>;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** @throws AppError PORT_TAKEN */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const send = (status: number, contentType: string, body: string) => {
      response
        .writeHead(status, { 'Content-Type': contentType, 'Cache-Control': 'no-store' })
        .end(body);
    };
    const answer = async (): Promise<void> => {
      switch (request.url) {
        case '/livez':
          return send(200, 'text/plain', 'alive\n');
        case '/readyz': {
          const { isReady, details } = await options.readiness();
          return send(
            isReady ? 200 : 503,
            'application/json',
            `${JSON.stringify({ ready: isReady, ...details })}\n`,
          );
        }
        case '/metrics':
          return send(200, options.metrics.contentType, await options.metrics.render());
        default:
          return send(404, 'text/plain', 'there is /livez, /readyz and /metrics\n');
      }
    };
    answer().catch(() => send(500, 'text/plain', 'could not be read\n'));
  });
  await listen(server, options.host, options.port);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(portTaken({ owner: 'WORKER', host, port }, error)));
    server.listen(port, host, resolve);
  });
}
