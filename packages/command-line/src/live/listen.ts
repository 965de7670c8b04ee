/**
 * `sluice listen`: a receiver on this machine that checks signatures and prints deliveries. It answers with a fixed
 * status, or with the status of the program to which it passes them on. Its own webhook, if it has one, is made by
 * `temporary-webhook.ts`.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppError } from '@sluice/domain/values/errors';
import { printable } from '@sluice/domain/values/printable';
import { whyRefused } from '@sluice/verify';
import { documentWriter } from '../output/result.ts';
import { colored, type Terminal } from '../output/terminal.ts';
import { forward } from './forward.ts';

export interface ListenOptions {
  readonly port: number;
  /**
   * Undefined: signatures are not checked, and the output shows that. Deliveries that come before it is known wait for
   * it.
   */
  readonly secret: Promise<string | undefined>;
  /** Answer to every genuine delivery, if it is not passed on. */
  readonly status: number;
  /** An http or https URL; genuine deliveries are passed on to it, and its answer's status is ours. */
  readonly forwardTo?: string | undefined;
  /** Bodies as indented JSON. */
  readonly isPretty?: boolean | undefined;
}

export interface Listener {
  readonly url: string;
  close(): Promise<void>;
}

/** Contents of a line about one delivery. */
interface Receipt {
  readonly body: string;
  /** `genuine`, `not checked`, or the reason of the refusal. */
  readonly signature: string;
  readonly status: number;
  /** Of the program that it was passed on to; null if it was not. */
  readonly durationMs: number | null;
}

/** The service sends far less. */
const BODY_SIZE_BYTES_MAX = 1_048_576;
const COLUMNS = ['at', 'type', 'status', 'duration_ms', 'signature', 'body'];

/** @throws AppError COMMAND_FAILED if it cannot listen. */
export async function listen(terminal: Terminal, options: ListenOptions): Promise<Listener> {
  const write = writerOf(terminal, options.isPretty === true);
  const server = createServer((request, response) => {
    // Somebody waits until it listens, or looks whether it does. Deliveries are POST.
    if (request.method === 'GET') {
      response.end('sluice listens here\n');
      return;
    }
    readBody(request)
      .then((body) => answer(request, body, options))
      .then(
        (receipt) => {
          response.writeHead(receipt.status).end();
          write(receipt);
        },
        () => response.writeHead(413).end(),
      );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new AppError(
          'COMMAND_FAILED',
          `it cannot listen on port ${options.port} (${cause.message}); choose another port, or --port 0 for any free port`,
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

async function answer(
  request: IncomingMessage,
  body: string,
  options: ListenOptions,
): Promise<Receipt> {
  const secret = await options.secret;
  const refusal = secret === undefined ? undefined : whyRefused(request.headers, body, secret);
  if (refusal !== undefined) return { body, signature: refusal, status: 401, durationMs: null };
  const signature = secret === undefined ? 'not checked' : 'genuine';
  const { forwardTo, status } = options;
  if (forwardTo === undefined) return { body, signature, status, durationMs: null };
  return { body, signature, ...(await forward(forwardTo, request.headers, body)) };
}

function writerOf(terminal: Terminal, isPretty: boolean): (receipt: Receipt) => void {
  const writeDocument = documentWriter(terminal, COLUMNS);
  return ({ body, signature, status, durationMs }) => {
    const parsedBody = parsed(body);
    const at = new Date(terminal.now()).toISOString();
    const type = typeOf(parsedBody);
    if (writeDocument) {
      writeDocument({ at, type, status, duration_ms: durationMs, signature, body: parsedBody });
      return;
    }
    const color =
      signature === 'genuine' ? 'green' : signature === 'not checked' ? 'yellow' : 'red';
    terminal.line(
      [
        colored(terminal, 'gray', at.slice(11)),
        colored(terminal, status < 300 ? 'green' : 'red', String(status)),
        colored(terminal, color, signature),
        ...(durationMs === null ? [] : [printable(type ?? '-'), `${durationMs} ms`]),
        ...(isPretty ? [] : [printable(body)]),
      ].join(' '),
    );
    if (!isPretty) return;
    const text = typeof parsedBody === 'string' ? parsedBody : JSON.stringify(parsedBody, null, 2);
    for (const line of text.split('\n')) terminal.line(`  ${printable(line)}`);
  };
}

/** As the body names it: `email_sent`, `event`. */
function typeOf(body: unknown): string | null {
  const { object_type: object, metric } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof object !== 'string') return null;
  return typeof metric === 'string' ? `${object} ${metric}` : object;
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
