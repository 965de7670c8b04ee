/**
 * Credentials of a webhook beside the signature, between API and form.
 *
 * They are a client certificate, an authority and an OAuth2 client. The API never shows the secrets again, so an empty
 * field keeps the stored value. Pure.
 */
import type { BodyOf, Described } from '../client/operations.ts';

/** The part of `GET /v1/reporting_webhooks/{id}` that shows credentials. */
export type Credentials = Pick<
  Described<'ReportingWebhook'>,
  'client_certificate' | 'certificate_authority' | 'oauth2'
>;

type ShownCertificate = NonNullable<Credentials['client_certificate']>;
type ShownOAuth2 = NonNullable<Credentials['oauth2']>;

/** As the API takes them. Null takes one away. */
type ChangedCredentials = Pick<
  BodyOf<'put', '/v1/reporting_webhooks/{webhook_id}'>,
  keyof Credentials
>;

/** The credentials of a webhook, by their names in the API. */
export type Credential = keyof Credentials;

/** Texts of a form, without blanks at the ends. */
export interface TypedCredentials {
  readonly certificate: string;
  readonly private_key: string;
  readonly certificate_authority: string;
  readonly token_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly client_authentication: ShownOAuth2['client_authentication'];
  readonly scope: string;
  readonly audience: string;
  /** Credentials that the user takes away. */
  readonly removed: readonly Credential[];
}

/**
 * The credentials to send from a form. A member is absent if it stays, and null if it is taken away.
 *
 * @param stored - absent: of a new webhook.
 * @param isElsewhere - to another server. The stored OAuth2 client is not used there.
 */
export function changedCredentials(
  typed: TypedCredentials,
  stored: Credentials | undefined,
  isElsewhere: boolean,
): ChangedCredentials {
  const { certificate, private_key, certificate_authority: authority } = typed;
  const given = {
    ...((certificate !== '' || private_key !== '') && {
      client_certificate: { certificate, private_key },
    }),
    ...(authority !== '' && { certificate_authority: authority }),
    ...changedOAuth2(typed, stored?.oauth2 ?? null, isElsewhere),
  };
  return { ...given, ...Object.fromEntries(typed.removed.map((name) => [name, null])) };
}

function changedOAuth2(
  typed: TypedCredentials,
  stored: ShownOAuth2 | null,
  isElsewhere: boolean,
): Pick<ChangedCredentials, 'oauth2'> {
  const { token_url, client_id, client_secret, client_authentication, scope, audience } = typed;
  const isSame =
    token_url === (stored?.token_url ?? '') &&
    client_id === (stored?.client_id ?? '') &&
    scope === (stored?.scope ?? '') &&
    audience === (stored?.audience ?? '') &&
    client_authentication === (stored?.client_authentication ?? 'basic');
  if (client_secret === '' && isSame) return stored && isElsewhere ? { oauth2: null } : {};
  return {
    oauth2: {
      token_url,
      client_id,
      client_secret,
      client_authentication,
      scope: scope === '' ? null : scope,
      audience: audience === '' ? null : audience,
    },
  };
}

/** Identification of a stored certificate: `CN=sluice, until 2027-11-27, SHA-256 AB:CD:…`. */
export const certificateText = (certificate: ShownCertificate): string =>
  `${certificate.subject}, until ${dayOf(certificate)}, SHA-256 ${certificate.fingerprint_sha256}`;

/** For a line under the webhook's name; empty if it has no credentials. */
export function credentialText({
  client_certificate: client,
  certificate_authority: authority,
  oauth2,
}: Credentials): string {
  return [
    client && `client certificate ${client.subject}, until ${dayOf(client)}`,
    authority && `authority ${authority.map(({ subject }) => subject).join(' and ')}`,
    oauth2 && `OAuth2 client ${oauth2.client_id}`,
  ]
    .filter((part) => part !== null)
    .join('; ');
}

const dayOf = ({ expires_at: atSeconds }: ShownCertificate): string =>
  new Date(atSeconds * 1_000).toISOString().slice(0, 10);
