/**
 * What went wrong on the way to an endpoint, in the domain's words: codes of Node and of undici →
 * a class that the schedule knows. By code, not by wording, except where one code means two things.
 */
import type { FailureClass } from '@sluice/domain/delivery-failure';

/** The code of our own refusal to connect (`vetted-connection.ts`). */
export const ADDRESS_REFUSED = 'ADDRESS_REFUSED';
/** The code of a failure of the way to the endpoint (`proxy-tunnel.ts`). */
export const PROXY_FAILED = 'PROXY_FAILED';

const CLASS_BY_CODE: Readonly<Record<string, FailureClass>> = {
  [ADDRESS_REFUSED]: 'address_refused',
  [PROXY_FAILED]: 'unreachable',
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  ECONNABORTED: 'connection_reset',
  EPIPE: 'connection_reset',
  ETIMEDOUT: 'timeout',
  EHOSTUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EACCES: 'unreachable',
  EPERM: 'unreachable',
  ENOTFOUND: 'name_not_resolved',
  ENODATA: 'name_not_resolved',
  EPROTO: 'tls_handshake',
  UND_ERR_HEADERS_OVERFLOW: 'misbehaving_server',
};

const CLASS_BY_PREFIX: readonly (readonly [string, FailureClass])[] = [
  ['EAI_', 'name_not_resolved'],
  ['ERR_SSL_', 'tls_handshake'],
  ['ERR_TLS_', 'tls_handshake'],
];

const MESSAGE_LENGTH_MAX = 200;

export interface ClassifiedFailure {
  readonly failure: FailureClass;
  /** One line for the webhook's owner. */
  readonly message: string;
}

/** What was known of the connection and of the answer when it failed. */
export interface FailureContext {
  /** TLS said so of the certificate; the codes for it are many and not ours to list. */
  readonly isCertificateBad: boolean;
  readonly hasHead: boolean;
}

export function classifyFailure(error: Error, context: FailureContext): ClassifiedFailure {
  // Several addresses were tried: Node gives the first one's code to the whole, and no message.
  const { message } = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return {
    failure: context.isCertificateBad
      ? 'tls_verification'
      : classOf(error, message, context.hasHead),
    message: message.slice(0, MESSAGE_LENGTH_MAX),
  };
}

function classOf(error: NodeJS.ErrnoException, message: string, hasHead: boolean): FailureClass {
  const { name, code = '' } = error;
  // undici says "bad response" and "bad upgrade" of a response nobody asked for, else "closed".
  if (code === 'UND_ERR_SOCKET')
    return message.startsWith('bad ') ? 'misbehaving_server' : 'end_of_file';
  // It says this of every parse error after a length was read: in the body it means too few bytes.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return hasHead ? 'end_of_file' : 'misbehaving_server';
  // These have no code of their own in undici 8.12.
  if (name === 'HTTPParserError')
    return /\bEOF\b/.test(message) ? 'end_of_file' : 'misbehaving_server';
  const exact = CLASS_BY_CODE[code];
  if (exact) return exact;
  return CLASS_BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 'other';
}

/** True where the other side has ended the connection, politely or not. */
export function isConnectionLoss(error: Error): boolean {
  const { failure } = classifyFailure(error, { isCertificateBad: false, hasHead: false });
  return failure === 'connection_reset' || failure === 'end_of_file';
}
