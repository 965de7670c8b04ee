/**
 * Client certificate, private authority and OAuth2 client, between wire and row.
 *
 * They are a webhook's. The row has one encrypted text for all three; a body that names some of them leaves the others.
 */
import type { Webhook } from '@sluice/database/webhooks/webhooks';
import type { SecretHints } from '@sluice/database/webhooks/webhook-changes';
import { secretContext, type EndpointCredentials } from '@sluice/domain/delivery/webhook';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { invalidRequest, type Problem } from '../http/problem.ts';
import {
  certificateBlocks,
  showCertificates,
  whyNoAuthorities,
  whyNoCertificates,
  whyNoPrivateKey,
  whyNoTls,
} from './client-certificates.ts';
import type { CredentialsInBody, ShownCredentials } from './credential-fields.ts';
import { headerHints, hintOf } from './webhook-headers.ts';

/** Reason why the body's credentials cannot be used; undefined if they can. */
export function whyNoCredentials(body: CredentialsInBody, nowMs: number): Problem | undefined {
  const { client_certificate: client, certificate_authority: authority } = body;
  const whyNoAuthority = authority ? whyNoAuthorities(authority, nowMs) : undefined;
  if (whyNoAuthority !== undefined) return refused('certificate_authority', whyNoAuthority);
  if (!client) return undefined;
  const { certificate, private_key: key } = client;
  const whyNoCertificate = whyNoCertificates(certificate, nowMs);
  if (whyNoCertificate !== undefined)
    return refused('client_certificate.certificate', whyNoCertificate);
  const whyNoKey = whyNoPrivateKey(key, certificate);
  if (whyNoKey !== undefined) return refused('client_certificate.private_key', whyNoKey);
  const why = whyNoTls(certificateBlocks(certificate), key);
  return why === undefined ? undefined : refused('client_certificate.certificate', why);
}

/**
 * The stored credentials of a new webhook; null if the body has no credentials.
 *
 * @param body - for which `whyNoCredentials` returned undefined.
 */
export function storedCredentials(
  body: CredentialsInBody,
  environmentId: number,
  encryptedText: EncryptedText,
): string | null {
  const credentials = changed({}, body);
  if (Object.keys(credentials).length === 0) return null;
  return encryptedText.encrypt(JSON.stringify(credentials), secretContext(environmentId));
}

/**
 * The stored text after a change; undefined if it stays the same. If the encryption key is lost, only the body's
 * credentials remain.
 */
export function changedCredentials(
  body: CredentialsInBody,
  { endpointCredentials: stored }: Pick<Webhook, 'endpointCredentials'>,
  environmentId: number,
  encryptedText: EncryptedText,
): string | null | undefined {
  const { client_certificate, certificate_authority, oauth2 } = body;
  if ([client_certificate, certificate_authority, oauth2].every((given) => given === undefined))
    return undefined;
  const opened = openCredentialsIfPossible(stored, environmentId, encryptedText);
  const after = changed(opened ?? {}, body);
  // Encrypted anew it would look like a change.
  if (opened && JSON.stringify(after) === JSON.stringify(changed(opened, {}))) return undefined;
  if (Object.keys(after).length === 0) return null;
  return encryptedText.encrypt(JSON.stringify(after), secretContext(environmentId));
}

/** @throws AppError SECRET_UNREADABLE if the key that encrypted them is lost. */
export function showCredentials(
  { endpointCredentials: stored }: Pick<Webhook, 'endpointCredentials'>,
  environmentId: number,
  encryptedText: EncryptedText,
): ShownCredentials {
  const credentials = openCredentials(stored, environmentId, encryptedText);
  const { client_certificate: client, certificate_authority: authority, oauth2 } = credentials;
  return {
    client_certificate: (client && showCertificates(client.certificate)[0]) ?? null,
    certificate_authority: authority === undefined ? null : showCertificates(authority),
    oauth2: oauth2
      ? {
          token_url: oauth2.token_url,
          client_id: oauth2.client_id,
          client_secret: hintOf(oauth2.client_secret),
          client_authentication: oauth2.client_authentication,
          scope: oauth2.scope ?? null,
          audience: oauth2.audience ?? null,
        }
      : null,
  };
}

/** Visible parts of headers and credentials, for the audit log. Null if the key that encrypted them is lost. */
export const secretHints =
  (environmentId: number, encryptedText: EncryptedText): SecretHints =>
  (webhook) => ({
    header_hints: headerHints(webhook.customHeaders, environmentId, encryptedText),
    endpoint_credential_hints: hintsOfCredentials(webhook, environmentId, encryptedText),
  });

/** True if the access token of a webhook would go to another server than the one that it was given for. */
export function exposesToken(
  { endpoint, oauth2 }: { readonly endpoint?: string | undefined } & CredentialsInBody,
  before: Pick<Webhook, 'endpoint' | 'endpointCredentials'>,
  environmentId: number,
  encryptedText: EncryptedText,
): boolean {
  if (endpoint === undefined || oauth2 !== undefined) return false;
  if (new URL(endpoint).origin === new URL(before.endpoint).origin) return false;
  return hasOAuth2(before, environmentId, encryptedText);
}

/** False also if the key that encrypted its credentials is lost. */
export const hasOAuth2 = (
  { endpointCredentials: stored }: Pick<Webhook, 'endpointCredentials'>,
  environmentId: number,
  encryptedText: EncryptedText,
): boolean => openCredentialsIfPossible(stored, environmentId, encryptedText)?.oauth2 !== undefined;

/** In one order of members, without absent ones. */
function changed(before: EndpointCredentials, body: CredentialsInBody): EndpointCredentials {
  const client =
    body.client_certificate === undefined ? before.client_certificate : body.client_certificate;
  const authority =
    body.certificate_authority === undefined
      ? before.certificate_authority
      : body.certificate_authority;
  const oauth2 = body.oauth2 === undefined ? before.oauth2 : body.oauth2;
  return {
    ...(client && {
      client_certificate: {
        certificate: certificateBlocks(client.certificate),
        private_key: client.private_key,
      },
    }),
    ...(authority && { certificate_authority: certificateBlocks(authority) }),
    ...(oauth2 && {
      oauth2: {
        token_url: oauth2.token_url,
        client_id: oauth2.client_id,
        client_secret: oauth2.client_secret,
        client_authentication: oauth2.client_authentication,
        ...(oauth2.scope && { scope: oauth2.scope }),
        ...(oauth2.audience && { audience: oauth2.audience }),
      },
    }),
  };
}

function openCredentials(
  stored: string | null,
  environmentId: number,
  encryptedText: EncryptedText,
): EndpointCredentials {
  if (stored === null) return {};
  const opened = encryptedText.decrypt(stored, secretContext(environmentId));
  return JSON.parse(opened) as EndpointCredentials;
}

function openCredentialsIfPossible(
  stored: string | null,
  environmentId: number,
  encryptedText: EncryptedText,
): EndpointCredentials | undefined {
  try {
    return openCredentials(stored, environmentId, encryptedText);
  } catch {
    return undefined;
  }
}

function hintsOfCredentials(
  webhook: Pick<Webhook, 'endpointCredentials'>,
  environmentId: number,
  encryptedText: EncryptedText,
): ShownCredentials | null {
  if (webhook.endpointCredentials === null) return null;
  try {
    return showCredentials(webhook, environmentId, encryptedText);
  } catch {
    return null;
  }
}

const refused = (field: string, why: string): Problem =>
  invalidRequest([
    {
      field,
      reason: 'invalid',
      message: `${field} ${why}`,
      source: { pointer: `/${field.replaceAll('.', '/')}` },
    },
  ]);
