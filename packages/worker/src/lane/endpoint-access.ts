/**
 * Credentials of one webhook's requests: its client certificate, its authority and its OAuth2 client, as
 * `lane-endpoint.ts` last read them.
 *
 * The token itself is fetched and kept by `delivery/access-tokens.ts`.
 */
import type { EndpointCredentials, OAuth2Client } from '@sluice/domain/delivery/webhook';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { HttpPost } from '../http/http-outcome.ts';
import { tlsIdentity, type TlsIdentity } from '@sluice/platform/outgoing/tls-identity';

/** Credentials with which a token is fetched. */
export interface TokenSource {
  readonly webhook: LaneKey;
  /** `endpoint_version` of the webhook whose credentials these are. */
  readonly endpointVersion: number;
  readonly client: OAuth2Client;
  /** Of the connection to the token server. */
  readonly tls: TlsIdentity | undefined;
}

/** One attempt; it needs an access token if it has a source. */
export interface DeliveryPost extends HttpPost {
  readonly tokenSource?: TokenSource | undefined;
}

export type EndpointAccess = Pick<DeliveryPost, 'tls' | 'tokenSource'>;

const NONE: EndpointAccess = {};

/**
 * @param opened - the webhook's credentials as JSON; null for a webhook without credentials.
 *
 * The token server may be trusted by the well-known authorities as well as by the webhook's own: often it is not the
 * endpoint's neighbour. It sees the client certificate if it asks for one (RFC 8705).
 */
export function endpointAccess(
  opened: string | null,
  webhook: LaneKey,
  endpointVersion: number,
): EndpointAccess {
  if (opened === null) return NONE;
  const credentials = JSON.parse(opened) as EndpointCredentials;
  const { client_certificate: client, certificate_authority: authority, oauth2 } = credentials;
  const parts = { certificate: client?.certificate, privateKey: client?.private_key, authority };
  const tls = tlsIdentity({ ...parts, trustsPublic: false });
  if (!oauth2) return { tls };
  const tokenTls = tlsIdentity({ ...parts, trustsPublic: true });
  return { tls, tokenSource: { webhook, endpointVersion, client: oauth2, tls: tokenTls } };
}
