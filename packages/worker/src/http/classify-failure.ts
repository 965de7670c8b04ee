/** Classifies a failed request for the schedule: codes of Node → a class of the domain. By code, not by wording. */
import type { FailureClass } from '@sluice/domain/delivery/delivery-failure';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { PROXY_FAILED } from '@sluice/platform/outgoing/proxy-tunnel';
import { ADDRESS_REFUSED } from '@sluice/platform/outgoing/vetted-connection';
import { connectionFailureMessage } from './connection-failure.ts';
import { tlsFailureMessage } from './tls-failure.ts';

const CLASS_BY_CODE: Readonly<Record<string, Exclude<FailureClass, 'status'>>> = {
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
};

const CLASS_BY_PREFIX: readonly (readonly [string, Exclude<FailureClass, 'status'>])[] = [
  ['EAI_', 'name_not_resolved'],
  ['ERR_SSL_', 'tls_handshake'],
  ['ERR_TLS_', 'tls_handshake'],
  // Of a certificate or a key that OpenSSL cannot use.
  ['ERR_OSSL_', 'tls_handshake'],
];

const MESSAGE_LENGTH_MAX = 200;

export interface ClassifiedFailure {
  readonly failure: Exclude<FailureClass, 'status'>;
  /** One line for the webhook's owner. */
  readonly message: string;
}

/** @param isCertificateBad - reported by TLS: the codes for it are many and not ours to list. */
export function classifyFailure(error: Error, isCertificateBad: boolean): ClassifiedFailure {
  const failure = isCertificateBad ? 'tls_verification' : classOf(error);
  // Several addresses were tried: Node gives the first one's code to the whole, and no message.
  const first = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  const isOfTls = failure === 'tls_verification' || failure === 'tls_handshake';
  const { code = '' } = first as NodeJS.ErrnoException;
  const message = isOfTls
    ? tlsFailureMessage(code, isCertificateBad)
    : (connectionFailureMessage(first) ?? first.message);
  return {
    failure,
    // It may quote a certificate or a proxy. A text that Postgres refuses would be a failure that is never written
    // down.
    message: toStorableText(message.slice(0, MESSAGE_LENGTH_MAX)),
  };
}

function classOf({ code = '' }: NodeJS.ErrnoException): ClassifiedFailure['failure'] {
  const exact = CLASS_BY_CODE[code];
  if (exact) return exact;
  return CLASS_BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 'other';
}

/** True if the other side has ended the connection. */
export function isConnectionLoss(error: Error): boolean {
  return classOf(error) === 'connection_reset';
}
