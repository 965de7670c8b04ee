/**
 * Sends one POST and returns its outcome; it never throws and never retries, but for one case.
 *
 * - One deadline an attempt, from before the name look-up to the last byte of the body.
 * - Only vetted addresses (`platform/src/outgoing/vetted-connection.ts`); redirects are answers like any other.
 * - HTTP/1.1, one request a connection at a time; connections are kept (`connection-pool.ts`), by origin and by client
 *   certificate and authority (`platform/src/outgoing/tls-identity.ts`).
 * - Of a body it reads the first 16 KB, then cuts the connection, so its memory is bounded. It decompresses no body.
 * - If a **reused** connection breaks before any byte of an answer, it sends once more on a fresh one
 *   (`createHttpClient`).
 *
 * Why no library: `docs/design/decisions/0007-http-client.md`. This client takes about half of undici's CPU. Before:
 * `lane-attempts.ts` (step 11). After: `http-attempt.ts`, and the answer goes back.
 */
import type { AddressRange } from '@sluice/domain/delivery/network-address';
import { ConnectionPool } from './connection-pool.ts';
import { Attempt } from './http-attempt.ts';
import { Connection, type ConnectRoute } from './http-connection.ts';
import type { HttpOutcome, HttpPost } from './http-outcome.ts';
import type { Proxy } from '@sluice/platform/outgoing/proxy-tunnel';
import {
  createVettedConnector,
  type ConnectTarget,
  type ResolveName,
} from '@sluice/platform/outgoing/vetted-connection';

export interface HttpClientOptions {
  readonly timeoutMs: number;
  readonly allowPrivateAddresses: boolean;
  /** Networks that may always be reached, except addresses for metadata and the like. */
  readonly allowedNetworks?: readonly AddressRange[];
  /** Connections go through it. */
  readonly proxy?: Proxy | undefined;
  /** Idle connections without TLS kept, over all endpoints; a quarter as many with TLS. At most 8,192. */
  readonly idleConnectionsMax?: number;
  /** For tests; the system's look-up by default. */
  readonly resolve?: ResolveName;
}

export interface HttpClient {
  readonly post: (request: HttpPost) => Promise<HttpOutcome>;
  /** Connections that are open and unused. */
  idleConnections(): number;
  /** Cuts every connection. Call it when no attempt is under way: it would count as a failure. */
  close(): void;
}

/**
 * An idle connection holds 8 KB, or 30 KB with TLS. With 2,048 of them, 10,000 endpoints that get a delivery each few
 * seconds were connected to anew each time.
 */
const IDLE_CONNECTIONS_MAX = 8_192;
/** Of an attempt's time: a proxy that is silent for so long has failed, and not the endpoint. */
const PROXY_ANSWER_SHARE = 0.75;
/** Endpoints whose parsed URL is remembered; beyond it the memory begins anew. */
const TARGETS_MAX = 16_384;

/**
 * The client, with connections of its own.
 *
 * The other side may close an idle connection at the moment it is used again. If a reused connection breaks before any byte
 * of an answer, the request is sent once more, on a fresh connection, within the same deadline. Otherwise each such moment
 * would cost a healthy endpoint an hour.
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const connector = createVettedConnector(
    {
      allowPrivate: options.allowPrivateAddresses,
      ...(options.allowedNetworks && { allowedNetworks: options.allowedNetworks }),
    },
    options.resolve,
    options.proxy,
    PROXY_ANSWER_SHARE * options.timeoutMs,
  );
  const connections = new ConnectionPool<ConnectRoute, Connection>(
    (route, onClosed) => new Connection(route, connector, onClosed),
    Math.min(options.idleConnectionsMax ?? Infinity, IDLE_CONNECTIONS_MAX),
  );
  const targets = new Map<string, Target | undefined>();
  const targetOf = (endpoint: string): Target | undefined => {
    let target = targets.get(endpoint);
    if (target || targets.has(endpoint)) return target;
    if (targets.size === TARGETS_MAX) targets.clear();
    target = parseTarget(endpoint);
    targets.set(endpoint, target);
    return target;
  };
  return {
    post(request) {
      const target = targetOf(request.endpoint);
      if (!target)
        return Promise.resolve(
          unsendable('unusable_endpoint', 'not an http or https URL; correct it'),
        );
      const { body } = request;
      const sizeBytes = Buffer.byteLength(body);
      const head = headOf(target, request.headers, sizeBytes);
      if (head === undefined)
        return Promise.resolve(
          unsendable('other', 'a header of the webhook cannot be sent; correct its headers'),
        );
      const isAscii = sizeBytes === body.length;
      return new Promise((resolve) => {
        new Attempt(
          connections,
          routeOf(target, request),
          isAscii ? head + body : head,
          isAscii ? '' : body,
          request.timeoutMs ?? options.timeoutMs,
          resolve,
        ).send();
      });
    },
    idleConnections: () => connections.idleCount,
    close: () => connections.close(),
  };
}

interface Target {
  /** Its key is the origin. */
  readonly route: ConnectRoute;
  /** Request line, `Host` and the other parts that are the same for each request. */
  readonly head: string;
  /** Of the credentials in the URL. */
  readonly authorization: string | undefined;
}

/** Undefined if the text is no http or https URL. */
function parseTarget(endpoint: string): Target | undefined {
  const url = URL.parse(endpoint);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  const { origin, host, username, password, pathname, search } = url;
  const credentials = [username, password].map(decodeComponent).join(':');
  return {
    route: { key: origin, target: connectTargetOf(url) },
    head: `POST ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`,
    authorization:
      username || password ? `Basic ${Buffer.from(credentials).toString('base64')}` : undefined,
  };
}

const connectTargetOf = ({ protocol, hostname, port }: URL): ConnectTarget => ({
  protocol,
  hostname: hostname.replace(/^\[|\]$/g, ''),
  port,
});

/** No connection is shared by requests with different identities. An origin holds no blank. */
function routeOf({ route }: Target, { tls }: HttpPost): ConnectRoute {
  if (!tls) return route;
  return { key: `${route.key} ${tls.key}`, target: { ...route.target, tls } };
}

const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** A token, without the fields that set the target or the end of a request: those are ours. */
const FIELD_NAME =
  /^(?!(?:host|content-length|transfer-encoding|connection|keep-alive|upgrade|expect|te|trailer)$)[!#$%&'*+\-.^_`|~\w]+$/i;

/** By name, the last value that was found to be one: of a webhook's headers most are the same at each delivery. */
const lastValues = new Map<string, string>();
const NAMES_MAX = 1_024;

function isField(name: string, value: string): boolean {
  const last = lastValues.get(name);
  if (last === value) return true;
  if (last === undefined && !FIELD_NAME.test(name)) return false;
  if (!FIELD_VALUE.test(value)) return false;
  if (last !== undefined || lastValues.size < NAMES_MAX) lastValues.set(name, value);
  return true;
}

/** Undefined if a field could be read as another field, or as another request. */
function headOf(
  { head, authorization }: Target,
  headers: HttpPost['headers'],
  sizeBytes: number,
): string | undefined {
  let text = head;
  for (const name in headers) {
    const value = headers[name] as string;
    if (!isField(name, value)) return undefined;
    if (authorization === undefined || name.toLowerCase() !== 'authorization')
      text += `${name}: ${value}\r\n`;
  }
  if (authorization !== undefined) text += `authorization: ${authorization}\r\n`;
  return `${text}content-length: ${sizeBytes}\r\n\r\n`;
}

function unsendable(failure: 'unusable_endpoint' | 'other', message: string): HttpOutcome {
  return { outcome: 'failure', failure, message, status: null, head: '', body: '', durationMs: 0 };
}

/** Percent-decoded; unchanged if the encoding is not valid. */
function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
