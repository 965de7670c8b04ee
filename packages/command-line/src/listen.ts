/** `sluice listen`: a receiver on this machine that checks signatures, prints deliveries and answers as told. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppError } from '@sluice/domain/values/errors';
import { printable, printableJson } from '@sluice/domain/values/printable';
import { whyRefused } from '@sluice/verify';
import { colored, type Terminal } from './terminal.ts';

export interface ListenOptions {
  readonly port: number;
  /** Absent: signatures are not checked, and it says so. */
  readonly secret?: string;
  /** What every genuine delivery is answered with. */
  readonly status: number;
}

export interface Listener {
  readonly url: string;
  close(): Promise<void>;
}

/** The service sends far less. */
const BODY_SIZE_BYTES_MAX = 1_048_576;

/** @throws AppError COMMAND_FAILED where it cannot listen. */
export async function listen(terminal: Terminal, options: ListenOptions): Promise<Listener> {
  const server = createServer((request, response) => {
    // Somebody waits until it listens, or looks whether it does. Deliveries are POST.
    if (request.method === 'GET') {
      response.end('sluice listens here\n');
      return;
    }
    readBody(request).then(
      (body) => {
        const refusal =
          options.secret === undefined
            ? undefined
            : whyRefused(request.headers, body, options.secret);
        const status = refusal === undefined ? options.status : 401;
        response.writeHead(status).end();
        write(
          terminal,
          body,
          options.secret === undefined ? 'not checked' : (refusal ?? 'genuine'),
          status,
        );
      },
      () => response.writeHead(413).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new AppError(
          'COMMAND_FAILED',
          `it cannot listen on port ${options.port} (${cause.message}); choose another one: --port 0 takes any`,
          { cause },
        ),
      ),
    );
    server.listen(options.port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => closeServer(server),
  };
}

function write(terminal: Terminal, body: string, signature: string, status: number): void {
  if (terminal.isJson) {
    terminal.line(printableJson({ signature, status, body: parsed(body) }));
    return;
  }
  const color = signature === 'genuine' ? 'green' : signature === 'not checked' ? 'yellow' : 'red';
  terminal.line(
    `${colored(terminal, 'gray', new Date().toISOString().slice(11))} ${status} ${colored(terminal, color, signature)} ${printable(body)}`,
  );
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    sizeBytes += part.length;
    if (sizeBytes > BODY_SIZE_BYTES_MAX) throw new Error('too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
