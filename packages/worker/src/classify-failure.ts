/**
 * What went wrong on the way to an endpoint, in the domain's words: codes of Node and of undici →
 * a class that the schedule knows. By code, not by wording, except where one code means two things.
 */
import type { FailureClass } from '@sluice/domain/delivery-failure';

/** The code of our own refusal to connect (`vetted-connection.ts`). */
export const ADDRESS_REFUSED = 'ADDRESS_REFUSED';

const CLASS_BY_CODE: Readonly<Record<string, FailureClass>> = {
  [ADDRESS_REFUSED]: 'address_refused',
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
  HPE_INVALID_EOF_STATE: 'end_of_file',
  // Fewer bytes than promised: more of them would be the next response.
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'end_of_file',
  UND_ERR_HEADERS_OVERFLOW: 'misbehaving_server',
};

const CLASS_BY_PREFIX: readonly (readonly [string, FailureClass])[] = [
  ['EAI_', 'name_not_resolved'],
  ['HPE_', 'misbehaving_server'],
  ['ERR_SSL_', 'tls_handshake'],
  ['ERR_TLS_', 'tls_handshake'],
];

const MESSAGE_LENGTH_MAX = 200;

export interface ClassifiedFailure {
  readonly failure: FailureClass;
  /** One line for the webhook's owner. */
  readonly message: string;
}

/** @param isCertificateBad - TLS said so of the certificate; the codes for it are many and not ours to list. */
export function classifyFailure(error: Error, isCertificateBad: boolean): ClassifiedFailure {
  // Several addresses were tried: Node gives the first one's code to the whole, and no message.
  const { message } = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return {
    failure: isCertificateBad ? 'tls_verification' : classOf((error as NodeJS.ErrnoException).code ?? '', message),
    message: message.slice(0, MESSAGE_LENGTH_MAX),
  };
}

function classOf(code: string, message: string): FailureClass {
  // undici says "bad response" and "bad upgrade" of a response nobody asked for, else "closed".
  if (code === 'UND_ERR_SOCKET') return message.startsWith('bad ') ? 'misbehaving_server' : 'end_of_file';
  const exact = CLASS_BY_CODE[code];
  if (exact) return exact;
  return CLASS_BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 'other';
}

/** Ways a connection can go that was closed by the other side while nothing was on it. */
export function isConnectionLoss(error: Error): boolean {
  const { failure } = classifyFailure(error, false);
  return failure === 'connection_reset' || failure === 'end_of_file';
}
